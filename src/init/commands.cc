#include "init/commands.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "init/tree.h"

namespace caisson::init {
namespace {

using wire::init::Scope;

constexpr uint64_t kFirstPauseNs = 1'000'000;  // between two passes over a tree being killed
constexpr uint64_t kLongestPauseNs = 100'000'000;
constexpr uint64_t kPatienceNs = 500'000'000;  // with a supervisor that does not see its tree end
constexpr size_t kFrameBudget = wire::kMaxFrame - 8 * 1024;

bool ValidEnums(const wire::init::Start& start) {
  return start.stdio <= wire::init::Stdio::kPty && start.stdin_kind <= wire::init::Stdin::kOpen &&
         start.overflow <= wire::init::Overflow::kDropOldest;
}

}  // namespace

Status Commands::Open() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error::FromErrno("making the report pipe");
  report_read_.Reset(ends[0]);
  report_write_.Reset(ends[1]);  // blocks: a supervisor waits rather than loses a report
  fcntl(report_read_.get(), F_SETFL, O_NONBLOCK);
  if (!poller_.Add(report_read_.get(), EPOLLIN, {Source::kReports, 0})) {
    return Error::FromErrno("watching the report pipe");
  }
  return {};
}

Process* Commands::Find(uint32_t id) {
  const auto found = processes_.find(id);
  return found == processes_.end() ? nullptr : found->second.get();
}

Process* Commands::Expect(uint32_t id, uint32_t tag) {
  Process* process = Find(id);
  if (process != nullptr && !process->released() && process->state() != Process::State::kStarting) {
    return process;
  }
  outbox_.SendFailed(tag, ESRCH, "there is no process " + std::to_string(id));
  return nullptr;
}

// --- requests -----------------------------------------------------------------------------------

Result<uint32_t> Commands::StartProcess(wire::init::Start& request) {
  if (!ValidEnums(request)) return Error::FromErrno("unknown kind of stdio", EINVAL);
  if (processes_.size() >= wire::init::kMaxProcesses) {
    return Error::FromErrno("too many processes; release ended ones", EAGAIN);
  }
  CAISSON_ASSIGN(User user, ResolveUser(request.user.empty() ? default_user_ : request.user));
  CAISSON_ASSIGN(SpawnPlan plan,
                 SpawnPlan::Create(request, std::move(user), privileges_, defaults_));
  CAISSON_ASSIGN(Supervision * block, pool_.Take());
  const uint32_t id = ++last_id_;
  auto process = Process::Create(id, request, std::move(plan), privileges_, block,
                                 report_write_.get(), poller_);
  if (!process) {
    pool_.Return(block);
    return std::move(process).error();
  }
  processes_.emplace(id, *std::move(process));
  return id;
}

void Commands::Handle(wire::init::Start& request, uint32_t tag) {
  const auto id = StartProcess(request);
  if (!id) return outbox_.SendFailed(tag, id.error());
  Find(*id)->SetStartTag(tag);
}

void Commands::Handle(wire::init::Input& request, uint32_t tag) {
  if (Process* process = Expect(request.process, tag)) process->Input(request, tag, outbox_);
}

void Commands::Handle(wire::init::Signal& request, uint32_t tag) {
  Process* process = Expect(request.process, tag);
  if (process == nullptr) return;
  if (request.signo < 1 || request.signo > 64 || request.scope > Scope::kTree) {
    return outbox_.SendFailed(tag, EINVAL, "there is no such signal or scope");
  }
  const int error = SendSignal(*process, request.signo, request.scope);
  if (error == 0) return outbox_.SendDone(tag);
  outbox_.SendFailed(tag, error,
                     error == ESRCH ? "the process has ended" : "the kernel refused the signal");
}

void Commands::Handle(wire::init::Resize& request, uint32_t tag) {
  Process* process = Expect(request.process, tag);
  if (process == nullptr) return;
  const Status resized = process->Resize(request.rows, request.cols);
  if (!resized) return outbox_.SendFailed(tag, resized.error());
  outbox_.SendDone(tag);
}

void Commands::Handle(wire::init::Attach& request, uint32_t tag) {
  if (Process* process = Expect(request.process, tag)) outbox_.Send(process->Attach(request), tag);
}

void Commands::Handle(wire::init::Credit& request, uint32_t) {
  // No reply, so none for a process that ended and was released meanwhile.
  if (Process* process = Find(request.process)) process->AddCredit(request.bytes);
}

void Commands::Handle(wire::init::Detach& request, uint32_t tag) {
  Process* process = Expect(request.process, tag);
  if (process == nullptr) return;
  process->Detach();
  outbox_.SendDone(tag);
}

void Commands::Handle(wire::init::Release& request, uint32_t tag) {
  Process* process = Expect(request.process, tag);
  if (process == nullptr) return;
  if (process->command_lives()) return outbox_.SendFailed(tag, EBUSY, "the process is running");
  process->Release();
  outbox_.SendDone(tag);
}

