#include "net/transport.h"

#include <sys/socket.h>

#include <cerrno>

namespace caisson::net {
namespace {

class Plain final : public Transport {
 public:
  explicit Plain(int fd) : fd_(fd) {}

  IoResult Read(char* into, size_t size) override {
    while (true) {
      const ssize_t got = recv(fd_, into, size, 0);
      if (got > 0) return {IoResult::Kind::kBytes, static_cast<size_t>(got)};
      if (got == 0) return {IoResult::Kind::kEnd};
      if (errno == EAGAIN) return {IoResult::Kind::kWaitReadable};
      if (errno != EINTR) return {IoResult::Kind::kBroken, 0, errno};
    }
  }

  IoResult Write(std::span<const iovec> parts) override {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts.data());
    message.msg_iovlen = parts.size();
    while (true) {
      const ssize_t sent = sendmsg(fd_, &message, MSG_NOSIGNAL);
      if (sent >= 0) return {IoResult::Kind::kBytes, static_cast<size_t>(sent)};
      if (errno == EAGAIN) return {IoResult::Kind::kWaitWritable};
      if (errno != EINTR) return {IoResult::Kind::kBroken, 0, errno};
    }
  }

  void FinishWriting() override { shutdown(fd_, SHUT_WR); }

 private:
  int fd_;
};

}  // namespace

std::unique_ptr<Transport> PlainTransport(int fd) { return std::make_unique<Plain>(fd); }

}  // namespace caisson::net
