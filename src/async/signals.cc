#include "async/signals.h"

#include <boost/asio/signal_set.hpp>

#include "async/loop_state.h"

namespace caisson::async {

struct Signals::State : std::enable_shared_from_this<State> {
  State(Loop& loop, boost::asio::io_context& context) : set(context), came(loop) {}

  void Listen() {
    set.async_wait([self = shared_from_this()](const auto& error, int number) {
      if (error) return;  // the Signals have gone
      self->numbers.push_back(number);
      self->came.Set();
      self->Listen();
    });
  }

  boost::asio::signal_set set;
  std::deque<int> numbers;
  Event came;
};

Signals::Signals(Loop& loop, std::initializer_list<int> numbers)
    : state_(std::make_shared<State>(loop, loop.state_->context)) {
  for (const int number : numbers) Add(number);
  state_->Listen();
}

void Signals::Add(int number) { state_->set.add(number); }

Signals::~Signals() {
  boost::system::error_code ignored;  // what was listened to is let go of either way
  (void)state_->set.clear(ignored);
  (void)state_->set.cancel(ignored);
}

Task<int> Signals::Next() {
  auto state = state_;
  while (state->numbers.empty()) {
    state->came.Clear();
    co_await state->came.Wait();
  }
  const int number = state->numbers.front();
  state->numbers.pop_front();
  co_return number;
}

}  // namespace caisson::async
