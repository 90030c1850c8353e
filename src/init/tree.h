// Finding and killing every descendant of a process, against code that does not want to be killed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace caisson::init {

// The children of every thread of `pid`, zombies included; empty when it is gone.
std::vector<pid_t> ChildrenOf(pid_t pid);

// The name of `pid` as /proc has it: of its program, or as a child has it from its parent before
// its exec. Empty when it is gone.
std::string NameOf(pid_t pid);

// All descendants of `roots`, and `roots` themselves. One walk: what forks meanwhile may be missed.
std::vector<pid_t> TreeOf(const std::vector<pid_t>& roots);

// Kills the trees below and including the processes that `roots()` gives: stops everything until
// a full walk finds nothing new, so that no fork can outrun the walk, and then sends SIGKILL. Gives
// the number of processes that were found; call again until that is 0. Needs the right to signal
// them.
template <typename Roots>
size_t KillTrees(Roots roots);

// The part of KillTrees after one walk: stops what is new. True when something was.
bool StopNew(const std::vector<pid_t>& found, std::vector<pid_t>& stopped);
// Kills `found`, and lets go on what was stopped but is (by pid reuse) not in `found`.
void KillFound(const std::vector<pid_t>& found, const std::vector<pid_t>& stopped);

template <typename Roots>
size_t KillTrees(Roots roots) {
  constexpr int kMaxRounds = 64;  // others may send SIGCONT; the caller comes back anyway
  std::vector<pid_t> stopped;
  std::vector<pid_t> found;
  for (int round = 0; round < kMaxRounds; ++round) {
    found = TreeOf(roots());
    if (!StopNew(found, stopped)) break;
  }
  KillFound(found, stopped);
  return found.size();
}

}  // namespace caisson::init
