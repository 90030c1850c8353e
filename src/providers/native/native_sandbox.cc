#include "providers/native/native_sandbox.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "providers/native/native_process.h"

namespace caisson::native {

namespace w = wire::init;
namespace l = wire::launcher;
using sandbox::ExecOutcome;
using sandbox::OutcomeStatus;
using sandbox::SandboxStats;

namespace {

SandboxStats ToStats(const l::Counters& c) {
  SandboxStats stats;
  stats.memory_bytes = c.memory_current;
  stats.memory_peak_bytes = c.memory_peak;
  stats.oom_kills = c.oom_kills;
  stats.cpu = std::chrono::microseconds(c.cpu_us);
  stats.cpu_throttled = std::chrono::microseconds(c.cpu_throttled_us);
  stats.pids = c.pids_current;
  stats.pids_limit_hits = c.pids_limit_hits;
  stats.io_read_bytes = c.io_read_bytes;
  stats.io_write_bytes = c.io_write_bytes;
  stats.disk_bytes = c.disk_bytes;
  stats.disk_used_bytes = c.disk_used_bytes;
  stats.disk_inodes = c.disk_inodes;
  stats.disk_used_inodes = c.disk_used_inodes;
  return stats;
}

std::string SignalText(int signo) {
  const char* name = sigabbrev_np(signo);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signo);
}

// What can be said from init's report alone.
ExecOutcome FirstVerdict(const w::Exited& exited) {
  ExecOutcome outcome;
  outcome.usage.user_cpu = std::chrono::microseconds(exited.usage.user_us);
  outcome.usage.system_cpu = std::chrono::microseconds(exited.usage.system_us);
  outcome.usage.wall = std::chrono::nanoseconds(exited.usage.wall_ns);
  outcome.usage.max_rss_bytes = exited.usage.max_rss_kib * 1024;
  outcome.usage.stdout_bytes = exited.stdout_end;
  outcome.usage.stderr_bytes = exited.stderr_end;
  outcome.usage.dropped_bytes = exited.stdout_dropped + exited.stderr_dropped;
  if (exited.ended == w::Ended::kExited)
    outcome.exit_code = exited.code;
  else
    outcome.signal = exited.code;
  switch (exited.cause) {
    case w::Cause::kTimeout:
      outcome.status = OutcomeStatus::kTimeout;
      outcome.reason = "its wall time was over; the whole process tree was killed";
      return outcome;
    case w::Cause::kOutputLimit:
      outcome.status = OutcomeStatus::kOutputLimit;
      outcome.reason = "it wrote more output than it may; the whole process tree was killed";
      return outcome;
    case w::Cause::kKilledByOwner:
      outcome.status = OutcomeStatus::kCancelled;
      outcome.reason = "the caller ended it";
      return outcome;
    case w::Cause::kItself:
      break;
  }
  if (exited.ended == w::Ended::kExited) {
    outcome.status = OutcomeStatus::kExited;
    outcome.reason = "exit code " + std::to_string(exited.code);
  } else if (exited.code == SIGSYS) {
    outcome.status = OutcomeStatus::kPolicy;
    outcome.reason = "it made a system call that the policy forbids (SIGSYS)";
  } else {
    outcome.status = OutcomeStatus::kSignaled;
    outcome.reason = "ended by " + SignalText(exited.code);
  }
  return outcome;
}

// Reserve of a full disk: less than a page, or no inode, is full.
bool DiskIsFull(const w::Exited& exited) {
  return exited.disk_free_bytes < 4096 || exited.disk_free_inodes == 0;
}

bool MayHideALimit(const ExecOutcome& outcome) {
  return outcome.status == OutcomeStatus::kSignaled ||
         (outcome.status == OutcomeStatus::kExited && outcome.exit_code != 0);
}

// Of a command that init could not report, for init went, too. With nothing else left to kill, the
// kernel's choice at the memory limit is init.
ExecOutcome VerdictOfLost(LimitCounts before, LimitCounts now) {
  ExecOutcome outcome;
  outcome.reason = "the sandbox ended while the command ran";
  if (now.oom_kills == before.oom_kills) return outcome;
  outcome.status = OutcomeStatus::kOutOfMemory;
  outcome.reason = "the sandbox reached its memory limit and the kernel ended all of it";
  return outcome;
}

// The kernel's counters at the start and end of a command decide whether a limit ended it.
Task<ExecOutcome> JudgeExit(std::shared_ptr<const LimitEvents> events, LimitCounts before,
                            std::optional<w::Exited> reported) {
  if (!reported) co_return VerdictOfLost(before, events->Read());
  const w::Exited exited = *reported;
  ExecOutcome outcome = FirstVerdict(exited);
  if (!MayHideALimit(outcome)) co_return outcome;
  const LimitCounts now = events->Read();
  if (now.oom_kills > before.oom_kills) {
    outcome.status = OutcomeStatus::kOutOfMemory;
    outcome.reason = "the sandbox reached its memory limit and the kernel killed a process of it";
  } else if (now.refused_forks > before.refused_forks) {
    outcome.status = OutcomeStatus::kProcessLimit;
    outcome.reason = "the sandbox reached its process limit while the command ran";
  } else if (DiskIsFull(exited)) {
    outcome.status = OutcomeStatus::kDiskFull;
    outcome.reason = exited.disk_free_inodes == 0 ? "the sandbox's disk has no inode left"
                                                  : "the sandbox's disk is full";
  }
  co_return outcome;
}

Error StartError(const w::Started& started, const sandbox::ExecSpec& spec) {
  const std::string command = spec.argv.empty() ? "" : spec.argv[0];
  const int error = started.error_number;
  switch (started.stage) {
    case w::StartStage::kExec:
      if (error == ENOENT)
        return Error(ErrorCode::kNotFound,
                     "the command \"" + command + "\" was not found in the sandbox")
            .WithRemedy("give a path that exists inside, or install it in the root");
      return Error::FromErrno("run \"" + command + "\" in the sandbox", error)
          .WithCode(ErrorCode::kPermissionDenied)
          .WithRemedy("it must be an executable file for this machine");
    case w::StartStage::kCwd:
      return Error::FromErrno("enter the working directory \"" + spec.cwd + "\"", error)
          .WithCode(ErrorCode::kInvalidArgument)
          .WithRemedy("give an absolute path of a directory inside the sandbox, not below /proc");
    case w::StartStage::kUser:
      return Error::FromErrno("become the user \"" + spec.user + "\"", error)
          .WithCode(ErrorCode::kInvalidArgument)
          .WithRemedy(
              "give a name of the sandbox's /etc/passwd or a uid from 0 to 65534; a strict sandbox "
              "has one user only");
    case w::StartStage::kRlimit:
      return Error::FromErrno("set the command's resource limits", error)
          .WithCode(ErrorCode::kLimitRefused);
    default:
      return Error::FromErrno("start \"" + command + "\" in the sandbox", error)
          .WithCode(error == EAGAIN || error == ENOMEM || error == EMFILE
                        ? ErrorCode::kResourceExhausted
                        : ErrorCode::kIo);
  }
}

Status CheckExec(const sandbox::ExecSpec& spec) {
  auto has_nul = [](const std::string& s) { return s.find('\0') != std::string::npos; };
  if (spec.argv.empty() || spec.argv[0].empty())
    return Error(ErrorCode::kInvalidArgument, "there is no command to run")
        .WithRemedy("give at least one argument");
  if (std::any_of(spec.argv.begin(), spec.argv.end(), has_nul))
    return Error(ErrorCode::kInvalidArgument, "an argument of the command holds a NUL byte")
        .WithRemedy("pass binary data on stdin or in a file");
  if (has_nul(spec.cwd) || has_nul(spec.user))
    return Error(ErrorCode::kInvalidArgument, "the working directory or user holds a NUL byte");
  if (!spec.cwd.empty() && spec.cwd[0] != '/')
    return Error(ErrorCode::kInvalidArgument,
                 "the working directory \"" + spec.cwd + "\" is not absolute")
        .WithRemedy("start it with /");
  return {};
}

Status AddEnv(std::vector<std::string>& out, const std::map<std::string, std::string>& env) {
  for (const auto& [name, value] : env) {
    if (name.empty() || name.find('=') != std::string::npos ||
        name.find('\0') != std::string::npos || value.find('\0') != std::string::npos)
      return Error(ErrorCode::kInvalidArgument,
                   "\"" + name + "\" cannot be an environment variable")
          .WithRemedy("use NAME=value without NUL bytes");
    out.push_back(name + "=" + value);
  }
  return {};
}

uint64_t Or(const std::optional<uint64_t>& value) { return value.value_or(l::kNoLimit); }

}  // namespace