void Commands::Handle(wire::init::ListProcesses&, uint32_t tag) {
  std::vector<uint32_t> ids;
  for (const auto& [id, process] : processes_) {
    if (!process->released() && process->state() != Process::State::kStarting) ids.push_back(id);
  }
  std::ranges::sort(ids);
  wire::init::Processes reply;
  size_t size = 0;
  for (const uint32_t id : ids) {
    wire::init::ProcessInfo info = Find(id)->Info();
    size += 64 + info.command.size() + info.label.size();
    if (size > kFrameBudget) {
      reply.more = 1;
      break;
    }
    reply.processes.push_back(std::move(info));
  }
  outbox_.Send(reply, tag);
}

void Commands::Handle(wire::init::UpdateDefaults& request, uint32_t tag) {
  for (const wire::init::Rlimit& limit : request.rlimits) {
    if (limit.resource >= RLIM_NLIMITS || limit.soft > limit.hard) {
      return outbox_.SendFailed(tag, EINVAL, "an rlimit is unknown or has soft above hard");
    }
  }
  for (const wire::init::Rlimit& limit : request.rlimits) {
    std::erase_if(defaults_, [&](const auto& old) { return old.resource == limit.resource; });
    defaults_.push_back(limit);
  }
  outbox_.SendDone(tag);
}

// --- events -------------------------------------------------------------------------------------

void Commands::OnReports() {
  uint32_t ids[64];
  const ssize_t got = read(report_read_.get(), ids, sizeof ids);
  for (ssize_t i = 0; i < got / static_cast<ssize_t>(sizeof ids[0]); ++i) {
    if (Process* process = Find(ids[i])) Inspect(*process);
  }
}

void Commands::Inspect(Process& process) {
  const Supervision* block = process.block();
  if (block == nullptr) return;
  if (block->spawned.load() && process.state() == Process::State::kStarting) {
    const bool runs = process.OnSpawned();
    if (process.start_tag()) outbox_.Send(process.started(), *process.start_tag());
    process.SetStartTag(std::nullopt);
    if (!runs) return process.Release();
  }
  if (block->ended.load() && process.state() == Process::State::kRunning) {
    process.OnEnded(block->status, block->usage, block->ended_ns);
  }
}

void Commands::OnEvent(Token token, uint32_t events) {
  if (Process* process = Find(token.id)) process->OnEvent(token.source, events, outbox_);
}

void Commands::Return(Supervision* block) {
  if (block != nullptr) pool_.Return(block);
}

