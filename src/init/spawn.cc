#include "init/spawn.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "init/raw_syscall.h"

namespace caisson::init {
namespace {

using wire::init::Rlimit;
using wire::init::Start;
using wire::init::StartStage;

constexpr std::string_view kDefaultPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr char kOomScore[] = "900";  // above init's own: the kernel prefers a command to init
constexpr size_t kMaxCandidates = 256;

Error Invalid(std::string what) { return Error::FromErrno(std::move(what), EINVAL); }

Status CheckRequest(const Start& start) {
  const auto has_nul = [](const std::string& s) { return s.contains('\0'); };
  if (start.argv.empty() || start.argv[0].empty()) return Invalid("argv names no program");
  if (std::ranges::any_of(start.argv, has_nul)) return Invalid("an argument contains a NUL byte");
  if (std::ranges::any_of(start.env, has_nul))
    return Invalid("the environment contains a NUL byte");
  for (const std::string& entry : start.env) {
    const size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return Invalid("an environment entry is not NAME=value");
    }
  }
  if (has_nul(start.cwd)) return Invalid("the working directory contains a NUL byte");
  if (!start.cwd.empty() && start.cwd[0] != '/') {
    return Invalid("the working directory is not an absolute path");
  }
  return {};
}

Status AddLimits(std::vector<Rlimit>& limits, const std::vector<Rlimit>& more) {
  for (const Rlimit& limit : more) {
    if (limit.resource >= RLIM_NLIMITS) return Invalid("there is no such rlimit");
    if (limit.soft > limit.hard) return Invalid("an rlimit's soft value is above its hard one");
    const auto same = std::ranges::find(limits, limit.resource, &Rlimit::resource);
    if (same != limits.end()) {
      *same = limit;
    } else {
      limits.push_back(limit);
    }
  }
  return {};
}

const std::string* FindVariable(const std::vector<std::string>& env, std::string_view prefix) {
  const auto found =
      std::ranges::find_if(env, [&](const std::string& e) { return e.starts_with(prefix); });
  return found == env.end() ? nullptr : &*found;
}

void AddVariable(std::vector<std::string>& env, std::string_view prefix, std::string_view value) {
  if (value.empty() || FindVariable(env, prefix) != nullptr) return;
  env.push_back(std::string(prefix).append(value));
}

std::vector<std::string> CandidatesFor(const std::string& program, std::string_view path) {
  if (program.contains('/')) return {program};
  std::vector<std::string> candidates;
  while (candidates.size() < kMaxCandidates) {
    const size_t colon = path.find(':');
    std::string candidate(path.substr(0, colon));
    candidate += candidate.empty() || candidate.ends_with('/') ? "" : "/";
    candidates.push_back(candidate + program);
    if (colon == std::string_view::npos) break;
    path.remove_prefix(colon + 1);
  }
  return candidates;
}

std::vector<char*> PointersTo(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  pointers.reserve(strings.size() + 1);
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

// --- in the child ---------------------------------------------------------------------------

template <typename T>
CAISSON_NO_SANITIZE long Arg(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

CAISSON_NO_SANITIZE long RawSetCaps(uint64_t permitted, uint64_t effective) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2];
  for (int i = 0; i < 2; ++i) {
    data[i].permitted = static_cast<uint32_t>(permitted >> (32 * i));
    data[i].effective = static_cast<uint32_t>(effective >> (32 * i));
    data[i].inheritable = 0;
  }
  return RawSyscall(SYS_capset, Arg(&header), Arg(&data[0]));
}

CAISSON_NO_SANITIZE long RawSwitchUser(uint64_t held, uint64_t kept, const User& user) {
  long result = RawSetCaps(held, held);
  if (result == 0) {
    result =
        RawSyscall(SYS_setgroups, static_cast<long>(user.groups.size()), Arg(user.groups.data()));
  }
  if (result == 0) result = RawSyscall(SYS_setresgid, user.gid, user.gid, user.gid);
  if (result == 0) result = RawSyscall(SYS_setresuid, user.uid, user.uid, user.uid);
  // The change of ids set the flag of the memory that init lives in to fs.suid_dumpable.
  RawSyscall(SYS_prctl, PR_SET_DUMPABLE, 0);
  if (result == 0) result = RawSetCaps(kept, kept);
  return result;
}

CAISSON_NO_SANITIZE long RawEnterDirectory(const char* path, SpawnReport& report) {
  const long entered = RawSyscall(SYS_chdir, Arg(path));
  if (entered < 0) return entered;
  // A directory outside the root reads "(unreachable)/…"; CVE-2024-21626 came in that way. One
  // in /proc may be a link to anything.
  const long length = RawSyscall(SYS_getcwd, Arg(&report.cwd[0]), sizeof report.cwd);
  if (length < 0) return length;
  const char* cwd = report.cwd;
  if (cwd[0] != '/') return -EACCES;
  const bool proc = cwd[1] == 'p' && cwd[2] == 'r' && cwd[3] == 'o' && cwd[4] == 'c';
  if (proc && (cwd[5] == '/' || cwd[5] == '\0')) return -EACCES;
  return 0;
}

// The errno of the last candidate that exists, as execvp(3) has it.
CAISSON_NO_SANITIZE long RawExec(const std::vector<std::string>& candidates, char* const* argv,
                                 char* const* env) {
  long verdict = -ENOENT;
  for (const std::string& candidate : candidates) {
    const long result = RawSyscall(SYS_execve, Arg(candidate.c_str()), Arg(argv), Arg(env));
    const bool absent = result == -ENOENT || result == -ENOTDIR || result == -ESTALE ||
                        result == -ENODEV || result == -ETIMEDOUT;
    if (result == -EACCES) verdict = -EACCES;
    if (!absent && result != -EACCES) return result;
    if (absent && candidates.size() == 1) return result;
  }
  return verdict;
}

}  // namespace

