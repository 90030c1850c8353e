#include "async/task_set.h"

namespace caisson::async {

TaskSet::TaskSet(Loop& loop) : state_(std::make_shared<State>(loop)) {}
TaskSet::~TaskSet() { Cancel(); }

void TaskSet::Spawn(Task<void> task) {
  State& state = *state_;
  Root& root = state.roots.emplace_back();
  ++state.running;
  root.task = Follow(&state, &root, std::move(task));
  root.task.Start();
}

// The frames of ended tasks are destroyed from the loop: none destroys itself.
void TaskSet::State::Collect() {
  if (std::exchange(collecting, true)) return;
  loop.Post([weak = weak_from_this()] {
    const auto state = weak.lock();
    if (!state) return;
    state->collecting = false;
    std::erase_if(state->roots, [](const Root& root) { return root.ended; });
  });
}

Task<void> TaskSet::Follow(State* state, Root* root, Task<void> task) {
  try {
    co_await std::move(task);
  } catch (...) {
    std::terminate();
  }
  root->ended = true;
  --state->running;
  state->changed.Wake();
  state->Collect();
}

void TaskSet::Cancel() {
  // A destructor that runs now may look at the set; it finds it empty.
  std::list<Root> ending = std::exchange(state_->roots, {});
  state_->running = 0;
  ending.clear();
  state_->changed.Wake();
}

Task<void> TaskSet::Join() {
  auto state = state_;
  while (state->running > 0) co_await state->changed.Wait();
}

}  // namespace caisson::async
