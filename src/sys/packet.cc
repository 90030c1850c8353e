#include "sys/packet.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace caisson::sys {
namespace {

enum class WhenCut { kFail, kGoOn };

ReceivedPacket Receive(int socket, size_t max, std::span<char> control, WhenCut when_cut) {
  ReceivedPacket result{PacketState::kOk, {}};
  // A buffer per thread, so that a small packet does not cost a large allocation.
  static thread_local std::string buffer;
  if (buffer.size() < max + 1) buffer.resize(max + 1);
  iovec iov{buffer.data(), max + 1};
  msghdr message{};
  message.msg_iov = &iov;
  message.msg_iovlen = 1;
  message.msg_control = control.empty() ? nullptr : control.data();
  message.msg_controllen = control.size();
  ssize_t got;
  // A peer that went with our packets unread gives ECONNRESET once, before what it sent last.
  for (int resets = 0;;) {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (got >= 0 || (errno != EINTR && (errno != ECONNRESET || ++resets > 1))) break;
  }
  if (got < 0) {
    result.state = errno == EAGAIN || errno == EWOULDBLOCK ? PacketState::kWouldBlock
                   : errno == ECONNRESET                   ? PacketState::kClosed
                                                           : PacketState::kError;
    return result;
  }
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      result.packet.fds.emplace_back(fd);
    }
  }
  const bool cut = !control.empty() && (message.msg_flags & MSG_CTRUNC) != 0;
  if (cut) result.packet.fds.clear();
  if (got == 0) {
    result.state = PacketState::kClosed;
  } else if (static_cast<size_t>(got) > max || (message.msg_flags & MSG_TRUNC) != 0 ||
             (cut && when_cut == WhenCut::kFail)) {
    result.state = PacketState::kError;
    result.packet.fds.clear();
  } else {
    result.packet.bytes.assign(buffer.data(), static_cast<size_t>(got));
  }
  return result;
}

}  // namespace

PacketState SendPacket(int socket, std::string_view bytes, std::span<const int> fds) {
  iovec iov{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &iov;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxPacketFds)];
  if (!fds.empty()) {
    if (fds.size() > kMaxPacketFds) return PacketState::kError;
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    std::memset(control, 0, message.msg_controllen);
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    std::memcpy(CMSG_DATA(c), fds.data(), sizeof(int) * fds.size());
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return PacketState::kOk;
  if (errno == EAGAIN || errno == EWOULDBLOCK) return PacketState::kWouldBlock;
  return errno == EPIPE || errno == ECONNRESET ? PacketState::kClosed : PacketState::kError;
}

ReceivedPacket ReceivePacket(int socket, size_t max) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxPacketFds)];
  return Receive(socket, max, control, WhenCut::kFail);
}

ReceivedPacket ReceivePacketAsFits(int socket, size_t max) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxPacketFds)];
  return Receive(socket, max, control, WhenCut::kGoOn);
}

ReceivedPacket ReceivePlainPacket(int socket, size_t max) {
  return Receive(socket, max, {}, WhenCut::kGoOn);
}

Result<SocketPair> MakeSocketPair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
    return Error::FromErrno("make a socket pair");
  return SocketPair{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Status SetNonBlocking(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
    return Error::FromErrno("make a descriptor non-blocking");
  return {};
}

}  // namespace caisson::sys