std::vector<sandbox::LimitState> ToStates(const std::vector<l::LimitFact>& facts) {
  std::vector<sandbox::LimitState> states;
  for (const auto& fact : facts)
    states.push_back({fact.name, fact.enforced != 0, fact.value, fact.by, fact.reason});
  return states;
}

l::Limits ToWire(const sandbox::Limits& limits) {
  l::Limits wire;
  wire.memory_bytes = Or(limits.memory_bytes);
  wire.swap_bytes = Or(limits.swap_bytes);
  if (limits.cpu_millis) wire.cpu_millis = *limits.cpu_millis;
  if (limits.pids) wire.pids = *limits.pids;
  wire.disk_bytes = Or(limits.disk_bytes);
  wire.disk_inodes = Or(limits.disk_inodes);
  if (limits.open_files) wire.open_files = *limits.open_files;
  wire.io_read_bps = Or(limits.io_read_bps);
  wire.io_write_bps = Or(limits.io_write_bps);
  wire.io_read_iops = Or(limits.io_read_iops);
  wire.io_write_iops = Or(limits.io_write_iops);
  if (limits.memory_bandwidth_percent)
    wire.memory_bandwidth_percent = *limits.memory_bandwidth_percent;
  return wire;
}

Status CheckPossible(const l::Limits& limits) {
  const auto impossible = [](const char* what, const char* remedy) {
    return Error(ErrorCode::kLimitRefused, what).WithRemedy(remedy);
  };
  if (limits.memory_bytes < 4 * sandbox::kMiB)
    return impossible("a memory limit below 4 MiB cannot hold a sandbox", "ask for at least 4M");
  if (limits.pids < 4)
    return impossible("a process limit below 4 cannot hold a sandbox and a command",
                      "ask for at least 4");
  if (limits.cpu_millis < 10)
    return impossible("a CPU limit below 0.01 cores is too little to start",
                      "ask for at least 0.01");
  if (limits.disk_bytes < sandbox::kMiB)
    return impossible("a disk below 1 MiB cannot hold a sandbox", "ask for at least 1M");
  if (limits.open_files != l::kNoLimit && (limits.open_files < 8 || limits.open_files > 1048576))
    return impossible("an open-files limit must lie between 8 and 1048576", "ask for e.g. 1024");
  return {};
}

