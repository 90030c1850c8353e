#include "sandbox/outcome.h"

namespace caisson::sandbox {

std::string_view NameOf(OutcomeStatus status) {
  switch (status) {
    case OutcomeStatus::kExited:
      return "exited";
    case OutcomeStatus::kSignaled:
      return "signaled";
    case OutcomeStatus::kTimeout:
      return "timeout";
    case OutcomeStatus::kOutOfMemory:
      return "out_of_memory";
    case OutcomeStatus::kProcessLimit:
      return "process_limit";
    case OutcomeStatus::kDiskFull:
      return "disk_full";
    case OutcomeStatus::kOutputLimit:
      return "output_limit";
    case OutcomeStatus::kPolicy:
      return "policy";
    case OutcomeStatus::kCancelled:
      return "cancelled";
    case OutcomeStatus::kLost:
      return "lost";
    case OutcomeStatus::kUnknown:
      break;
  }
  return "unknown";
}

std::optional<OutcomeStatus> OutcomeStatusFrom(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(OutcomeStatus::kUnknown); ++i)
    if (const auto status = static_cast<OutcomeStatus>(i); NameOf(status) == name) return status;
  return std::nullopt;
}

int ShellCode(const ExecOutcome& outcome) {
  if (outcome.status == OutcomeStatus::kTimeout) return 124;
  if (outcome.status == OutcomeStatus::kLost || outcome.status == OutcomeStatus::kUnknown)
    return 125;
  if (outcome.signal != 0) return 128 + outcome.signal;
  return outcome.exit_code;
}

}  // namespace caisson::sandbox
