// Processes by pidfd: clone3, kill and reap without pid reuse.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "sys/unique_fd.h"

namespace caisson::sys {

struct CloneResult {
  pid_t pid;  // 0 in the child, -1 on failure (errno)
  int pidfd;  // in the parent, CLOEXEC
};
// clone3(2) with fork semantics plus `flags` (CLONE_NEW*); `cgroup_fd` >= 0 starts the child in
// that v2 cgroup. Async-signal-safe.
CloneResult Clone(uint64_t flags, int cgroup_fd);

// A child process of ours: killed and reaped when it goes out of scope.
class Child {
 public:
  Child() = default;
  Child(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  Child(Child&&) = default;
  Child& operator=(Child&& other) noexcept;
  ~Child() { KillAndReap(); }

  pid_t pid() const { return pid_; }
  int pidfd() const { return pidfd_.get(); }
  bool running() const { return static_cast<bool>(pidfd_); }
  void Kill();         // SIGKILL; harmless when it is gone
  bool Ended() const;  // it is dead, reaped or not

  struct Exit {
    int code;    // CLD_EXITED, CLD_KILLED, …
    int status;  // exit code or signal
  };
  // Reaps without waiting. Empty while it runs.
  std::optional<Exit> TryReap();
  void KillAndReap();  // waits for the end, which SIGKILL brings

 private:
  pid_t pid_ = -1;
  UniqueFd pidfd_;
};

int PidfdSendSignal(int pidfd, int signo);

// CLOCK_MONOTONIC in nanoseconds.
uint64_t MonotonicNs();

}  // namespace caisson::sys