bool Commands::OwnsCommand(const Process& process) const {
  siginfo_t info{};
  const auto pid = static_cast<id_t>(process.child_pid());
  return waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void Commands::OnSupervisorKilled(Process& process) {
  process.tree_lost = true;
  if (!process.command_lives() || process.released()) return;
  Supervision& block = *process.block();
  const pid_t child = process.child_pid();
  if (child != 0 && OwnsCommand(process)) {
    // It has fallen to init and goes on, unless it was caught before its exec.
    if (NameOf(child) != kSupervisorName) block.spawned.store(true);
    const ScopedCaps right = RightToKill(privileges_);
    if (!block.spawned.load()) kill(child, SIGKILL);
    return Inspect(process);
  }
  if (!block.spawned.load() && child == 0) block.report.error_number.store(ECHILD);
  block.spawned.store(true);
  Inspect(process);
  // Reaped by the supervisor, which did not live to tell.
  if (!process.released()) process.OnEnded(SIGKILL, rusage{}, MonotonicNs());
}

bool Commands::OnReaped(pid_t pid, int status, const rusage& usage) {
  for (auto& [id, process] : processes_) {
    if (process->supervisor() == pid) {
      Inspect(*process);
      if (WIFSIGNALED(status)) OnSupervisorKilled(*process);
      Return(process->OnSupervisorGone());
      return true;
    }
    if (process->child_pid() == pid && process->command_lives()) {
      if (process->block() != nullptr) {
        process->block()->spawned.store(true);
        Inspect(*process);
      }
      process->OnEnded(status, usage, MonotonicNs());
      Return(process->ReleaseBlock());
      return true;
    }
  }
  return false;
}

bool Commands::Step() {
  bool more = false;
  uint64_t now = 0;
  next_deadline_ = Process::kNever;
  for (auto at = processes_.begin(); at != processes_.end();) {
    Process& process = *at->second;
    if (process.NextDeadline() != Process::kNever) {
      if (now == 0) now = MonotonicNs();
      process.OnTick(now);
    }
    more |= process.Step(outbox_);
    if (process.TakeKillOrder()) BeginKilling(process);
    if (process.killing.next_ns <= now) ContinueKilling(process, now);
    next_deadline_ = std::min(next_deadline_, process.NextDeadline());
    if (process.Disposable()) {
      released_output_bytes_ += process.output_bytes();
      at = processes_.erase(at);
    } else {
      ++at;
    }
  }
  return more;
}

void Commands::ForgetOwner() {
  for (auto& [id, process] : processes_) process->ForgetOwner();
}

uint32_t Commands::known() const {
  return static_cast<uint32_t>(std::ranges::count_if(processes_, [](const auto& item) {
    return !item.second->released() && item.second->state() != Process::State::kStarting;
  }));
}

uint64_t Commands::output_bytes() const {
  uint64_t sum = released_output_bytes_;
  for (const auto& [id, process] : processes_) sum += process->output_bytes();
  return sum;
}

// --- signals ------------------------------------------------------------------------------------

bool Commands::IsSupervisor(pid_t pid) const {
  return std::ranges::any_of(processes_,
                             [pid](const auto& p) { return p.second->supervisor() == pid; });
}

std::vector<pid_t> Commands::OrphanRoots() const {
  std::vector<pid_t> roots = ChildrenOf(getpid());
  std::erase_if(roots, [this](pid_t pid) { return IsSupervisor(pid); });
  return roots;
}

std::vector<pid_t> Commands::RootsOf(const Process& process) const {
  if (process.supervisor() != 0) return ChildrenOf(process.supervisor());
  return process.tree_lost ? OrphanRoots() : std::vector<pid_t>{};
}

int Commands::SendSignal(Process& process, int signo, Scope scope) {
  const ScopedCaps right = RightToKill(privileges_);
  process.NoteOwnerSignal(signo);
  const pid_t pid = process.child_pid();
  if (scope == Scope::kTree && signo == SIGKILL) {
    BeginKilling(process);
    return 0;
  }
  // The command is a child of its supervisor or of init: its pid is its own while it is listed.
  const std::vector<pid_t> roots = RootsOf(process);
  const bool lives = process.command_lives() && std::ranges::find(roots, pid) != roots.end();
  if (scope == Scope::kProcess) return lives ? (kill(pid, signo) == 0 ? 0 : errno) : ESRCH;
  if (scope == Scope::kGroup && lives) return kill(-pid, signo) == 0 ? 0 : errno;
  int verdict = ESRCH;
  // The kernel reaches a whole group in one step: no child that is being forked can miss it. The
  // number is the group's own while its leader is listed.
  if (lives) verdict = kill(-pid, signo) == 0 ? 0 : errno;
  if (scope == Scope::kGroup && lives) return verdict;
  const bool rest = SignalEach(process, signo, [&](pid_t member) {
    const bool in_group = getpgid(member) == pid;
    return scope == Scope::kGroup ? in_group : !(lives && in_group);
  });
  return rest ? 0 : verdict;
}

template <typename Wanted>
bool Commands::SignalEach(const Process& process, int signo, Wanted wanted) {
  constexpr int kMaxRounds = 64;  // against a tree that grows faster than it is walked
  std::vector<pid_t> seen;
  bool reached = false;
  // A child whose parent dies during a walk can be missed by it, but not by the next.
  for (int round = 0, quiet = 0; round < kMaxRounds && quiet < 2; ++round) {
    std::vector<pid_t> fresh;
    std::ranges::set_difference(TreeOf(RootsOf(process)), seen, std::back_inserter(fresh));
    quiet = fresh.empty() ? quiet + 1 : 0;
    for (const pid_t member : fresh) {
      if (wanted(member) && kill(member, signo) == 0) reached = true;
    }
    seen.insert(seen.end(), fresh.begin(), fresh.end());
    std::ranges::sort(seen);
  }
  return reached;
}

void Commands::BeginKilling(Process& process) {
  const uint64_t now = MonotonicNs();
  process.killing = {.since_ns = now, .next_ns = now, .pause_ns = kFirstPauseNs};
  ContinueKilling(process, now);
}

void Commands::ContinueKilling(Process& process, uint64_t now) {
  const ScopedCaps right = RightToKill(privileges_);
  const size_t found = KillTrees([&] { return RootsOf(process); });
  const bool supervised = process.supervisor() != 0;
  if (supervised) {
    kill(process.supervisor(), SIGCONT);
    // Stopped again and again from inside: then init reaps its tree itself.
    if (now - process.killing.since_ns > kPatienceNs) kill(process.supervisor(), SIGKILL);
  }
  process.killing.next_ns =
      found == 0 && !supervised ? Process::kNever : now + process.killing.pause_ns;
  process.killing.pause_ns = std::min(process.killing.pause_ns * 2, kLongestPauseNs);
}

void Commands::KillEverything() {
  const ScopedCaps right = RightToKill(privileges_);
  if (getpid() == 1) {
    kill(-1, SIGKILL);
    return;  // the kernel kills what is left when PID 1 exits
  }
  const uint64_t until = MonotonicNs() + 5'000'000'000;
  while (MonotonicNs() < until) {
    size_t found = 0;
    for (auto& [id, process] : processes_) {
      if (process->supervisor() != 0) found += KillTrees([&] { return RootsOf(*process); });
    }
    found += KillTrees([&] { return OrphanRoots(); });
    pid_t pid;
    int status;
    rusage usage;
    while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) OnReaped(pid, status, usage);
    if (found == 0 && pid < 0) return;
    if (found == 0) {
      for (auto& [id, process] : processes_) {
        if (process->supervisor() != 0) kill(process->supervisor(), SIGKILL);
      }
    }
    usleep(1000);
  }
}

}  // namespace caisson::init
