#include "async/watch.h"

#include <boost/asio/posix/stream_descriptor.hpp>

#include "async/loop_state.h"

namespace caisson::async {

namespace asio = boost::asio;
using Direction = asio::posix::descriptor_base::wait_type;

struct Watch::State {
  State(Loop& loop, asio::io_context& context)
      : descriptor(context), readable(loop), writable(loop) {}

  asio::posix::stream_descriptor descriptor;
  Event readable, writable;
  bool reading = false, writing = false;  // the reactor has been asked
};

Watch::Watch(Loop& loop, int fd) : state_(std::make_shared<State>(loop, loop.state_->context)) {
  boost::system::error_code unsupported;  // waiting then ends at once
  (void)state_->descriptor.assign(fd, unsupported);
}

// Whoever waits goes with the Watch's owner; the reactor's answers find nobody.
Watch::~Watch() {
  if (state_ && state_->descriptor.is_open()) state_->descriptor.release();
}

void Watch::Close() {
  if (state_->descriptor.is_open()) state_->descriptor.release();
  state_->readable.Set();
  state_->writable.Set();
}

// Asks the reactor once for each direction; the answer wakes whoever waits then.
Event::Awaiter Watch::Readable() {
  state_->readable.Clear();
  if (!std::exchange(state_->reading, true))
    state_->descriptor.async_wait(Direction::wait_read, [state = state_](const auto& /*error*/) {
      state->reading = false;
      state->readable.Set();
    });
  return state_->readable.Wait();
}

Event::Awaiter Watch::Writable() {
  state_->writable.Clear();
  if (!std::exchange(state_->writing, true))
    state_->descriptor.async_wait(Direction::wait_write, [state = state_](const auto& /*error*/) {
      state->writing = false;
      state->writable.Set();
    });
  return state_->writable.Wait();
}

}  // namespace caisson::async