Result<SpawnPlan> SpawnPlan::Create(const Start& start, User user, const Privileges& privileges,
                                    const std::vector<Rlimit>& defaults) {
  CAISSON_TRY(CheckRequest(start));
  CAISSON_TRY(privileges.CheckReach(user));
  SpawnPlan plan;
  CAISSON_TRY(AddLimits(plan.limits_, defaults));
  CAISSON_TRY(AddLimits(plan.limits_, start.rlimits));
  plan.switch_ids_ = privileges.can_switch();
  plan.has_tty_ = start.stdio == wire::init::Stdio::kPty;
  plan.caps_held_ = privileges.caps();
  plan.caps_kept_ = privileges.CapsOf(user);
  plan.cwd_is_wish_ = start.cwd.empty();
  plan.cwd_ = start.cwd.empty() ? user.home : start.cwd;
  plan.argv_ = start.argv;
  plan.env_ = start.env;
  AddVariable(plan.env_, "HOME=", user.home.empty() ? "/" : user.home);
  AddVariable(plan.env_, "USER=", user.name);
  AddVariable(plan.env_, "LOGNAME=", user.name);
  AddVariable(plan.env_, "PATH=", kDefaultPath);
  plan.candidates_ =
      CandidatesFor(plan.argv_[0], std::string_view(*FindVariable(plan.env_, "PATH=")).substr(5));
  plan.argv_pointers_ = PointersTo(plan.argv_);
  plan.env_pointers_ = PointersTo(plan.env_);
  plan.user_ = std::move(user);
  return plan;
}

CAISSON_NO_SANITIZE bool RaiseOomScore(const char* path) {
  const long fd = RawSyscall(SYS_openat, AT_FDCWD, Arg(path), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const long wrote = RawSyscall(SYS_write, fd, Arg(&kOomScore[0]), sizeof kOomScore - 1);
  RawSyscall(SYS_close, fd);
  return wrote > 0;
}

CAISSON_NO_SANITIZE int SpawnChild(void* context) {
  const SpawnPlan& plan = *static_cast<SpawnContext*>(context)->plan;
  SpawnReport& report = *static_cast<SpawnContext*>(context)->report;
  const auto failed = [&](StartStage stage, long result) CAISSON_NO_SANITIZE {
    report.stage.store(stage);
    report.error_number.store(static_cast<int>(-result));
    return 127;
  };
  long result = RawSyscall(SYS_setsid);
  if (result < 0) return failed(StartStage::kSetup, result);
  if (plan.has_tty_) result = RawSyscall(SYS_ioctl, 0, TIOCSCTTY, 0);
  if (result < 0) return failed(StartStage::kStdio, result);

  for (const Rlimit& limit : plan.limits_) {
    const uint64_t values[2] = {limit.soft, limit.hard};
    result = RawSyscall(SYS_prlimit64, 0, limit.resource, Arg(&values[0]), 0);
    if (result < 0) return failed(StartStage::kRlimit, result);
  }
  if (!RaiseOomScore("/proc/self/oom_score_adj")) report.needs_oom_score.store(true);

  result = plan.switch_ids_ ? RawSwitchUser(plan.caps_held_, plan.caps_kept_, plan.user_)
                            : RawSetCaps(plan.caps_kept_, plan.caps_kept_);
  if (result < 0) return failed(StartStage::kUser, result);
  // From here on with the rights of the command's user.

  RawSyscall(SYS_umask, 022);
  result = plan.cwd_.empty() ? -ENOENT : RawEnterDirectory(plan.cwd_.c_str(), report);
  if (result < 0 && plan.cwd_is_wish_) result = RawEnterDirectory("/", report);
  if (result < 0) return failed(StartStage::kCwd, result);

  const uint64_t no_signals = 0;
  RawSyscall(SYS_rt_sigprocmask, SIG_SETMASK, Arg(&no_signals), 0, sizeof no_signals);
  RawSyscall(SYS_close_range, 3, ~0u, 0);
  result = RawExec(plan.candidates_, plan.argv_pointers_.data(), plan.env_pointers_.data());
  return failed(StartStage::kExec, result);
}

}  // namespace caisson::init
