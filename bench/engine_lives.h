// Lives of sandboxes as engine_bench times them, and what it needs to hold many at once.
//
// Everything runs on one loop of one thread, as a server's sessions do.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "async/task_set.h"
#include "sandbox/provider.h"

namespace caisson::bench {

using SandboxPtr = std::unique_ptr<sandbox::Sandbox>;

// Microseconds of a steady clock.
double NowUs();

// Asked for by SIGINT, SIGTERM or SIGHUP. Long rows look before each life and end with kCancelled.
void CatchStopSignals();
Status CheckStop();

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

// Tasks side by side. Whatever a task refers to outlives Wait, and Wait is always awaited.
class Crew {
 public:
  explicit Crew(async::Loop& loop) : tasks_(loop) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void Add(Task<Status> task);
  // Completes when every task has, with the first error of them.
  Task<Status> Wait();

 private:
  Task<void> Follow(Task<Status> task);

  Status first_error_;
  async::TaskSet tasks_;
};

}  // namespace caisson::bench
