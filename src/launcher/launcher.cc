#include "launcher/launcher.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include "launcher/hooks.h"
#include "launcher/jail_pool.h"
#include "launcher/limits.h"
#include "wire/init_protocol.h"

namespace caisson::launcher {
namespace {

namespace w = wire::launcher;

constexpr size_t kReadyNets = 24;
constexpr size_t kReadyBerths = 12;
constexpr size_t kReadyCgroups = 12;
constexpr size_t kReadyJails = 4;
constexpr uint64_t kDeathDeadlineNs = 5'000'000'000;
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
      jails_(kReadyJails),
      keeping_(static_cast<bool>(listener_)),
      pools_(options.pools) {
  Watch(nets_.socket(), Watched::kNetPool, 0, EPOLLIN);
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
    box->control.Reset();
    if (box->cgroup) cgroups_.Return(*std::move(box->cgroup));
    box->cgroup.reset();
    box->bandwidth.reset();
    box->birth.reset();
    if (box->berth) {
      box->berth->lowers.clear();
      box->berth->disk.reset();
      if (!box->quarantined) berths_.Return(std::move(box->berth->ids));
    }
    CrashPoint("box buried");
    return true;
  }
  if (stopping_ || !pools_) return false;
  nets_.Order();
  if (jails_.Refill(host_, {berths_, cgroups_, nets_, jails_})) return true;
  if (cgroups_.Work() || berths_.Refill()) return true;
  if (!host_.disks[static_cast<size_t>(DiskBackend::kQuota)].works)
    return false;  // only those leave trash
  auto emptied = EmptyDiskTrash(host_.state_dir, 256);
  return emptied && *emptied == sys::RemoveProgress::kUnfinished;
}

int Launcher::NextTimeout() {
  uint64_t next = UINT64_MAX;
  for (const uint64_t serial : unsettled_) next = std::min(next, boxes_.at(serial)->deadline_ns);
  if (next == UINT64_MAX) return -1;
  const uint64_t now = sys::MonotonicNs();
  return next <= now ? 0 : static_cast<int>((next - now) / 1'000'000 + 1);
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
      if (box->state == BoxState::kStarting && box->waiting_client == 0) Kill(*box);
    return;
  }
  stopping_ = true;
  for (const auto& [s, box] : boxes_) Kill(*box);
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

template <typename Message>
void Launcher::Reply(uint64_t owner, uint32_t tag, const Message& message,
                     std::vector<sys::UniqueFd> fds) {
  if (owner != 0) Send(owner, wire::Encode(message, tag), std::move(fds));
}

void Launcher::Fail(uint64_t owner, uint32_t tag, const Error& error) {
  Reply(owner, tag,
        w::Failed{static_cast<uint16_t>(error.code()), error.sys_errno(),
                  error.message().substr(0, w::kMaxText), error.remedy().substr(0, w::kMaxText)});
}

// --- requests ------------------------------------------------------------------------------------

void Launcher::Dispatch(uint64_t owner, const sys::Packet& packet, std::vector<sys::UniqueFd> fds) {
  const auto header = wire::PeekHeader(packet.bytes);
  if (!header) return DropOwner(owner);
  const uint32_t tag = header->tag;
  // Decodes and handles, or drops an owner that breaks the protocol.
  auto with = [&]<typename Message>(std::type_identity<Message>, auto handle) {
    auto message = wire::Decode<Message>(packet.bytes);
    if (!message) return DropOwner(owner);
    handle(*std::move(message));
  };
  switch (static_cast<w::Type>(header->type)) {
    case w::Type::kHello:
      return with(std::type_identity<w::Hello>{}, [&](w::Hello hello) {
        if (hello.version != w::kVersion)
          return Fail(
              owner, tag,
              Error(ErrorCode::kProtocol, "the launcher speaks another version of the protocol")
                  .WithRemedy("restart the server so that both come from the same build"));
        Reply(owner, tag,
              w::HelloReply{w::kVersion, host_.instance->id(), host_.rootless, host_.Facts()});
      });
    case w::Type::kRegisterRoot:
      return with(std::type_identity<w::RegisterRoot>{},
                  [&](auto m) { OnRegisterRoot(owner, tag, std::move(m), std::move(fds)); });
    case w::Type::kCreate:
      return with(std::type_identity<w::Create>{},
                  [&](auto m) { OnCreate(owner, tag, std::move(m), std::move(fds)); });
    case w::Type::kDestroy:
      return with(std::type_identity<w::Destroy>{}, [&](auto m) { OnDestroy(owner, tag, m.id); });
    case w::Type::kUpdate:
      return with(std::type_identity<w::Update>{}, [&](auto m) { OnUpdate(owner, tag, m); });
    case w::Type::kFreeze:
      return with(std::type_identity<w::Freeze>{}, [&](auto m) { OnFreeze(owner, tag, m); });
    case w::Type::kStats:
      return with(std::type_identity<w::Stats>{}, [&](auto m) { OnStats(owner, tag, m.id); });
    case w::Type::kList:
      return with(std::type_identity<w::List>{}, [&](auto m) { OnList(owner, tag, m.after); });
    case w::Type::kAdopt:
      return with(std::type_identity<w::Adopt>{}, [&](auto m) { OnAdopt(owner, tag, m.id); });
    case w::Type::kShutdown:
      stopping_ = true;
      stop_owner_ = owner;
      stop_tag_ = tag;
      for (const auto& [serial, box] : boxes_) Kill(*box);
      return;
    default:
      return DropOwner(owner);
  }
}

void Launcher::OnRegisterRoot(uint64_t owner, uint32_t tag, w::RegisterRoot request,
                              std::vector<sys::UniqueFd> fds) {
  auto registered =
      berths_.Register({std::move(request.key), std::move(request.inside), std::move(fds)});
  if (!registered) return Fail(owner, tag, registered.error());
  Reply(owner, tag, w::Done{});
}

void Launcher::OnCreate(uint64_t owner, uint32_t tag, w::Create request,
                        std::vector<sys::UniqueFd> fds) {
  if (serials_.contains(request.id))
    return Fail(
        owner, tag,
        Error(ErrorCode::kConflict, "a sandbox with the id " + request.id + " exists already"));
  if (stopping_)
    return Fail(owner, tag, Error(ErrorCode::kUnavailable, "the launcher is shutting down"));
  auto started =
      StartBox(host_, {berths_, cgroups_, nets_, jails_}, std::move(request), std::move(fds));
  if (!started) return Fail(owner, tag, started.error());
  std::unique_ptr<Box> box = *std::move(started);
  box->serial = next_serial_++;
  box->waiting_client = owner;
  box->waiting_tag = tag;
  Watch(box->birth->report.get(), Watched::kReport, box->serial, EPOLLIN);
  Watch(box->control.get(), Watched::kControl, box->serial, EPOLLIN);
  Watch(box->init.pidfd(), Watched::kPid, box->serial, EPOLLIN);
  serials_[box->id] = box->serial;
  unsettled_.insert(box->serial);
  boxes_[box->serial] = std::move(box);
}

void Launcher::OnReport(Box& box) {
  StageFailure failure{};
  if (!box.birth || !box.birth->report) return;
  const ssize_t got = read(box.birth->report.get(), &failure, sizeof failure);
  if (got < 0) return;
  box.birth->report.Reset();  // which takes it out of the epoll set, too
  if (got != sizeof failure || box.state != BoxState::kStarting)
    return;  // closed by exec: all is well so far
  const std::string stage = StageName(failure.stage);
  Fail(box.waiting_client, box.waiting_tag,
       Error::FromErrno("build the sandbox's jail, stage \"" + stage + "\"", failure.error_number)
           .WithCode(ErrorCode::kIsolationFailed)
           .WithRemedy("run `caisson doctor` to see what this host lacks"));
  box.waiting_client = 0;
  Kill(box);
}

void Launcher::OnReady(Box& box) {
  if (box.state != BoxState::kStarting) return;
  auto received = sys::ReceivePlainPacket(box.control.get(), wire::kMaxFrame);
  if (received.state == sys::PacketState::kWouldBlock) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, box.control.get(), nullptr);
  if (received.state != sys::PacketState::kOk) return;  // init is dying; its pidfd tells
  const auto header = wire::PeekHeader(received.packet.bytes);
  const auto ready = header && header->type == static_cast<uint16_t>(wire::init::Type::kReady)
                         ? wire::Decode<wire::init::Ready>(received.packet.bytes)
                         : std::nullopt;
  Status confirmed =
      ready && ready->version == wire::init::kVersion
          ? ConfirmBox(host_, box)
          : Status(Error(ErrorCode::kProtocol, "the sandbox's init does not speak our protocol"));
  CrashPoint("box confirmed");
  std::vector<sys::UniqueFd> fds;
  if (confirmed) {
    auto handed = HandOver(box);
    if (handed)
      fds = *std::move(handed);
    else
      confirmed = std::move(handed).error();
  }
  if (!confirmed) {
    Fail(box.waiting_client, box.waiting_tag, confirmed.error());
    box.waiting_client = 0;
    return Kill(box);
  }
  box.state = BoxState::kRunning;
  unsettled_.erase(box.serial);
  Reply(box.waiting_client, box.waiting_tag, box.birth->created, std::move(fds));
  box.created = wire::Encode(box.birth->created, 0);
  box.birth.reset();
  box.waiting_client = 0;
}

