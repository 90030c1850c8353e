// Event: coroutines wait until somebody sets it. Stays set until cleared.
#pragma once

#include "async/loop.h"

namespace caisson::async {

class Event {
 public:
  explicit Event(Loop& loop) : loop_(&loop) {}

  bool is_set() const { return set_; }
  void Clear() { set_ = false; }
  // Wakes all who wait; they go on from the loop, not from here.
  void Set() {
    set_ = true;
    Wake();
  }
  // Wakes all who wait now, and stays as it is.
  void Wake() {
    while (Waiter* waiter = waiters_.PopFront()) loop_->MakeReady(*waiter);
  }

  class [[nodiscard]] Awaiter {
   public:
    explicit Awaiter(Event& event) : event_(event) {}
    bool await_ready() const { return event_.set_; }
    void await_suspend(std::coroutine_handle<> coroutine) {
      waiter_.coroutine = coroutine;
      event_.waiters_.PushBack(waiter_);
    }
    void await_resume() {}

   private:
    Event& event_;
    Waiter waiter_;
  };
  Awaiter Wait() { return Awaiter(*this); }

  Loop& loop() const { return *loop_; }

 private:
  Loop* loop_;
  bool set_ = false;
  WaiterList waiters_;
};

}  // namespace caisson::async
