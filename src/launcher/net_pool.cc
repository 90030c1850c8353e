#include "launcher/net_pool.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>

#include "sys/net_ns.h"
#include "sys/packet.h"

namespace caisson::launcher {
namespace {

// One byte in, one namespace out; a namespace that cannot be made is answered without a descriptor
// and with the errno.
[[noreturn]] void HelperMain(int socket) {
  prctl(PR_SET_NAME, "caisson-netpool");
  for (;;) {
    char byte;
    const ssize_t got = recv(socket, &byte, 1, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) _exit(0);
    auto made = sys::EnterNewNetNs();
    const int fds[] = {made ? made->get() : -1};
    std::string error = made ? std::string("+") : "-" + made.error().message();
    if (sys::SendPacket(socket, error, made ? std::span<const int>(fds) : std::span<const int>()) !=
        sys::PacketState::kOk)
      _exit(0);
  }
}

}  // namespace

Result<NetPool> NetPool::Start(size_t target) {
  CAISSON_ASSIGN(auto pair, sys::MakeSocketPair());
  const sys::CloneResult clone = sys::Clone(0, -1);
  if (clone.pid < 0) return Error::FromErrno("fork the maker of network namespaces");
  if (clone.pid == 0) {
    const int socket = dup2(pair.second.get(), 3);
    close_range(4, ~0U, 0);
    HelperMain(socket);
  }
  return NetPool(sys::Child(clone.pid, sys::UniqueFd(clone.pidfd)), std::move(pair.first), target);
}

void NetPool::Order() {
  for (; ready_.size() + ordered_ < target_; ++ordered_)
    if (send(socket_.get(), "n", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1) return;
}

void NetPool::Collect() {
  for (;;) {
    pollfd waiting{socket_.get(), POLLIN, 0};
    if (ordered_ == 0 || poll(&waiting, 1, 0) != 1) return;
    auto received = sys::ReceivePacket(socket_.get(), 512);
    if (received.state != sys::PacketState::kOk) return;
    --ordered_;
    if (received.packet.fds.size() == 1) ready_.push_back(std::move(received.packet.fds[0]));
  }
}

Result<sys::UniqueFd> NetPool::Take() {
  if (ready_.empty()) Collect();
  if (ready_.empty()) {
    if (ordered_ == 0) {
      if (send(socket_.get(), "n", 1, MSG_NOSIGNAL) != 1)
        return Error::FromErrno("ask for a network namespace").WithCode(ErrorCode::kUnavailable);
      ++ordered_;
    }
    auto received = sys::ReceivePacket(socket_.get(), 512);
    if (received.state != sys::PacketState::kOk)
      return Error(ErrorCode::kUnavailable, "the maker of network namespaces has died");
    --ordered_;
    if (received.packet.fds.size() != 1)
      return Error(ErrorCode::kIsolationFailed,
                   received.packet.bytes.substr(received.packet.bytes.empty() ? 0 : 1));
    ready_.push_back(std::move(received.packet.fds[0]));
  }
  sys::UniqueFd taken = std::move(ready_.back());
  ready_.pop_back();
  return taken;
}

}  // namespace caisson::launcher
