// Waiter, WaiterList: coroutines that wait for the same thing, in order.
//
// A Waiter lives in the frame of the coroutine that waits; when the frame is destroyed it leaves
// the list it is in by itself, so nothing is ever resumed that has gone.
#pragma once

#include <coroutine>

namespace caisson::async {

class Waiter {
 public:
  Waiter() = default;
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  ~Waiter() { Unlink(); }

  void Unlink() {
    if (next_ == nullptr) return;
    previous_->next_ = next_;
    next_->previous_ = previous_;
    previous_ = next_ = nullptr;
  }
  bool linked() const { return next_ != nullptr; }

  std::coroutine_handle<> coroutine;

 private:
  friend class WaiterList;
  Waiter *previous_ = nullptr, *next_ = nullptr;
};

class WaiterList {
 public:
  WaiterList() { head_.previous_ = head_.next_ = &head_; }
  ~WaiterList() {
    while (PopFront() != nullptr) {
    }
    head_.previous_ = head_.next_ = nullptr;
  }
  WaiterList(const WaiterList&) = delete;
  WaiterList& operator=(const WaiterList&) = delete;

  bool empty() const { return head_.next_ == &head_; }
  void PushBack(Waiter& waiter) {
    waiter.Unlink();
    waiter.previous_ = head_.previous_;
    waiter.next_ = &head_;
    head_.previous_->next_ = &waiter;
    head_.previous_ = &waiter;
  }
  Waiter* PopFront() {
    if (empty()) return nullptr;
    Waiter* first = head_.next_;
    first->Unlink();
    return first;
  }

 private:
  Waiter head_;
};

}  // namespace caisson::async