// What an owner gets beside Created: copies of the control socket and of the files that count.
Result<std::vector<sys::UniqueFd>> Launcher::HandOver(Box& box) {
  std::vector<sys::UniqueFd> fds;
  fds.emplace_back(fcntl(box.control.get(), F_DUPFD_CLOEXEC, 3));
  if (!fds[0])
    return Error::FromErrno("copy the control socket").WithCode(ErrorCode::kResourceExhausted);
  auto add = [&](sys::Controller controller) -> uint8_t {
    sys::UniqueFd events = box.cgroup ? box.cgroup->OpenEvents(controller) : sys::UniqueFd();
    if (!events) return 0;
    fds.push_back(std::move(events));
    return 1;
  };
  const uint8_t memory = add(sys::Controller::kMemory), pids = add(sys::Controller::kPids);
  if (box.birth) {
    box.birth->created.memory_events = memory;
    box.birth->created.pids_events = pids;
  }
  return fds;
}

void Launcher::OnDestroy(uint64_t owner, uint32_t tag, const std::string& id) {
  Box* box = FindRunning(owner, tag, id);
  if (box == nullptr) return;
  box->waiting_client = owner;
  box->waiting_tag = tag;
  Kill(*box);
  // The counters are read while the processes die, and are final for all but those last moments.
  box->last_counters = CountersOf(*box);
  if (box->init.running()) OnInitGone(*box);
}

