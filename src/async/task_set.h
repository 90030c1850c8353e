// TaskSet: tasks that run side by side, owned together.
//
// Ends them where they wait when it is destroyed. Must not be destroyed, nor cancelled, by one of
// its own tasks: let that happen from the loop (Loop::Post). A task that throws ends the program:
// what may throw catches.
#pragma once

#include <list>
#include <memory>

#include "async/event.h"

namespace caisson::async {

class TaskSet {
 public:
  explicit TaskSet(Loop& loop);
  ~TaskSet();
  TaskSet(const TaskSet&) = delete;
  TaskSet& operator=(const TaskSet&) = delete;

  // Starts `task` now; it runs until it first waits before this returns.
  void Spawn(Task<void> task);
  size_t size() const { return state_->running; }
  // Ends all of them.
  void Cancel();
  // Completes when none is left.
  Task<void> Join();

 private:
  struct Root {
    Task<void> task;
    bool ended = false;
  };
  struct State : std::enable_shared_from_this<State> {
    explicit State(Loop& loop) : loop(loop), changed(loop) {}
    Loop& loop;
    std::list<Root> roots;
    size_t running = 0;
    Event changed;
    bool collecting = false;

    void Collect();
  };
  static Task<void> Follow(State* state, Root* root, Task<void> task);

  std::shared_ptr<State> state_;  // the loop's weak note of it finds out when the set has gone
};

}  // namespace caisson::async