NativeSandbox::NativeSandbox(std::string id, std::shared_ptr<LauncherClient> launcher,
                             std::shared_ptr<InitClient> init, LimitEvents events,
                             sandbox::SandboxReport report, SandboxDefaults defaults)
    : id_(std::move(id)),
      launcher_(std::move(launcher)),
      init_(std::move(init)),
      events_(std::make_shared<const LimitEvents>(std::move(events))),
      before_(events_->Read()),
      report_(std::move(report)),
      defaults_(std::move(defaults)),
      files_(init_) {}

NativeSandbox::~NativeSandbox() { init_->Close(); }

Error NativeSandbox::WhyItEnded() const {
  if (events_->Read().oom_kills > before_.oom_kills)
    return Error(ErrorCode::kGone, "sandbox " + id_ +
                                       " reached its memory limit with nothing left to free, and "
                                       "the kernel ended it")
        .WithRemedy("make a new one with more memory");
  return Error(ErrorCode::kGone,
               "sandbox " + id_ + " has ended" + (launcher_->closed() ? ": its launcher died" : ""))
      .WithRemedy("make a new one");
}

Task<Result<std::unique_ptr<sandbox::Process>>> NativeSandbox::Start(sandbox::ExecSpec spec) {
  if (destroyed_) co_return Error(ErrorCode::kGone, "sandbox " + id_ + " has been destroyed");
  CAISSON_CO_TRY(CheckExec(spec));
  w::Start start;
  start.argv = spec.argv;
  std::map<std::string, std::string> env = {{"LANG", "C.UTF-8"}};
  for (const auto& [name, value] : defaults_.env) env[name] = value;
  for (const auto& [name, value] : spec.env) env[name] = value;
  CAISSON_CO_TRY(AddEnv(start.env, env));
  start.cwd = spec.cwd.empty() ? "/workspace" : spec.cwd;
  start.user = spec.user;
  start.stdio = spec.stdio == sandbox::Stdio::kPty ? w::Stdio::kPty : w::Stdio::kPipes;
  start.stdin_kind =
      spec.stdin_kind == sandbox::StdinKind::kOpen ? w::Stdin::kOpen : w::Stdin::kNull;
  start.overflow = spec.on_overflow == sandbox::OnOverflow::kBlock ? w::Overflow::kBlock
                                                                   : w::Overflow::kDropOldest;
  start.rows = spec.rows;
  start.cols = spec.cols;
  start.timeout_ns = static_cast<uint64_t>(
      std::chrono::nanoseconds(spec.timeout.value_or(defaults_.wall_time)).count());
  start.output_limit = spec.output_limit.value_or(defaults_.output_bytes);
  start.ring_bytes = 1024 * 1024;
  start.credit = NativeProcess::kWindow;
  start.label = spec.label.substr(0, w::kMaxText);
  if (wire::Encode(start, 0).size() > wire::kMaxFrame)
    co_return Error(ErrorCode::kInvalidArgument,
                    "arguments and environment of the command are larger than " +
                        std::to_string(wire::kMaxFrame / 1024) + " KiB together")
        .WithRemedy("pass large data on stdin or in a file");
  const LimitCounts before = events_->Read();
  auto init = init_;
  auto started = co_await init->Call<w::Started>(std::move(start));
  if (!started && init->closed()) co_return WhyItEnded();
  if (!started) {
    // Init refused the request itself: what is not found then is the user, not the command.
    Error error = std::move(started).error();
    const bool request =
        error.code() == ErrorCode::kNotFound || error.code() == ErrorCode::kInvalidArgument;
    if (!request || !error.remedy().empty()) co_return error;
    co_return std::move(error)
        .WithCode(ErrorCode::kInvalidArgument)
        .WithRemedy(
            "give a user of the sandbox's /etc/passwd or a uid from 0 to 65534, and absolute paths "
            "inside");
  }
  if (started->error_number != 0) co_return StartError(*started, spec);
  Judge judge = [events = events_, before](std::optional<w::Exited> exited) {
    return JudgeExit(events, before, exited);
  };
  co_return std::unique_ptr<sandbox::Process>(
      new NativeProcess(init, started->process, started->pid, std::move(judge)));
}

