// Turn: one at a time. Whoever holds it goes before the next gets it.
#pragma once

#include <utility>

#include "async/event.h"

namespace caisson::sandbox {

class Turn {
 public:
  explicit Turn(async::Loop& loop) : freed_(loop) {}

  class Holder {
   public:
    explicit Holder(Turn& turn) : turn_(&turn) { turn_->taken_ = true; }
    Holder(Holder&& other) noexcept : turn_(std::exchange(other.turn_, nullptr)) {}
    Holder& operator=(Holder&&) = delete;
    ~Holder() {
      if (turn_ == nullptr) return;
      turn_->taken_ = false;
      turn_->freed_.Wake();
    }

   private:
    Turn* turn_;
  };
  Task<Holder> Take() {
    while (taken_) co_await freed_.Wait();
    co_return Holder(*this);
  }

 private:
  bool taken_ = false;
  async::Event freed_;
};

}  // namespace caisson::sandbox