// Ends a box: SIGKILL to init takes its whole pid namespace along, what it forked and daemonised
// included.
void Launcher::Kill(Box& box) {
  box.state = BoxState::kDying;
  unsettled_.insert(box.serial);
  box.deadline_ns = sys::MonotonicNs() + kDeathDeadlineNs;
  box.init.Kill();
  // On cgroup v1 a frozen process dies only when it is thawed.
  if (box.frozen && box.cgroup) (void)box.cgroup->Thaw();
  box.frozen = false;
  CrashPoint("box killed");
}

void Launcher::OnInitGone(Box& box) {
  const auto exit = box.init.TryReap();
  if (!exit) return;
  if (box.state == BoxState::kStarting) {
    Fail(box.waiting_client, box.waiting_tag,
         Error(ErrorCode::kIsolationFailed,
               "the sandbox's init died before it was ready, with status " +
                   std::to_string(exit->status))
             .WithRemedy("run `caisson doctor`"));
  } else if (box.state == BoxState::kRunning) {
    const auto counters = CountersOf(box);
    const w::Lost lost{box.id, static_cast<uint8_t>(counters.oom_kills > 0), exit->status};
    for (const auto& [serial, owner] : owners_) Send(serial, wire::Encode(lost, 0), {});
  } else if (box.waiting_client != 0) {
    Reply(box.waiting_client, box.waiting_tag, w::Destroyed{box.last_counters});
  }
  Bury(box.serial);
}

void Launcher::Bury(uint64_t serial) {
  const auto found = boxes_.find(serial);
  serials_.erase(found->second->id);
  unsettled_.erase(serial);
  dead_.push_back(std::move(found->second));
  boxes_.erase(found);
}

Box* Launcher::FindRunning(uint64_t owner, uint32_t tag, const std::string& id) {
  const auto found = serials_.find(id);
  if (found == serials_.end()) {
    Fail(owner, tag, Error(ErrorCode::kNotFound, "no sandbox " + id + " is here"));
    return nullptr;
  }
  Box* box = boxes_.at(found->second).get();
  if (box->state != BoxState::kRunning) {
    Fail(owner, tag, Error(ErrorCode::kConflict, "sandbox " + id + " is not running"));
    return nullptr;
  }
  return box;
}

w::Counters Launcher::CountersOf(Box& box) {
  auto disk =
      box.berth && box.berth->disk ? box.berth->disk->Stats() : Result<DiskStats>(DiskStats{});
  return ToCounters(box.cgroup ? box.cgroup->Stats() : sys::CgroupStats{},
                    disk ? *disk : DiskStats{});
}

