// Watch: waits until a descriptor can be read or written. Does not own the descriptor, which stays
// open for as long as the Watch lives.
//
// Try first, wait when the kernel says EAGAIN. A descriptor that has failed, was hung up, or cannot
// be waited for (a regular file) counts as ready: the next attempt tells.
#pragma once

#include <memory>

#include "async/event.h"

namespace caisson::async {

class Watch {
 public:
  Watch(Loop& loop, int fd);
  ~Watch();
  Watch(Watch&&) noexcept = default;
  Watch& operator=(Watch&&) = delete;

  Event::Awaiter Readable();
  Event::Awaiter Writable();
  // Lets go of the descriptor, which may be closed then. Whoever waits is woken.
  void Close();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace caisson::async
