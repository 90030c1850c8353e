#include "launcher/launcher.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "launcher/hooks.h"

namespace caisson::launcher {
namespace {

namespace w = wire::launcher;

constexpr size_t kReadyNets = 24;
constexpr size_t kReadyBerths = 12;
constexpr size_t kReadyCgroups = 12;
constexpr uint64_t kSerialMask = (uint64_t{1} << 56) - 1;
constexpr size_t kMaxQueued =
    4096;  // packets to an owner that does not read; more and it is dropped

}  // namespace

Result<std::unique_ptr<Launcher>> Launcher::Create(Host host, LauncherOptions options) {
  CAISSON_ASSIGN(auto nets, NetPool::Start(kReadyNets));
  std::unique_ptr<Launcher> launcher(
      new Launcher(std::move(host), std::move(options), std::move(nets)));
  if (!launcher->epoll_) return Error::FromErrno("make an epoll set");
  return launcher;
}

Launcher::Launcher(Host host, LauncherOptions options, NetPool nets)
    : host_(std::move(host)),
      listener_(std::move(options.listener)),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      nets_(std::move(nets)),
      berths_(host_, kReadyBerths),
      cgroups_(*host_.cgroups, kReadyCgroups),
      spares_({}),
      linger_ns_(options.linger_ns),
      keeping_(static_cast<bool>(listener_)),
      pools_(options.pools) {
  Watch(nets_.socket(), Watched::kNetPool, 0, EPOLLIN);
  Watch(host_.gangway->left(), Watched::kGangway, 0, EPOLLIN);
  if (listener_) Watch(listener_.get(), Watched::kListener, 0, EPOLLIN);
  if (options.first_owner) {
    const uint64_t serial = next_serial_++;
    (void)sys::SetNonBlocking(options.first_owner.get());
    Watch(options.first_owner.get(), Watched::kOwner, serial, EPOLLIN);
    owners_[serial].socket = std::move(options.first_owner);
  }
}

Launcher::~Launcher() = default;

bool Launcher::Watch(int fd, Watched what, uint64_t serial, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = (static_cast<uint64_t>(what) << 56) | serial;
  return epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0 ||
         epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0;
}

void Launcher::Run() {
  bool busy = true;
  while (!(stopping_ && boxes_.empty() && dead_.empty())) {
    Wait(busy ? 0 : NextTimeout());
    CheckDeadlines();
    CheckAlone();
    busy = IdleWork();
  }
  if (stop_owner_ != 0) Reply(stop_owner_, stop_tag_, w::Done{});
}

void Launcher::Wait(int timeout_ms) {
  epoll_event events[64];
  const int count = epoll_wait(epoll_.get(), events, 64, timeout_ms);
  for (int i = 0; i < count; ++i) {
    const auto what = static_cast<Watched>(events[i].data.u64 >> 56);
    const uint64_t serial = events[i].data.u64 & kSerialMask;
    if (what == Watched::kOwner && (events[i].events & EPOLLOUT) != 0) FlushOwner(serial);
    if ((events[i].events & ~EPOLLOUT) != 0) HandleEvent(what, serial);
  }
}

void Launcher::HandleEvent(Watched what, uint64_t serial) {
  switch (what) {
    case Watched::kListener:
      return Accept();
    case Watched::kOwner:
      return ReadOwner(serial);
    case Watched::kNetPool:
      return nets_.Collect();
    case Watched::kGangway:
      return host_.gangway->Collect();
    default:
      break;
  }
  const auto found = boxes_.find(serial);
  if (found == boxes_.end()) return;  // gone since the event was queued
  Box& box = *found->second;
  if (what == Watched::kReport) OnReport(box);
  if (what == Watched::kControl) OnReady(box);
  if (what == Watched::kPid) OnInitGone(box);
}

bool Launcher::IdleWork() {
  if (!dead_.empty()) {
    std::unique_ptr<Box> box = std::move(dead_.back());
    dead_.pop_back();
    Reclaim(std::move(box));
    return true;
  }
  if (stopping_ || !pools_) return false;
  nets_.Order();
  for (const uint64_t serial : spares_.TakeUnwanted()) Kill(*boxes_.at(serial));
  if (BeginSpare()) return true;
  if (cgroups_.Work() || berths_.Refill()) return true;
  if (!host_.disks[static_cast<size_t>(DiskBackend::kQuota)].works)
    return false;  // only those leave trash
  auto emptied = EmptyDiskTrash(host_.state_dir, 256);
  return emptied && *emptied == sys::RemoveProgress::kUnfinished;
}

int Launcher::NextTimeout() {
  uint64_t next = UINT64_MAX;
  for (const uint64_t serial : unsettled_) next = std::min(next, boxes_.at(serial)->deadline_ns);
  if (alone_since_ns_ != 0) next = std::min(next, alone_since_ns_ + linger_ns_);
  if (next == UINT64_MAX) return -1;
  const uint64_t now = sys::MonotonicNs();
  return next <= now ? 0 : static_cast<int>((next - now) / 1'000'000 + 1);
}

// A keeping launcher that nobody owns and that has nothing to keep ends after a while.
void Launcher::CheckAlone() {
  if (!keeping_ || stopping_ || !owners_.empty() || !serials_.empty()) {
    alone_since_ns_ = 0;
    return;
  }
  const uint64_t now = sys::MonotonicNs();
  if (alone_since_ns_ == 0) alone_since_ns_ = now;
  if (now - alone_since_ns_ >= linger_ns_) Stop();
}

void Launcher::Stop() {
  stopping_ = true;
  alone_since_ns_ = 0;
  for (const auto& [serial, box] : boxes_) Kill(*box);
}

void Launcher::CheckDeadlines() {
  if (unsettled_.empty()) return;
  const uint64_t now = sys::MonotonicNs();
  for (const uint64_t serial : std::vector<uint64_t>(unsettled_.begin(), unsettled_.end())) {
    const auto& box = boxes_.at(serial);
    if (box->deadline_ns > now) continue;
    if (box->state == BoxState::kStarting) {
      Fail(box->waiting_client, box->waiting_tag,
           Error(ErrorCode::kDeadlineExceeded, "the sandbox's init did not start in time")
               .WithRemedy("run `caisson doctor`"));
      box->waiting_client = 0;
      Kill(*box);
    } else {
      // A process in uninterruptible sleep. It keeps its ids and cgroup and is tried again for
      // ever.
      if (box->waiting_client != 0)
        Fail(box->waiting_client, box->waiting_tag,
             Error(ErrorCode::kDeadlineExceeded,
                   "sandbox " + box->id + " has a process that does not die; it is quarantined")
                 .WithRemedy("find out which device or network file system it waits for"));
      box->waiting_client = 0;
      box->quarantined = true;
      Kill(*box);
    }
  }
}

// --- owners --------------------------------------------------------------------------------------

void Launcher::Accept() {
  sys::UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket) return;
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return;
  if (peer.uid != 0 && peer.uid != geteuid()) return;  // somebody else's: closed without a word
  const uint64_t serial = next_serial_++;
  Watch(socket.get(), Watched::kOwner, serial, EPOLLIN);
  owners_[serial].socket = std::move(socket);
}

