// The launcher's sandboxes from clone to grave: births, spares, deaths.
#include <fcntl.h>
#include <sys/epoll.h>

#include "launcher/hooks.h"
#include "launcher/launcher.h"
#include "wire/init_protocol.h"

namespace caisson::launcher {
namespace {

constexpr uint64_t kDeathDeadlineNs = 5'000'000'000;

}  // namespace

namespace w = wire::launcher;

// --- births --------------------------------------------------------------------------------------

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
  if (!confirmed) {
    Fail(box.waiting_client, box.waiting_tag, confirmed.error());
    box.waiting_client = 0;
    return Kill(box);
  }
  box.state = BoxState::kRunning;
  unsettled_.erase(box.serial);
  box.created = wire::Encode(box.birth->created, 0);
  box.birth.reset();
  if (box.spare) return spares_.Ready(box.serial);
  HandOut(box);
}

// Answers the create that this running box is for.
void Launcher::HandOut(Box& box) {
  auto handed = HandOver(box);
  if (!handed) {
    Fail(box.waiting_client, box.waiting_tag, handed.error());
    box.waiting_client = 0;
    return Kill(box);
  }
  handed->created.server_us = static_cast<uint32_t>((sys::MonotonicNs() - box.asked_ns) / 1000);
  box.created = wire::Encode(handed->created, 0);
  Reply(box.waiting_client, box.waiting_tag, handed->created, std::move(handed->fds));
  box.waiting_client = 0;
}

Result<Launcher::Handed> Launcher::HandOver(Box& box) {
  Handed handed{*wire::Decode<w::Created>(box.created), {}};
  handed.fds.emplace_back(fcntl(box.control.get(), F_DUPFD_CLOEXEC, 3));
  if (!handed.fds[0])
    return Error::FromErrno("copy the control socket").WithCode(ErrorCode::kResourceExhausted);
  auto add = [&](sys::Controller controller) -> uint8_t {
    sys::UniqueFd events = box.cgroup ? box.cgroup->OpenEvents(controller) : sys::UniqueFd();
    if (!events) return 0;
    handed.fds.push_back(std::move(events));
    return 1;
  };
  handed.created.memory_events = add(sys::Controller::kMemory);
  handed.created.pids_events = add(sys::Controller::kPids);
  return handed;
}

// --- spares --------------------------------------------------------------------------------------

Box* Launcher::ClaimSpare(const w::Create& request) {
  if (!pools_ || !CanBeSpare(host_, request)) return nullptr;
  const auto serial = spares_.Claim(request);
  if (!serial) return nullptr;
  Box& box = *boxes_.at(*serial);
  if (box.init.Ended()) {
    OnInitGone(box);
    return nullptr;
  }
  box.spare = false;
  return &box;
}

// One step towards as many spares as there should be. False when there is nothing to do.
bool Launcher::BeginSpare() {
  auto wanted = spares_.Wanted();
  if (!wanted) return false;
  auto started = StartBox(host_, {berths_, cgroups_, nets_}, *wanted, {});
  if (!started) {
    spares_.GiveUp(*wanted);  // the next create says why
    return true;
  }
  Box& box = Admit(*std::move(started));
  box.spare = true;
  spares_.Began(*wanted, box.serial);
  return true;
}

Box& Launcher::Admit(std::unique_ptr<Box> born) {
  Box& box = *born;
  box.serial = next_serial_++;
  Watch(box.birth->report.get(), Watched::kReport, box.serial, EPOLLIN);
  Watch(box.control.get(), Watched::kControl, box.serial, EPOLLIN);
  Watch(box.init.pidfd(), Watched::kPid, box.serial, EPOLLIN);
  unsettled_.insert(box.serial);
  boxes_[box.serial] = std::move(born);
  return box;
}

// --- ends ----------------------------------------------------------------------------------------

// Ends a box: SIGKILL to init takes its whole pid namespace along, what it forked and daemonised
// included.
void Launcher::Kill(Box& box) {
  if (box.spare) spares_.Lost(box.serial);
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
  host_.gangway->Collect();
  const auto exit = box.init.TryReap();
  if (!exit) return;
  if (box.spare) {
    spares_.Lost(box.serial);  // nobody else knows it
  } else if (box.state == BoxState::kStarting) {
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

// Hands what can be used again to the pools and frees the rest.
void Launcher::Reclaim(std::unique_ptr<Box> box) {
  box->control.Reset();
  if (box->cgroup) cgroups_.Return(*std::move(box->cgroup));
  box->cgroup.reset();
  if (box->net_ns && !stopping_) nets_.Return(std::move(box->net_ns));
  box->bandwidth.reset();
  box->birth.reset();
  if (box->berth) {
    box->berth->lowers.clear();
    box->berth->disk.reset();
    if (!box->quarantined) berths_.Return(std::move(box->berth->ids));
  }
  CrashPoint("box buried");
}

}  // namespace caisson::launcher
