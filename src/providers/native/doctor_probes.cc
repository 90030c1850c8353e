#include "providers/native/doctor_probes.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "base/units.h"
#include "sandbox/run.h"
#include "sys/text_file.h"

namespace caisson::native {
namespace {

using sandbox::OutcomeStatus;
using sandbox::Profile;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(5);
constexpr unsigned kDefaultOnly = 1, kStrictOnly = 2;

#define CAISSON_TEXT_(x) #x
#define CAISSON_TEXT(x) CAISSON_TEXT_(x)
// Prints the errno of a system call, 0 when it succeeded. Perl passes variables by address,
// literals by value.
#define CAISSON_CALL(before, number, arguments) \
  "perl -e '" before "$!=0;syscall(" CAISSON_TEXT(number) arguments ");print $!+0'"

constexpr Probe kProbes[] = {
    // That it does its work.
    {"commands run", "echo hello", Expect::kPrints, "hello"},
    {"/workspace can be written", "echo x >/workspace/probe && cat /workspace/probe",
     Expect::kPrints, "x"},
    {"/tmp can be written", "echo x >/tmp/probe && cat /tmp/probe", Expect::kPrints, "x"},
    {"root can give files away", "touch /tmp/c && chown 1000:1000 /tmp/c && stat -c %u /tmp/c",
     Expect::kPrints, "1000", OutcomeStatus::kExited, kNeedsIds, kDefaultOnly},
    // Namespaces and mounts.
    {"user namespaces cannot be nested", "unshare -U true"},
    {"mount namespaces cannot be made", "unshare -m true"},
    {"network namespaces cannot be made", "unshare -n true"},
    {"namespaces of init cannot be entered", "nsenter -t 1 -m true"},
    {"nothing can be mounted",
     CAISSON_CALL("$a=\"none\";$b=\"/tmp\";$c=\"tmpfs\";", SYS_mount, ",$a,$b,$c,0,0"),
     Expect::kErrno},
    {"nothing can be unmounted", CAISSON_CALL("$a=\"/proc\";", SYS_umount2, ",$a,2"),
     Expect::kErrno},
    {"the root cannot be changed", "chroot / true"},
    // Files.
    {"files of the host are not there", "cat @canary@ 2>/dev/null; echo .", Expect::kPrints, "."},
    {"no password hashes are there", "grep -s ':[$]' /etc/shadow /etc/gshadow; echo .",
     Expect::kPrints, "."},
    {"what is written to /usr does not reach the host", "echo x 2>/dev/null >/usr/@marker@; echo .",
     Expect::kPrints, ".", OutcomeStatus::kExited, 0, kDefaultOnly},
    {"/usr cannot be written", "touch /usr/@marker@", Expect::kRefused, "", OutcomeStatus::kExited,
     0, kStrictOnly},
    {"/etc cannot be written", "touch /etc/@marker@", Expect::kRefused, "", OutcomeStatus::kExited,
     0, kStrictOnly},
    {"/sys is empty", "ls -A /sys 2>/dev/null; echo .", Expect::kPrints, "."},
    {"the kernel's command line is hidden", "cat /proc/cmdline 2>/dev/null; echo .",
     Expect::kPrints, "."},
    {"the kernel's memory is hidden", "head -c 16 /proc/kcore 2>/dev/null; echo .", Expect::kPrints,
     "."},
    {"the kernel's symbols, modules and keys are hidden",
     "cat /proc/kallsyms /proc/modules /proc/keys /proc/iomem 2>/dev/null | head -c 64; echo .",
     Expect::kPrints, "."},
    {"sysctls cannot be set", "test -w /proc/sys/kernel/core_pattern"},
    {"the host name cannot be set", "echo caisson >/proc/sys/kernel/hostname"},
    {"sysrq is out of reach", "test -w /proc/sysrq-trigger"},
    // Devices.
    {"device nodes cannot be made", "mknod /tmp/d b 8 0"},
    {"no disks, memory or kernel devices are there",
     "ls -d /dev/sd* /dev/vd* /dev/nvme* /dev/loop* /dev/dm-* /dev/mem /dev/kmsg /dev/kvm "
     "/dev/fuse /dev/net 2>/dev/null; echo .",
     Expect::kPrints, "."},
    {"/dev cannot be changed", "touch /dev/probe"},
    // Processes and privilege.
    {"only its own processes are seen",
     "n=0; for p in /proc/[0-9]*; do n=$((n+1)); done; [ $n -le 8 ] && echo few || echo $n",
     Expect::kPrints, "few"},
    {"init cannot be looked into", "ls /proc/1/root/ /proc/1/fd/"},
    {"init cannot be killed", "kill -9 1 2>/dev/null; sleep 0.01; echo alive", Expect::kPrints,
     "alive"},
    {"setuid has no effect",
     "cp /usr/bin/id /tmp/i && chmod 4755 /tmp/i && setpriv --reuid=1000 --clear-groups /tmp/i -u",
     Expect::kPrints, "1000", OutcomeStatus::kExited, kNeedsIds, kDefaultOnly},
    {"ids are not the host's",
     "read inside outside count </proc/self/uid_map; [ $count -le 65536 ] && echo own || echo host",
     Expect::kPrints, "own"},
    {"privileges cannot grow", "grep -c '^NoNewPrivs:.1$' /proc/self/status", Expect::kPrints, "1"},
    {"no capability is held", "grep -c '^Cap[A-Z][a-z]*:.0*$' /proc/self/status", Expect::kPrints,
     "5", OutcomeStatus::kExited, 0, kStrictOnly},
    {"priority cannot be raised", "chrt -f 10 true"},
    // Doors of the kernel.
    {"system calls are filtered", "grep -c '^Seccomp:.2$' /proc/self/status", Expect::kPrints, "1"},
    {"keyrings are closed", CAISSON_CALL("", SYS_keyctl, ",0,-3,0"), Expect::kErrno},
    {"bpf is closed", CAISSON_CALL("$a=\"\\0\"x128;", SYS_bpf, ",0,$a,128"), Expect::kErrno},
    {"perf is closed", CAISSON_CALL("$a=\"\\0\"x128;", SYS_perf_event_open, ",$a,0,-1,-1,0"),
     Expect::kErrno},
    {"io_uring is closed", CAISSON_CALL("$a=\"\\0\"x120;", SYS_io_uring_setup, ",1,$a"),
     Expect::kErrno},
    {"userfaultfd is closed", CAISSON_CALL("", SYS_userfaultfd, ",0"), Expect::kErrno},
    {"kernel modules cannot be loaded", CAISSON_CALL("$a=\"\";", SYS_init_module, ",0,0,$a"),
     Expect::kErrno},
    {"the kernel log is closed", "dmesg"},
    {"the clock cannot be set", "date -s @$(date +%s.%N)"},
    // Network.
    {"loopback is the only interface", "grep -c : /proc/self/net/dev", Expect::kPrints, "1"},
    {"no address outside is reachable",
     "perl -e 'socket(S,2,2,0); $!=0; connect(S,pack(\"Sna4x8\",2,53,\"\\300\\0\\2\\1\")); print "
     "$!+0'",
     Expect::kErrno, "101"},
    {"vsock, packet, netfilter and crypto sockets are closed",
     "perl -e 'for([40,1,0],[17,3,0],[16,3,12],[38,5,0]){socket(S,$$_[0],$$_[1],$$_[2])&&print "
     "\"@$_ \"}' && echo .",
     Expect::kPrints, "."},
    // Limits, the rough ones last: they leave a full disk, and then as many processes as there may
    // be.
    {"no core dumps", "ulimit -Hc", Expect::kPrints, "0"},
    {"open files are limited", "ulimit -Hn", Expect::kPrints, "256"},
    {"the disk is limited", "head -c 64m /dev/zero >/tmp/fill", Expect::kOutcome, "",
     OutcomeStatus::kDiskFull},
    {"time is limited", "sleep 9 & exec sleep 9", Expect::kOutcome, "", OutcomeStatus::kTimeout},
    {"memory is limited", "exec tail /dev/zero", Expect::kOutcome, "", OutcomeStatus::kOutOfMemory,
     kNeedsMemoryLimit},
    {"processes are limited",
     "i=0; while [ $i -lt 64 ]; do sleep 3 >/dev/null 2>&1 & i=$((i+1)); done; echo 64",
     Expect::kOutcome, "", OutcomeStatus::kProcessLimit, kNeedsPidsLimit},
};

std::string Replace(std::string text, std::string_view what, std::string_view with) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  return text;
}

bool IsRefusal(std::string_view printed, std::string_view also) {
  const auto number = sys::ParseNumber(printed);
  return number && (*number == EPERM || *number == EACCES || *number == ENOSYS || printed == also);
}

// Why a probe does not apply here; empty when it does.
std::string_view Obstacle(const Probe& probe, const ProbeSurroundings& surroundings) {
  if (surroundings.canary.empty() && probe.script.contains("@canary@"))
    return "no file could be made in the host's /tmp";
  if ((probe.needs & kNeedsMemoryLimit) != 0 && !surroundings.memory_limit)
    return "this host cannot limit memory";
  if ((probe.needs & kNeedsPidsLimit) != 0 && !surroundings.pids_limit)
    return "this host cannot limit processes";
  if ((probe.needs & kNeedsIds) != 0 && !surroundings.many_ids)
    return "a sandbox of this user has one id only";
  return "";
}

// Small limits, so that reaching them takes no time. A limit that the host cannot enforce is not
// asked for by name.
sandbox::SandboxSpec SpecOf(Profile profile, const ProbeSurroundings& surroundings) {
  sandbox::SandboxSpec spec;
  spec.profile = profile;
  spec.limits.disk_bytes = 4 * sandbox::kMiB;
  spec.limits.open_files = 256;
  if (surroundings.memory_limit) spec.limits.memory_bytes = 32 * sandbox::kMiB;
  if (surroundings.pids_limit) spec.limits.pids = 24;
  if (surroundings.cpu_limit)
    spec.limits.cpu_millis = 2000;  // the usual half a core makes people wait
  return spec;
}

sandbox::ExecSpec CommandOf(const Probe& probe, const ProbeSurroundings& surroundings) {
  sandbox::ExecSpec spec;
  std::string script = Replace(std::string(probe.script), "@canary@", surroundings.canary);
  spec.argv = {"/bin/sh", "-c", Replace(std::move(script), "@marker@", surroundings.marker)};
  spec.cwd = "/";
  spec.timeout =
      probe.outcome == OutcomeStatus::kTimeout ? std::chrono::milliseconds(30) : kPatience;
  spec.output_limit = 65536;
  return spec;
}

Task<ProbeLine> RunProbe(sandbox::Sandbox* sandbox, const Probe* probe,
                         const ProbeSurroundings* surroundings) {
  if (const auto obstacle = Obstacle(*probe, *surroundings); !obstacle.empty())
    co_return ProbeLine{probe->name, ProbeStatus::kSkipped, std::string(obstacle)};
  auto result = co_await sandbox::Run(sandbox, CommandOf(*probe, *surroundings));
  if (!result) co_return ProbeLine{probe->name, ProbeStatus::kBroken, result.error().message()};
  auto line = Judge(*probe, result->outcome, result->out, result->err);
  for (const char* directory : {"/usr/", "/etc/"})
    if (probe->script.contains("@marker@") &&
        access((directory + surroundings->marker).c_str(), F_OK) == 0)
      line = {probe->name, ProbeStatus::kBroken, Concat({"the file is in the host's ", directory})};
  co_return line;
}

std::chrono::microseconds Since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
}

}  // namespace

