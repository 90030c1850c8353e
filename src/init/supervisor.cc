#include "init/supervisor.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include <cerrno>
#include <new>

#include "init/raw_syscall.h"

namespace caisson::init {
namespace {

constexpr size_t kMaxSpare = 2;
constexpr int kReportFd = 3;

template <typename T>
CAISSON_NO_SANITIZE long Arg(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

CAISSON_NO_SANITIZE void Report(Supervision& block) {
  // Smaller than PIPE_BUF, so records of several supervisors do not mix.
  while (RawSyscall(SYS_write, kReportFd, Arg(&block.process), sizeof block.process) == -EINTR) {
  }
}

// Leaves exactly the command's stdio at 0, 1, 2 and the report pipe at 3.
CAISSON_NO_SANITIZE long ArrangeDescriptors(const Supervision& block) {
  // The sources are all above 2, or already in place as init's own /dev/null.
  for (int i = 0; i < 3; ++i) {
    if (block.stdio[i] == i) continue;
    const long result = RawSyscall(SYS_dup3, block.stdio[i], i, 0);
    if (result < 0) return result;
  }
  if (block.report_fd != kReportFd) {
    const long result = RawSyscall(SYS_dup3, block.report_fd, kReportFd, O_CLOEXEC);
    if (result < 0) return result;
  }
  return RawSyscall(SYS_close_range, kReportFd + 1, ~0u, 0);
}

CAISSON_NO_SANITIZE void DropCapabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2];
  for (auto& half : data) half.permitted = half.effective = half.inheritable = 0;
  RawSyscall(SYS_capset, Arg(&header), Arg(&data[0]));
}

CAISSON_NO_SANITIZE void RaiseOomScoreOf(int pid) {
  char path[48] = "/proc/";
  char digits[12];
  int count = 0;
  for (; pid > 0; pid /= 10) digits[count++] = static_cast<char>('0' + pid % 10);
  char* at = path + 6;
  while (count > 0) *at++ = digits[--count];
  const char tail[] = "/oom_score_adj";
  for (size_t i = 0; i < sizeof tail; ++i) *at++ = tail[i];
  RaiseOomScore(path);
}

CAISSON_NO_SANITIZE uint64_t RawMonotonicNs() {
  timespec now;
  RawSyscall(SYS_clock_gettime, CLOCK_MONOTONIC, Arg(&now));
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

CAISSON_NO_SANITIZE void Spawn(Supervision& block) {
  long result = ArrangeDescriptors(block);
  if (result >= 0) {
    result = RawClone(CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | SIGCHLD,
                      block.child_stack + sizeof block.child_stack,
                      reinterpret_cast<int*>(&block.child_pid), SpawnChild, &block.spawn);
  }
  if (result < 0) block.report.error_number.store(static_cast<int>(-result));
  // First of all, while the new program is still being loaded.
  if (block.report.needs_oom_score.load() && block.report.error_number.load() == 0)
    RaiseOomScoreOf(block.child_pid.load());
  RawSyscall(SYS_close_range, 0, kReportFd - 1, 0);
  DropCapabilities();
  block.spawned.store(true);  // the child no longer runs in this memory
  Report(block);
}

CAISSON_NO_SANITIZE int SupervisorMain(void* argument) {
  Supervision& block = *static_cast<Supervision*>(argument);
  RawSyscall(SYS_prctl, PR_SET_NAME, Arg(&kSupervisorName[0]));
  RawSyscall(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1);
  Spawn(block);
  while (true) {
    // Looked at first and reaped afterwards: a supervisor killed in between loses no exit status,
    // because the zombie falls to init.
    siginfo_t info;
    rusage usage;
    const long found = RawSyscall(SYS_waitid, P_ALL, 0, Arg(&info), WEXITED | WNOWAIT, Arg(&usage));
    if (found == -EINTR) continue;
    if (found < 0) return 0;  // ECHILD: the whole tree is gone
    const int pid = info.si_pid;
    if (pid == block.child_pid.load() && !block.ended.load()) {
      block.status = info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status;
      block.usage = usage;
      block.ended_ns = RawMonotonicNs();
      block.ended.store(true);
      if (block.report.error_number.load() == 0) Report(block);
    }
    RawSyscall(SYS_wait4, pid, 0, 0, 0);
  }
}

}  // namespace

SupervisionPool::~SupervisionPool() {
  for (Supervision* block : spare_) munmap(block, sizeof *block);
}

Result<Supervision*> SupervisionPool::Take() {
  if (!spare_.empty()) {
    Supervision* block = spare_.back();
    spare_.pop_back();
    return new (block) Supervision;
  }
  void* memory = mmap(nullptr, sizeof(Supervision), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return Error::FromErrno("memory for a supervisor");
  return new (memory) Supervision;
}

void SupervisionPool::Return(Supervision* block) {
  if (spare_.size() < kMaxSpare) {
    spare_.push_back(block);
  } else {
    munmap(block, sizeof *block);
  }
}

Result<pid_t> StartSupervisor(Supervision& block) {
  const long pid =
      RawClone(CLONE_VM | SIGCHLD, block.supervisor_stack + sizeof block.supervisor_stack, nullptr,
               SupervisorMain, &block);
  if (pid < 0) {
    return Error::FromErrno("starting a supervisor process", static_cast<int>(-pid));
  }
  return static_cast<pid_t>(pid);
}

}  // namespace caisson::init
