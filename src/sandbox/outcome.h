// How a command ended, and what it used: a fact of the kernel's, never a guess.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace caisson::sandbox {

enum class OutcomeStatus {
  kExited,       // by itself, with an exit code
  kSignaled,     // by a signal that nobody of ours sent
  kTimeout,      // its wall time was over; the whole tree was killed
  kOutOfMemory,  // the kernel killed a process of the sandbox at its memory limit while the command
                 // ran
  kProcessLimit,  // it failed, and the process limit refused a fork while it ran
  kDiskFull,      // it failed, and the sandbox's disk had no bytes or inodes left
  kOutputLimit,   // it wrote more than it may; the whole tree was killed
  kPolicy,        // seccomp killed it (SIGSYS)
  kCancelled,     // the caller killed it
  kLost,          // the sandbox ended under it; how the command ended is not known
  kUnknown,       // it ran when a server ended, and its end was seen by nobody
};
std::string_view NameOf(OutcomeStatus status);  // snake_case, stable
std::optional<OutcomeStatus> OutcomeStatusFrom(std::string_view name);

struct Usage {
  std::chrono::microseconds user_cpu{0}, system_cpu{0};
  std::chrono::nanoseconds wall{0};
  uint64_t max_rss_bytes = 0;      // of the largest process of the command
  uint64_t memory_peak_bytes = 0;  // of the sandbox, when it was asked for; else 0
  uint64_t stdout_bytes = 0, stderr_bytes = 0, dropped_bytes = 0;
};

struct ExecOutcome {
  OutcomeStatus status = OutcomeStatus::kLost;
  std::string reason;  // one sentence
  int exit_code = -1;  // of kExited and of failures that exited; else -1
  int signal = 0;      // that ended it; else 0
  Usage usage;

  bool Succeeded() const { return status == OutcomeStatus::kExited && exit_code == 0; }
};

// What a shell reports: the exit code, 128 + signal, 124 for a timeout.
int ShellCode(const ExecOutcome& outcome);

}  // namespace caisson::sandbox
