#include "launcher/net_pool.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "sys/net_ns.h"
#include "sys/packet.h"

namespace caisson::launcher {
namespace {

// The process that makes namespaces and judges used ones.
class Helper {
 public:
  explicit Helper(int socket) : socket_(socket) {}

  // One packet in, one namespace out: the one that came with it when it is as new, else a new one.
  // One that cannot be made is answered without a descriptor and with the reason.
  [[noreturn]] void Run() {
    for (;;) {
      auto asked = sys::ReceivePacket(socket_, 16);
      if (asked.state != sys::PacketState::kOk) _exit(0);
      const bool returned = asked.packet.fds.size() == 1 && IsAsNew(asked.packet.fds[0].get());
      Answer(returned ? std::move(asked.packet.fds[0]) : Make());
    }
  }

 private:
  Result<sys::UniqueFd> Make() {
    auto made = sys::EnterNewNetNs();
    if (made && first_day_.empty()) {
      auto footprint = sys::NetNsFootprint();
      if (footprint) first_day_ = *std::move(footprint);
    }
    return made;
  }

  bool IsAsNew(int used) const {
    if (first_day_.empty() || setns(used, CLONE_NEWNET) != 0) return false;
    const auto footprint = sys::NetNsFootprint();
    return footprint && *footprint == first_day_;
  }

  void Answer(Result<sys::UniqueFd> made) const {
    const int fds[] = {made ? made->get() : -1};
    const std::string text = made ? std::string("+") : "-" + made.error().message();
    if (sys::SendPacket(socket_, text, made ? std::span<const int>(fds) : std::span<const int>()) !=
        sys::PacketState::kOk)
      _exit(0);
  }

  int socket_;
  std::string first_day_;
};

}  // namespace

Result<NetPool> NetPool::Start(size_t target) {
  CAISSON_ASSIGN(auto pair, sys::MakeSocketPair());
  const sys::CloneResult clone = sys::Clone(0, -1);
  if (clone.pid < 0) return Error::FromErrno("fork the maker of network namespaces");
  if (clone.pid == 0) {
    const int socket = dup2(pair.second.get(), 3);
    close_range(4, ~0U, 0);
    prctl(PR_SET_NAME, "caisson-netpool");
    Helper(socket).Run();
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

sys::UniqueFd NetPool::OpenOf(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/ns/net";
  return sys::UniqueFd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

void NetPool::Return(sys::UniqueFd used) {
  if (ready_.size() + ordered_ >= 2 * target_) return;
  const int fds[] = {used.get()};
  if (sys::SendPacket(socket_.get(), "r", fds) == sys::PacketState::kOk) ++ordered_;
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
