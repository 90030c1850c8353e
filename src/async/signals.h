// Signals: signals to this process, awaited. While one lives, its signals have no other effect.
#pragma once

#include <deque>
#include <initializer_list>
#include <memory>

#include "async/event.h"

namespace caisson::async {

class Signals {
 public:
  Signals(Loop& loop, std::initializer_list<int> numbers);
  ~Signals();

  void Add(int number);
  // The next one.
  Task<int> Next();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace caisson::async
