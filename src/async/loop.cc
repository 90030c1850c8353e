#include "async/loop.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>

#include "async/loop_state.h"

namespace caisson::async {

namespace asio = boost::asio;

Loop::Loop() : state_(std::make_unique<State>()) {}
Loop::~Loop() = default;

void Loop::Run() {
  const auto keep = asio::make_work_guard(state_->context);
  state_->context.restart();
  state_->context.run();
}

void Loop::Stop() { state_->context.stop(); }

void Loop::Post(std::function<void()> work) { asio::post(state_->context, std::move(work)); }

void Loop::MakeReady(Waiter& waiter) {
  state_->ready.PushBack(waiter);
  state_->ScheduleDrain();
}

void Loop::State::ScheduleDrain() {
  if (std::exchange(drain_scheduled, true)) return;
  asio::post(context, [this] {
    drain_scheduled = false;
    // Who becomes ready meanwhile comes in the next round, after what the kernel has to say.
    WaiterList round;
    while (Waiter* waiter = ready.PopFront()) round.PushBack(*waiter);
    while (Waiter* waiter = round.PopFront()) waiter->coroutine.resume();
  });
}

void Loop::State::ArmTimer() {
  if (timers.empty()) return;
  const auto due = timers.begin()->first.first;
  if (armed && *armed <= due) return;
  armed = due;
  timer.expires_at(due);
  timer.async_wait([this](const boost::system::error_code& error) {
    if (error) return;  // another time was set instead
    armed.reset();
    const auto now = Clock::now();
    while (!timers.empty() && timers.begin()->first.first <= now) {
      auto node = timers.extract(timers.begin());
      *node.mapped().set = 0;
      ready.PushBack(*node.mapped().waiter);
      ScheduleDrain();
    }
    ArmTimer();
  });
}

void Loop::SleepAwaiter::await_suspend(std::coroutine_handle<> coroutine) {
  waiter_.coroutine = coroutine;
  auto& state = *loop_.state_;
  timer_ = ++state.last_timer;
  state.timers.emplace(std::pair(due_, timer_), State::Timer{&waiter_, &timer_});
  state.ArmTimer();
}

Loop::SleepAwaiter::~SleepAwaiter() {
  if (timer_ != 0) loop_.state_->timers.erase({due_, timer_});
}

}  // namespace caisson::async
