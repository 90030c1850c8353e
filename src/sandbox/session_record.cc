#include "sandbox/session_record.h"

#include <algorithm>
#include <array>

namespace caisson::sandbox {
namespace {

constexpr std::array<std::string_view, 7> kNames = {"creating",  "running", "paused", "stopping",
                                                    "destroyed", "failed",  "lost"};

constexpr unsigned Bit(SessionState state) { return 1U << static_cast<unsigned>(state); }

using enum SessionState;
// Row: from; bits: to.
constexpr std::array<unsigned, 7> kNext = {
    /* creating  */ Bit(kRunning) | Bit(kStopping) | Bit(kFailed) | Bit(kLost),
    /* running   */ Bit(kPaused) | Bit(kStopping) | Bit(kFailed) | Bit(kLost),
    /* paused    */ Bit(kRunning) | Bit(kStopping) | Bit(kFailed) | Bit(kLost),
    /* stopping  */ Bit(kDestroyed),
    /* destroyed */ 0,
    /* failed    */ 0,
    /* lost      */ 0,
};

}  // namespace

std::string_view NameOf(SessionState state) { return kNames[static_cast<size_t>(state)]; }

std::optional<SessionState> SessionStateFrom(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<SessionState>(found - kNames.begin());
}

bool HasEnded(SessionState state) { return kNext[static_cast<size_t>(state)] == 0; }

bool MayBecome(SessionState from, SessionState to) {
  return (kNext[static_cast<size_t>(from)] & Bit(to)) != 0;
}

}  // namespace caisson::sandbox