Task<Result<std::unique_ptr<sandbox::Process>>> NativeSandbox::Attach(uint32_t handle,
                                                                      uint64_t stdout_from,
                                                                      uint64_t stderr_from) {
  auto init = init_;
  auto processes = co_await Processes();
  if (!processes) co_return std::move(processes).error();
  const auto found = std::find_if(processes->begin(), processes->end(),
                                  [&](const auto& p) { return p.handle == handle; });
  if (found == processes->end())
    co_return Error(ErrorCode::kNotFound,
                    "no process " + std::to_string(handle) + " in sandbox " + id_);
  auto attached = co_await init->Call<w::Attached>(
      w::Attach{handle, stdout_from, stderr_from, NativeProcess::kWindow});
  if (!attached) co_return std::move(attached).error();
  // What a limit did before we came is counted against this command, for it may well have been.
  Judge judge = [events = events_](std::optional<w::Exited> exited) {
    return JudgeExit(events, {}, exited);
  };
  auto process = std::make_unique<NativeProcess>(init, handle, found->pid, std::move(judge));
  process->StartAt(attached->stdout_from, attached->stderr_from);
  co_return std::unique_ptr<sandbox::Process>(std::move(process));
}

Task<Result<std::vector<sandbox::ProcessInfo>>> NativeSandbox::Processes() {
  auto init = init_;
  auto reply = co_await init->Call<w::Processes>(w::ListProcesses{});
  if (!reply) co_return std::move(reply).error();
  std::vector<sandbox::ProcessInfo> infos;
  for (auto& p : reply->processes)
    infos.push_back({p.process, p.pid, p.ended != 0, p.started_ns, p.stdout_begin, p.stdout_end,
                     p.stderr_begin, p.stderr_end, std::move(p.command), std::move(p.label)});
  co_return infos;
}

