// Sockets: owned descriptors, addresses, listening and connecting. Nothing here waits.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "net/message.h"

namespace caisson::net {

// Owns one socket and closes it.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      Close();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { Close(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void Close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

// A listening socket; removes the file of a unix socket when it goes, if it is still its own.
class ListenSocket {
 public:
  // `address` as in ListenOptions.
  static Result<ListenSocket> Open(std::string_view address, int backlog);
  ListenSocket(ListenSocket&&) noexcept = default;
  ListenSocket& operator=(ListenSocket&&) = delete;
  ~ListenSocket();

  int fd() const { return fd_.get(); }
  const std::string& address() const { return address_; }  // with the port that it has
  uint16_t port() const { return port_; }

 private:
  ListenSocket() = default;
  static Result<ListenSocket> OpenUnix(std::string path, int backlog);
  static Result<ListenSocket> OpenTcp(std::string_view address, int backlog);
  static Result<ListenSocket> Inherit(std::string_view number);
  void NoteTcpAddress();

  Fd fd_;
  std::string address_;
  uint16_t port_ = 0;
  std::string path_;  // of a unix socket
  uint64_t device_ = 0, inode_ = 0;
};

// Who is at the other end of an accepted socket.
Peer PeerOf(int fd);

// One address to connect to, as the kernel wants it.
struct SocketAddress {
  std::string bytes;  // a sockaddr
  int family() const;
};
// "127.0.0.1", "::1": numeric alone. kInvalidArgument for anything else.
Result<SocketAddress> NumericAddress(std::string_view host, uint16_t port);
Result<SocketAddress> UnixAddress(std::string_view path);
// Looks a name up; may take long.
Result<std::vector<SocketAddress>> LookUp(const std::string& host, uint16_t port);
std::string AddressText(const SocketAddress& address);  // without the port

// A socket that is connecting, or connected; write-ready means decided (see ConnectError).
Result<Fd> StartConnect(const SocketAddress& address);
// 0 once connected, otherwise the errno.
int ConnectError(int fd);

}  // namespace caisson::net
