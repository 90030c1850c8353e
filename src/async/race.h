// FirstOf, WithTimeout: several tasks side by side, until one has an answer.
//
// The others end where they wait (see task.h). When two end in the same round of the loop, the one
// named first wins and the other's value is dropped: race what loses nothing by that.
#pragma once

#include <chrono>
#include <optional>
#include <utility>
#include <variant>

#include "async/event.h"

namespace caisson::async {

// One of the tasks of a race: keeps what it gave.
template <typename T>
class Branch {
 public:
  Branch(Task<T> task, Event& ended) : root_(Follow(this, std::move(task), &ended)) {}
  void Start() { root_.Start(); }
  bool ended() const { return value_.has_value() || thrown_; }
  T Take() {
    if (thrown_) std::rethrow_exception(thrown_);
    return *std::move(value_);
  }

 private:
  static Task<void> Follow(Branch* self, Task<T> task, Event* ended) {
    try {
      self->value_.emplace(co_await std::move(task));
    } catch (...) {
      self->thrown_ = std::current_exception();
    }
    ended->Set();
  }
  std::optional<T> value_;
  std::exception_ptr thrown_;
  Task<void> root_;
};

// The value of whichever of the two ends first.
template <typename A, typename B>
Task<std::variant<A, B>> FirstOf(Loop* loop, Task<A> a, Task<B> b) {
  Event ended(*loop);
  Branch<A> first(std::move(a), ended);
  Branch<B> second(std::move(b), ended);
  first.Start();
  if (!first.ended()) second.Start();
  co_await ended.Wait();
  if (first.ended()) co_return std::variant<A, B>(std::in_place_index<0>, first.Take());
  co_return std::variant<A, B>(std::in_place_index<1>, second.Take());
}

// What gives nothing, as a task for a race.
inline Task<std::monostate> WaitFor(Event* event) {
  co_await event->Wait();
  co_return std::monostate();
}
inline Task<std::monostate> SleepFor(Loop* loop, Loop::Clock::duration duration) {
  co_await loop->Sleep(duration);
  co_return std::monostate();
}
inline Task<std::monostate> Await(Task<void> task) {
  co_await std::move(task);
  co_return std::monostate();
}

// The task's value, or nothing when it takes longer.
template <typename T>
Task<std::optional<T>> WithTimeout(Loop* loop, Loop::Clock::duration timeout, Task<T> task) {
  auto first = co_await FirstOf(loop, std::move(task), SleepFor(loop, timeout));
  if (first.index() == 1) co_return std::nullopt;
  co_return std::optional<T>(std::get<0>(std::move(first)));
}

}  // namespace caisson::async
