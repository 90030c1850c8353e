// Result<T>: a value or an Error. Its names are a subset of std::expected, and it is
// [[nodiscard]], so an unhandled failure does not compile quietly.
#pragma once

#include <cstdlib>
#include <optional>
#include <utility>
#include <variant>

#include "base/error.h"

namespace caisson {

template <typename T>
class [[nodiscard]] Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { return Check(), std::get<0>(state_); }
  const T& value() const& { return Check(), std::get<0>(state_); }
  T&& value() && { return Check(), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  T value_or(T fallback) && {
    return has_value() ? std::get<0>(std::move(state_)) : std::move(fallback);
  }

  Error& error() & { return std::get<1>(state_); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  void Check() const {
    if (!has_value()) std::abort();  // a programming error: value() of a failed Result
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit

  bool has_value() const { return !error_.has_value(); }
  explicit operator bool() const { return has_value(); }
  void value() const {
    if (error_) std::abort();
  }
  Error& error() & { return *error_; }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

// Returns the error of `expr` from the enclosing function, or goes on.
#define CAISSON_TRY(expr)                                                                  \
  do {                                                                                     \
    if (auto caisson_try_ = (expr); !caisson_try_) return std::move(caisson_try_).error(); \
  } while (0)

#define CAISSON_CONCAT_(a, b) a##b
#define CAISSON_CONCAT(a, b) CAISSON_CONCAT_(a, b)
#define CAISSON_ASSIGN_(tmp, decl, expr)   \
  auto tmp = (expr);                       \
  if (!tmp) return std::move(tmp).error(); \
  decl = *std::move(tmp)
// CAISSON_ASSIGN(auto x, F()): declares x from the value, or returns the error.
#define CAISSON_ASSIGN(decl, expr) \
  CAISSON_ASSIGN_(CAISSON_CONCAT(caisson_tmp_, __LINE__), decl, expr)

}  // namespace caisson
