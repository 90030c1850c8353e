#include "sys/process.h"

#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <cerrno>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

namespace caisson::sys {

CloneResult Clone(uint64_t flags, int cgroup_fd) {
  int pidfd = -1;
  clone_args args{};
  args.flags = flags | CLONE_PIDFD;
  args.pidfd = reinterpret_cast<uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  if (cgroup_fd >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<uint64_t>(cgroup_fd);
  }
  const long pid = syscall(SYS_clone3, &args, sizeof args);
  return {static_cast<pid_t>(pid), pidfd};
}

Child& Child::operator=(Child&& other) noexcept {
  if (this != &other) {
    KillAndReap();
    pid_ = other.pid_;
    pidfd_ = std::move(other.pidfd_);
  }
  return *this;
}

void Child::Kill() {
  if (pidfd_) PidfdSendSignal(pidfd_.get(), SIGKILL);
}

bool Child::Ended() const {
  pollfd ended{pidfd_.get(), POLLIN, 0};
  return !pidfd_ || poll(&ended, 1, 0) != 0;
}

std::optional<Child::Exit> Child::TryReap() {
  siginfo_t info{};
  if (!pidfd_) return std::nullopt;
  if (waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd_.get()), &info,
             WEXITED | WNOHANG) != 0) {
    pidfd_.Reset();  // ECHILD: it was reaped already
    return Exit{CLD_KILLED, 0};
  }
  if (info.si_pid == 0) return std::nullopt;
  pidfd_.Reset();
  return Exit{info.si_code, info.si_status};
}

void Child::KillAndReap() {
  if (!pidfd_) return;
  Kill();
  siginfo_t info{};
  while (waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd_.get()), &info, WEXITED) !=
             0 &&
         errno == EINTR) {
  }
  pidfd_.Reset();
}

int PidfdSendSignal(int pidfd, int signo) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, signo, nullptr, 0));
}

uint64_t MonotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace caisson::sys
