// Loop: one thread's events: what is ready, what is due, what other threads hand over.
//
// Everything in async/ belongs to one Loop and is used on its thread; Post alone may be called
// from any. A Loop outlives all that refers to it. Built on Asio, which stays in loop.cc.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "async/task.h"
#include "async/waiter.h"

namespace caisson::async {

class Loop {
 public:
  using Clock = std::chrono::steady_clock;

  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Handles events until Stop.
  void Run();
  void Stop();
  // Runs `task` to its end on this thread and gives its value. Whatever else belongs to the loop
  // goes on meanwhile.
  template <typename T>
  T RunUntilDone(Task<T> task) {
    Task<void> root = StopAfter(&task);
    root.Start();
    while (!root.done()) Run();
    return task.Take();
  }

  // Runs `work` on the loop's thread, soon. From any thread.
  void Post(std::function<void()> work);

  // Resumes the waiter's coroutine from the loop, soon and in order, unless it goes before.
  void MakeReady(Waiter& waiter);

  // co_await loop.Sleep(…), co_await loop.SleepUntil(…)
  class [[nodiscard]] SleepAwaiter {
   public:
    SleepAwaiter(Loop& loop, Clock::time_point due) : loop_(loop), due_(due) {}
    SleepAwaiter(const SleepAwaiter&) = delete;
    SleepAwaiter& operator=(const SleepAwaiter&) = delete;
    ~SleepAwaiter();
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> coroutine);
    void await_resume() {}

   private:
    friend class Loop;
    Loop& loop_;
    Clock::time_point due_;
    Waiter waiter_;
    uint64_t timer_ = 0;  // 0: none is set
  };
  SleepAwaiter SleepUntil(Clock::time_point due) { return {*this, due}; }
  SleepAwaiter Sleep(Clock::duration duration) { return {*this, Clock::now() + duration}; }

  // co_await loop.Yield(): lets everything that is ready go first.
  class [[nodiscard]] YieldAwaiter {
   public:
    explicit YieldAwaiter(Loop& loop) : loop_(loop) {}
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> coroutine) {
      waiter_.coroutine = coroutine;
      loop_.MakeReady(waiter_);
    }
    void await_resume() {}

   private:
    Loop& loop_;
    Waiter waiter_;
  };
  YieldAwaiter Yield() { return YieldAwaiter(*this); }

 private:
  friend class Watch;
  friend class Signals;
  struct State;

  template <typename T>
  Task<void> StopAfter(Task<T>* task) {
    co_await Ended<T>{task};
    Stop();
  }
  // Awaits a Task without taking its value.
  template <typename T>
  struct Ended {
    Task<T>* task;
    bool await_ready() const { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> continuation) {
      return task->StartWith(continuation);
    }
    void await_resume() {}
  };

  std::unique_ptr<State> state_;
};

}  // namespace caisson::async
