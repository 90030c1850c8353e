// Task<T>: a coroutine on an Asio executor. Everything that waits gives one.
//
// Coroutines take their parameters by value, and no capturing lambda is a coroutine.
#pragma once

#include <boost/asio/awaitable.hpp>

namespace caisson {

template <typename T>
using Task = boost::asio::awaitable<T>;

}  // namespace caisson

// As CAISSON_TRY and CAISSON_ASSIGN, in a coroutine: co_await is part of the expression given.
#define CAISSON_CO_TRY(expr)                                                                  \
  do {                                                                                        \
    if (auto caisson_try_ = (expr); !caisson_try_) co_return std::move(caisson_try_).error(); \
  } while (0)
#define CAISSON_CO_ASSIGN_(tmp, decl, expr)   \
  auto tmp = (expr);                          \
  if (!tmp) co_return std::move(tmp).error(); \
  decl = *std::move(tmp)
#define CAISSON_CO_ASSIGN(decl, expr) \
  CAISSON_CO_ASSIGN_(CAISSON_CONCAT(caisson_tmp_, __LINE__), decl, expr)
