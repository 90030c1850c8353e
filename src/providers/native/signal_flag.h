// SignalFlag: one coroutine waits, somebody sets. For use on one strand.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <utility>

#include "sandbox/task.h"

namespace caisson::native {

class SignalFlag {
 public:
  bool is_set() const { return set_; }
  void Clear() { set_ = false; }

  // Wakes the waiter, now or when it comes.
  void Set(const boost::asio::any_io_executor& executor) {
    set_ = true;
    if (waiter_) boost::asio::post(executor, std::exchange(waiter_, nullptr));
  }

  Task<void> Wait() {
    if (set_) co_return;
    co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void()>(
        [this](auto handler) {
          waiter_ = [h = std::make_shared<decltype(handler)>(std::move(handler))]() mutable {
            std::move (*h)();
          };
        },
        boost::asio::use_awaitable);
  }

 private:
  bool set_ = false;
  std::function<void()> waiter_;
};

}  // namespace caisson::native