std::string_view NameOf(ProbeStatus status) {
  switch (status) {
    case ProbeStatus::kHeld:
      return "held";
    case ProbeStatus::kBroken:
      return "broken";
    case ProbeStatus::kSkipped:
      return "skipped";
  }
  return "broken";
}

std::span<const Probe> Probes() { return kProbes; }

bool SandboxTrial::Works() const {
  if (!error.empty() || probes.empty()) return false;
  for (const auto& probe : probes)
    if (probe.status == ProbeStatus::kBroken) return false;
  return true;
}

ProbeLine Judge(const Probe& probe, const sandbox::ExecOutcome& outcome, std::string_view out,
                std::string_view err) {
  const bool exited = outcome.status == OutcomeStatus::kExited;
  if (exited && (outcome.exit_code == 126 || outcome.exit_code == 127))
    return {probe.name, ProbeStatus::kSkipped,
            Concat({"the host lacks a program for it: ", Quoted(Trimmed(err))})};
  const std::string_view printed = Trimmed(out);
  bool held = false;
  switch (probe.expect) {
    case Expect::kRefused:
      held = exited && outcome.exit_code != 0;
      break;
    case Expect::kPrints:
      held = exited && outcome.exit_code == 0 && printed == probe.text;
      break;
    case Expect::kErrno:
      held = exited && IsRefusal(printed, probe.text);
      break;
    case Expect::kOutcome:
      held = outcome.status == probe.outcome;
      break;
  }
  if (held) return {probe.name, ProbeStatus::kHeld, ""};
  std::string detail =
      Concat({NameOf(outcome.status), exited ? " " + std::to_string(outcome.exit_code) : ""});
  if (!printed.empty()) detail += Concat({", printed ", Quoted(printed)});
  if (const auto complaint = Trimmed(err); !complaint.empty())
    detail += Concat({", complained ", Quoted(complaint)});
  return {probe.name, ProbeStatus::kBroken, std::move(detail)};
}

Task<SandboxTrial> TrySandbox(sandbox::Provider* provider, Profile profile,
                              ProbeSurroundings surroundings) {
  SandboxTrial trial;
  trial.profile = profile;
  auto start = Clock::now();
  auto sandbox = co_await provider->Create(SpecOf(profile, surroundings));
  trial.create = Since(start);
  if (!sandbox) {
    trial.error = sandbox.error().message();
    trial.remedy = sandbox.error().remedy();
    co_return trial;
  }
  trial.report = (*sandbox)->report();
  const auto begin = start = Clock::now();
  for (const auto& probe : kProbes) {
    if ((probe.profiles & (profile == Profile::kDefault ? kDefaultOnly : kStrictOnly)) == 0)
      continue;
    trial.probes.push_back(co_await RunProbe(sandbox->get(), &probe, &surroundings));
    if (trial.first_exec.count() == 0) trial.first_exec = Since(start);
  }
  trial.probing = Since(begin);
  start = Clock::now();
  auto destroyed = co_await (*sandbox)->Destroy();
  trial.destroy = Since(start);
  if (!destroyed) trial.error = destroyed.error().message();
  co_return trial;
}

}  // namespace caisson::native
