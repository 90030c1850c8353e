// What a Loop is made of; for the .cc files of async/ alone.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "async/loop.h"

namespace caisson::async {

struct Loop::State {
  struct Timer {
    Waiter* waiter;
    uint64_t* set;  // the sleeper's note of its timer; 0 when the timer has gone
  };

  boost::asio::io_context context{1};
  boost::asio::steady_timer timer{context};
  std::map<std::pair<Clock::time_point, uint64_t>, Timer> timers;
  std::optional<Clock::time_point> armed;
  uint64_t last_timer = 0;
  WaiterList ready;
  bool drain_scheduled = false;

  void ScheduleDrain();
  void ArmTimer();
};

}  // namespace caisson::async
