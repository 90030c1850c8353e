// One packet of a SOCK_SEQPACKET unix socket, with the descriptors that travel beside it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sys/unique_fd.h"

namespace caisson::sys {

inline constexpr size_t kMaxPacketFds = 48;

struct Packet {
  std::string bytes;
  std::vector<UniqueFd> fds;
};

enum class PacketState { kOk, kWouldBlock, kClosed, kError };

// Sends one packet. Never raises SIGPIPE. kWouldBlock: try again when the socket is writable.
PacketState SendPacket(int socket, std::string_view bytes, std::span<const int> fds);

struct ReceivedPacket {
  PacketState state;
  Packet packet;
};
// Receives one packet of at most `max` bytes; a longer one, or one with more descriptors than
// kMaxPacketFds, is an error (kError) and its descriptors are closed.
ReceivedPacket ReceivePacket(int socket, size_t max);
// The same, but a packet whose descriptors do not all fit (this process has too many open) comes
// with none of them: one request fails then, not the connection.
ReceivedPacket ReceivePacketAsFits(int socket, size_t max);

// The same without room for descriptors: what is sent beside the bytes is dropped by the kernel.
// For sockets whose other end is inside a sandbox.
ReceivedPacket ReceivePlainPacket(int socket, size_t max);

struct SocketPair {
  UniqueFd first, second;
};
// A connected pair of SEQPACKET sockets, both CLOEXEC, blocking.
Result<SocketPair> MakeSocketPair();

Status SetNonBlocking(int fd);

}  // namespace caisson::sys
