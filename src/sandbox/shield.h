// Shield: work that ends even when whoever asked for it goes.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "async/task_set.h"

namespace caisson::sandbox {

template <typename T>
struct ShieldedValue {
  explicit ShieldedValue(async::Loop& loop) : done(loop) {}
  async::Event done;
  std::optional<T> value;
};

template <typename T>
Task<void> RunShielded(Task<T> work, std::shared_ptr<ShieldedValue<T>> shared) {
  shared->value.emplace(co_await std::move(work));
  shared->done.Set();
}

// Runs `work` as one of `tasks` and gives its value. Destroying this task leaves the work running.
template <typename T>
Task<T> Shield(async::Loop* loop, async::TaskSet* tasks, Task<T> work) {
  auto shared = std::make_shared<ShieldedValue<T>>(*loop);
  tasks->Spawn(RunShielded(std::move(work), shared));
  co_await shared->done.Wait();
  co_return *std::move(shared->value);
}

}  // namespace caisson::sandbox
