// Groups H and I: processes, signals, time; exhaustion that stops at a wall by itself.
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "probe.h"

namespace caisson::probe {
namespace {

Verdict InitSurvives(int signal_number) {
  const int result = kill(1, signal_number);
  const int error = result == 0 ? 0 : errno;
  usleep(50000);
  const std::string state = StatusField(ReadFile("/proc/1/status"), "State");
  if (state.empty()) return Open("init is gone");
  if (state[0] == 'T' || state[0] == 'Z' || state[0] == 'X') return Open("init is " + state);
  return Ok(error == 0 ? "sent without effect" : "kill said " + ErrnoName(error));
}
Verdict KillInit() { return InitSurvives(SIGKILL); }
Verdict StopInit() { return InitSurvives(SIGSTOP); }
Verdict TerminateInit() { return InitSurvives(SIGTERM); }

Verdict RealTime(int policy) {
  sched_param parameters{};
  parameters.sched_priority = 1;
  return Judge(sched_setscheduler(0, policy, &parameters));
}
Verdict Fifo() { return RealTime(SCHED_FIFO); }
Verdict RoundRobin() { return RealTime(SCHED_RR); }
Verdict Deadline() {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes{48, 6, 0, 0, 0, 1000000, 10000000, 10000000};
  return Judge(syscall(SYS_sched_setattr, 0, &attributes, 0));
}
Verdict Nice() { return Judge(setpriority(PRIO_PROCESS, 0, -20)); }
Verdict IoPriority() { return Judge(syscall(SYS_ioprio_set, 1, 0, 1 << 13)); }

Verdict RaiseLimit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max == RLIM_INFINITY) return Open("there is no limit");
  limit.rlim_max += 1;
  return Judge(setrlimit(RLIMIT_NOFILE, &limit));
}
Verdict LimitInit() {  // to what it is, so that init keeps working
  rlimit limit{};
  if (prlimit(1, RLIMIT_NOFILE, nullptr, &limit) != 0) return Refused(errno, "read");
  return Judge(prlimit(1, RLIMIT_NOFILE, &limit, nullptr));
}
Verdict ChangeMemoryMap() { return Judge(prctl(PR_SET_MM, PR_SET_MM_BRK, 0, 0, 0)); }
Verdict CoreLimit() {
  rlimit limit{};
  getrlimit(RLIMIT_CORE, &limit);
  // 1 is less than any core file, and unlike 0 keeps the kernel from starting a core_pattern pipe
  // (core(5)).
  return Unless(limit.rlim_max <= 1 ? "" : "core files are possible");
}

// Children that only wait; all are gone when it returns.
Verdict ForkMany() {
  constexpr int kMany = 600;
  std::vector<pid_t> children;
  int error = 0;
  while (children.size() < kMany) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      pause();
      _exit(0);
    }
    if (child < 0) {
      error = errno;
      break;
    }
    children.push_back(child);
  }
  for (const pid_t child : children) kill(child, SIGKILL);
  for (const pid_t child : children) waitpid(child, nullptr, 0);
  const std::string detail = std::to_string(children.size()) + " processes";
  return error == 0 ? Open(detail) : Refused(error, detail);
}

void* WaitForEver(void*) {
  pause();
  return nullptr;
}
Verdict ThreadMany() {
  constexpr int kMany = 600;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 65536);
  int count = 0;
  int error = 0;
  for (pthread_t thread; count < kMany; ++count)
    if ((error = pthread_create(&thread, &attributes, WaitForEver, nullptr)) != 0) break;
  const std::string detail = std::to_string(count) + " threads";
  return error == 0 ? Open(detail) : Refused(error, detail);
}

Verdict HugeFile() {
  const std::string path = ScratchPath("huge");
  signal(SIGXFSZ, SIG_IGN);
  const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return Failed("create");
  unlink(path.c_str());
  if (ftruncate(fd, 0x7ffffffffffff000) != 0) return Refused(errno, "ftruncate");
  // A hole costs nothing; blocks would.
  return Judge(fallocate(fd, 0, 0, 1ll << 40), "fallocate of 1 TiB");
}

