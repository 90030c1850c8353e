// Lives of sandboxes as engine_bench times them, and what it needs to hold many at once.
//
// Everything runs on one loop of one thread, as a server's sessions do.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "measure.h"
#include "sandbox/provider.h"

namespace caisson::bench {

using SandboxPtr = std::unique_ptr<sandbox::Sandbox>;

// `/bin/true` in `sandbox`, which must outlive the task. Anything but exit code 0 is an error.
Task<Status> RunTrue(sandbox::Sandbox* sandbox);

// The parts of one cycle in microseconds: Create, RunTrue, Destroy.
struct Life {
  double create, exec, destroy;
  double total() const { return create + exec + destroy; }
};
Task<Result<Life>> LiveOnce(sandbox::Provider* provider);

// `count` lives one after the other. The first few of a provider should be thrown away: they fill
// its pools.
Task<Result<std::vector<Life>>> LiveMany(sandbox::Provider* provider, int count);

// `workers` at once live `count` lives in all, or until `until` when that is given.
struct Crowd {
  std::vector<Life> lives;
  double took_us;
};
Task<Result<Crowd>> LiveTogether(sandbox::Provider* provider, int workers, int count,
                                 std::optional<std::chrono::milliseconds> until);

// `count` more sandboxes in `held`, made eight at a time; and the last `count` of them destroyed.
Task<Status> HoldMore(sandbox::Provider* provider, std::vector<SandboxPtr>* held, size_t count);
Task<Status> HoldFewer(std::vector<SandboxPtr>* held, size_t count);

}  // namespace caisson::bench
