// Task<T>: a coroutine that gives a T. Everything that waits is one.
//
// A Task is lazy: it starts when it is awaited (or spawned, see task_set.h), and it resumes whoever
// awaits it when it ends. It is owned by exactly one place; destroying it ends it where it waits,
// with everything it awaits in turn: destruction is cancellation, and destructors are the cleanup.
// A running Task must therefore not destroy its own root; what ends by its own work says so to
// its owner and lets it happen from the loop (Loop::Post, TaskSet).
//
// Coroutines take their parameters by value, and no capturing lambda is a coroutine. All of this
// happens on the one thread of a Loop.
#pragma once

#include <coroutine>
#include <cstdlib>
#include <exception>
#include <optional>
#include <utility>

#include "base/result.h"

namespace caisson {

template <typename T>
class Task;

namespace async {

// What all promises share: who to resume, and what was thrown.
class PromiseBase {
 public:
  std::suspend_always initial_suspend() noexcept { return {}; }
  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <typename Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) noexcept {
      const std::coroutine_handle<> next = ended.promise().continuation_;
      return next ? next : std::noop_coroutine();
    }
    void await_resume() noexcept {}
  };
  FinalAwaiter final_suspend() noexcept { return {}; }
  void unhandled_exception() { thrown_ = std::current_exception(); }

  void set_continuation(std::coroutine_handle<> continuation) { continuation_ = continuation; }
  void Rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  std::coroutine_handle<> continuation_;
  std::exception_ptr thrown_;
};

template <typename T>
class Promise : public PromiseBase {
 public:
  Task<T> get_return_object();
  template <typename U>
  void return_value(U&& value) {
    value_.emplace(std::forward<U>(value));
  }
  T Take() {
    Rethrow();
    return *std::move(value_);
  }

 private:
  std::optional<T> value_;
};

template <>
class Promise<void> : public PromiseBase {
 public:
  Task<void> get_return_object();
  void return_void() {}
  void Take() { Rethrow(); }
};

}  // namespace async

template <typename T>
class [[nodiscard]] Task {
 public:
  using promise_type = async::Promise<T>;
  using value_type = T;

  Task() = default;
  Task(Task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    if (this != &other) {
      Reset();
      coroutine_ = std::exchange(other.coroutine_, nullptr);
    }
    return *this;
  }
  ~Task() { Reset(); }

  // Ends it where it waits.
  void Reset() {
    if (auto coroutine = std::exchange(coroutine_, nullptr)) coroutine.destroy();
  }

  // An awaited Task lives in the frame that awaits it.
  class Awaiter {
   public:
    explicit Awaiter(Task task) : task_(std::move(task)) {}
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> continuation) noexcept {
      return task_.StartWith(continuation);
    }
    T await_resume() { return task_.coroutine_.promise().Take(); }

   private:
    Task task_;
  };
  Awaiter operator co_await() && { return Awaiter(std::move(*this)); }

  // For those who run it by hand (task_set.cc, loop.h): starts it, up to where it first waits.
  void Start() { coroutine_.resume(); }
  std::coroutine_handle<> StartWith(std::coroutine_handle<> continuation) {
    coroutine_.promise().set_continuation(continuation);
    return coroutine_;
  }
  bool done() const { return !coroutine_ || coroutine_.done(); }
  T Take() { return coroutine_.promise().Take(); }

 private:
  friend class async::Promise<T>;
  explicit Task(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
  std::coroutine_handle<promise_type> coroutine_;
};

namespace async {

template <typename T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}

}  // namespace async
}  // namespace caisson

// As CAISSON_TRY and CAISSON_ASSIGN, in a coroutine: co_await is part of the expression given.
#define CAISSON_CO_TRY(expr)                                                                  \
  do {                                                                                        \
    if (auto caisson_try_ = (expr); !caisson_try_) co_return std::move(caisson_try_).error(); \
  } while (0)
#define CAISSON_CO_ASSIGN_(tmp, decl, expr)   \
  auto tmp = (expr);                          \
  if (!tmp) co_return std::move(tmp).error(); \
  decl = *std::move(tmp)
#define CAISSON_CO_ASSIGN(decl, expr) \
  CAISSON_CO_ASSIGN_(CAISSON_CONCAT(caisson_tmp_, __LINE__), decl, expr)