Task<Status> NativeSandbox::Release(uint32_t handle) {
  auto init = init_;
  auto done = co_await init->Call<w::Done>(w::Release{handle});
  if (!done) co_return std::move(done).error();
  co_return Status();
}

Task<Status> NativeSandbox::SetOpenFiles(uint32_t open_files) {
  auto init = init_;
  w::UpdateDefaults defaults;
  defaults.rlimits.push_back({RLIMIT_NOFILE, open_files, open_files});
  auto done = co_await init->Call<w::Done>(std::move(defaults));
  if (!done) co_return std::move(done).error();
  defaults_.open_files = open_files;
  co_return Status();
}

Task<Result<std::vector<sandbox::LimitState>>> NativeSandbox::Update(sandbox::Limits limits) {
  const l::Limits asked = ToWire(limits);
  CAISSON_CO_TRY(CheckPossible(asked));
  auto updated = co_await launcher_->Call<l::Updated>(l::Update{id_, asked});
  if (!updated) co_return std::move(updated).error();
  auto states = ToStates(updated->reply.limits);
  if (limits.open_files) {
    CAISSON_CO_TRY(co_await SetOpenFiles(*limits.open_files));
    states.push_back({"open_files", true, *limits.open_files,
                      "RLIMIT_NOFILE of commands started from now on", ""});
  }
  if (limits.wall_time) {
    defaults_.wall_time = *limits.wall_time;
    states.push_back({"wall_time", true, static_cast<uint64_t>(limits.wall_time->count()),
                      "init's timer, for commands started from now on", ""});
  }
  if (limits.output_bytes) {
    defaults_.output_bytes = *limits.output_bytes;
    states.push_back({"output", true, *limits.output_bytes,
                      "init's counter, for commands started from now on", ""});
  }
  for (const auto& state : states) {
    const auto same = std::find_if(report_.limits.begin(), report_.limits.end(),
                                   [&](const auto& k) { return k.name == state.name; });
    if (same != report_.limits.end())
      *same = state;
    else
      report_.limits.push_back(state);
  }
  co_return states;
}

Task<Status> NativeSandbox::SetFrozen(l::Freezer state) {
  auto done = co_await launcher_->Call<l::Done>(l::Freeze{id_, state});
  if (!done) co_return std::move(done).error();
  co_return Status();
}
Task<Status> NativeSandbox::Pause() { return SetFrozen(l::Freezer::kFreeze); }
Task<Status> NativeSandbox::Resume() { return SetFrozen(l::Freezer::kThaw); }

Task<Result<SandboxStats>> NativeSandbox::Stats() {
  auto stats = co_await launcher_->Call<l::StatsReply>(l::Stats{id_});
  if (!stats) co_return std::move(stats).error();
  co_return ToStats(stats->reply.counters);
}

Task<Result<SandboxStats>> NativeSandbox::Destroy() {
  if (std::exchange(destroyed_, true))
    co_return Error(ErrorCode::kGone, "sandbox " + id_ + " has been destroyed already");
  auto destroyed = co_await launcher_->Call<l::Destroyed>(l::Destroy{id_});
  init_->Close();
  // It ended by itself before: that is what was asked for.
  if (!destroyed && destroyed.error().code() == ErrorCode::kNotFound) co_return SandboxStats{};
  if (!destroyed) co_return std::move(destroyed).error();
  co_return ToStats(destroyed->reply.counters);
}

}  // namespace caisson::native