void Launcher::ReadOwner(uint64_t serial) {
  for (int i = 0; i < 16; ++i) {  // then others have their turn
    const auto found = owners_.find(serial);
    if (found == owners_.end()) return;
    auto received = sys::ReceivePacket(found->second.socket.get(), wire::kMaxFrame);
    if (received.state == sys::PacketState::kWouldBlock) return;
    if (received.state != sys::PacketState::kOk) return DropOwner(serial);
    std::vector<sys::UniqueFd> fds = std::move(received.packet.fds);
    Dispatch(serial, received.packet, std::move(fds));
  }
}

void Launcher::DropOwner(uint64_t serial) {
  owners_.erase(serial);
  for (const auto& [s, box] : boxes_)
    if (box->waiting_client == serial) box->waiting_client = 0;
  if (keeping_) {
    // Sandboxes that were being born for this owner are nobody's.
    for (const auto& [s, box] : boxes_)
      if (box->state == BoxState::kStarting && box->waiting_client == 0 && !box->spare) Kill(*box);
    return;
  }
  Stop();
}

void Launcher::Send(uint64_t owner, std::string bytes, std::vector<sys::UniqueFd> fds) {
  const auto found = owners_.find(owner);
  if (found == owners_.end()) return;
  found->second.queue.push_back({std::move(bytes), std::move(fds)});
  FlushOwner(owner);
}

void Launcher::FlushOwner(uint64_t serial) {
  const auto found = owners_.find(serial);
  if (found == owners_.end()) return;
  Owner& owner = found->second;
  const bool was_blocked = owner.queue.size() > 1;
  while (!owner.queue.empty()) {
    const auto& next = owner.queue.front();
    std::vector<int> raw;
    for (const auto& fd : next.fds) raw.push_back(fd.get());
    const auto state = sys::SendPacket(owner.socket.get(), next.bytes, raw);
    if (state == sys::PacketState::kWouldBlock) break;
    if (state != sys::PacketState::kOk) return DropOwner(serial);
    owner.queue.pop_front();
  }
  if (owner.queue.size() > kMaxQueued) return DropOwner(serial);
  if (was_blocked || !owner.queue.empty())
    Watch(owner.socket.get(), Watched::kOwner, serial,
          owner.queue.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
}

void Launcher::Fail(uint64_t owner, uint32_t tag, const Error& error) {
  Reply(owner, tag,
        w::Failed{static_cast<uint16_t>(error.code()), error.sys_errno(),
                  error.message().substr(0, w::kMaxText), error.remedy().substr(0, w::kMaxText)});
}

}  // namespace caisson::launcher