// Changes the limits of a live box, one mechanism after the other. What the first ones changed
// stays when a later one refuses; the error says which it was.
Result<std::vector<w::LimitFact>> Launcher::ChangeLimits(Box& box, const w::Limits& limits) {
  std::vector<w::LimitFact> facts;
  CAISSON_ASSIGN(const auto plan, PlanLimits(host_, limits));
  if (box.cgroup) {
    CAISSON_ASSIGN(const auto reports, box.cgroup->Update(plan.cgroup));
    facts = ToFacts(reports);
  }
  if (limits.memory_bandwidth_percent != w::kNoLimit) {
    if (!box.bandwidth)
      return Error(ErrorCode::kLimitRefused,
                   "this sandbox was created without a memory bandwidth limit")
          .WithRemedy("create it with one");
    CAISSON_TRY(box.bandwidth->Update(static_cast<uint32_t>(limits.memory_bandwidth_percent)));
    facts.push_back(
        {"memory_bandwidth", 1, box.bandwidth->percent(), std::string(sys::ResctrlGroup::kBy), ""});
  }
  if (limits.disk_bytes != w::kNoLimit || limits.disk_inodes != w::kNoLimit) {
    auto& asked = box.berth->request;
    const uint64_t bytes = limits.disk_bytes != w::kNoLimit ? limits.disk_bytes : asked.disk_bytes;
    const uint64_t inodes =
        limits.disk_inodes != w::kNoLimit ? limits.disk_inodes : asked.disk_inodes;
    CAISSON_ASSIGN(const auto resized, box.berth->disk->Resize(bytes, inodes));
    asked.disk_bytes = bytes;
    asked.disk_inodes = inodes;
    facts.push_back(DiskFact("disk", resized.bytes_limit, asked.disk_backend));
    facts.push_back(DiskFact("inodes", resized.inodes_limit, asked.disk_backend));
  }
  return facts;
}

void Launcher::OnUpdate(uint64_t owner, uint32_t tag, const w::Update& request) {
  Box* box = FindRunning(owner, tag, request.id);
  if (box == nullptr) return;
  auto facts = ChangeLimits(*box, request.limits);
  if (!facts) return Fail(owner, tag, facts.error());
  auto created = wire::Decode<w::Created>(box->created);
  auto& known = created->limits;
  for (const auto& fact : *facts) {
    const auto same = std::find_if(known.begin(), known.end(),
                                   [&](const auto& k) { return k.name == fact.name; });
    if (same != known.end())
      *same = fact;
    else
      known.push_back(fact);
  }
  box->created = wire::Encode(*created, 0);
  Reply(owner, tag, w::Updated{*std::move(facts)});
}

void Launcher::OnFreeze(uint64_t owner, uint32_t tag, const w::Freeze& request) {
  Box* box = FindRunning(owner, tag, request.id);
  if (box == nullptr) return;
  if (!box->cgroup)
    return Fail(owner, tag,
                Error(ErrorCode::kUnsupported, "this host has no cgroup freezer")
                    .WithRemedy("run `caisson doctor`"));
  const bool freeze = request.state == w::Freezer::kFreeze;
  auto done = freeze ? box->cgroup->Freeze(std::chrono::seconds(2)) : box->cgroup->Thaw();
  if (!done) return Fail(owner, tag, done.error());
  box->frozen = freeze;
  Reply(owner, tag, w::Done{});
}

void Launcher::OnStats(uint64_t owner, uint32_t tag, const std::string& id) {
  if (Box* box = FindRunning(owner, tag, id)) Reply(owner, tag, w::StatsReply{CountersOf(*box)});
}

void Launcher::OnList(uint64_t owner, uint32_t tag, const std::string& after) {
  w::Sandboxes reply;
  for (const auto& [id, serial] : serials_)
    if (id > after && boxes_.at(serial)->state == BoxState::kRunning) reply.ids.push_back(id);
  std::sort(reply.ids.begin(), reply.ids.end());
  if (reply.ids.size() > w::kMaxSandboxes) reply.ids.resize(w::kMaxSandboxes);
  Reply(owner, tag, reply);
}

void Launcher::OnAdopt(uint64_t owner, uint32_t tag, const std::string& id) {
  Box* box = FindRunning(owner, tag, id);
  if (box == nullptr) return;
  auto fds = HandOver(*box);
  if (!fds) return Fail(owner, tag, fds.error());
  Reply(owner, tag, w::Adopted{*wire::Decode<w::Created>(box->created)}, *std::move(fds));
}

}  // namespace caisson::launcher