Verdict ManyDescriptors() {
  constexpr int kMany = 20001;
  int count = 0;
  while (count < kMany && dup(0) >= 0) ++count;
  const std::string detail = std::to_string(count) + " descriptors";
  return count == kMany ? Open(detail) : Refused(errno, detail);
}

Verdict LockMemory() {
  const size_t size = 64 << 20;
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return Judge(mlock(memory, size));
}

Verdict ManyQueues() {
  int count = 0;
  mq_attr attributes{};
  attributes.mq_maxmsg = 10;
  attributes.mq_msgsize = 8192;
  int error = 0;
  for (; count < 64; ++count) {
    const std::string name = "/probe-" + std::to_string(getpid()) + "-" + std::to_string(count);
    if (mq_open(name.c_str(), O_CREAT | O_EXCL | O_RDWR, 0600, &attributes) == -1) {
      error = errno;
      break;
    }
    mq_unlink(name.c_str());
  }
  const std::string detail = std::to_string(count) + " queues";
  return error == 0 ? Open(detail) : Refused(error, detail);
}

const Attempt kAttempts[] = {
    {"H01.kill", "SelfDoS", "SIGKILL to init", "ok", "ok", kRisky, KillInit},
    {"H01.stop", "SelfDoS", "SIGSTOP to init", "ok", "ok", kRisky, StopInit},
    {"H01.term", "SelfDoS", "SIGTERM to init", "ok", "ok", kRisky, TerminateInit},
    {"H06.raise", "HostDoS", "raise a hard limit", "EPERM", "EPERM", kSafe, RaiseLimit},
    {"H06.init", "SelfDoS", "change init's limits", "EPERM", "EPERM", kRisky, LimitInit},
    {"H11.fifo", "PeerDoS", "SCHED_FIFO", "EPERM", "EPERM", kSafe, Fifo},
    {"H11.rr", "PeerDoS", "SCHED_RR", "EPERM", "EPERM", kSafe, RoundRobin},
    {"H11.deadline", "PeerDoS", "SCHED_DEADLINE", "EPERM", "EPERM", kSafe, Deadline},
    {"H11.nice", "PeerDoS", "nice -20", "EACCES|EPERM", "EACCES|EPERM", kSafe, Nice},
    {"H11.io", "PeerDoS", "real-time I/O priority", "EPERM", "EPERM", kSafe, IoPriority},
    {"H12", "Escape", "PR_SET_MM", "EPERM|EINVAL", "EPERM|EINVAL", kSafe, ChangeMemoryMap},
    {"H14", "HostLeak", "core files", "ok", "ok", kSafe, CoreLimit},
    {"I01", "HostDoS", "600 processes", "EAGAIN", "EAGAIN", kSafe, ForkMany},
    {"I02", "HostDoS", "600 threads", "EAGAIN", "EAGAIN", kSafe, ThreadMany},
    {"I08", "HostDoS", "a file of 8 EiB, then 1 TiB of blocks", "EFBIG|ENOSPC|SIGXFSZ",
     "EFBIG|ENOSPC|SIGXFSZ", kRisky, HugeFile},
    {"I10", "HostDoS", "20 000 descriptors", "EMFILE", "EMFILE", kSafe, ManyDescriptors},
    {"I12", "HostDoS", "64 message queues", "EMFILE|ENOSPC|ENOMEM|ENOSYS|EACCES",
     "EMFILE|ENOSPC|ENOMEM|ENOSYS|EACCES", kSafe, ManyQueues},
    {"I15", "HostDoS", "lock 64 MiB", "ENOMEM|EPERM|EAGAIN", "ENOMEM|EPERM|EAGAIN", kSafe,
     LockMemory},
};

}  // namespace

std::span<const Attempt> ProcessAttempts() { return kAttempts; }

}  // namespace caisson::probe
