// Logger: structured lines, each a message with named values.
//
//   log.Info("session created", {{"session_id", id}, {"seconds", took}});
//   log::Logger of_request = log.With({{"request_id", id}});   // in every line of this one
//   log.Warn("webhook failed", error, {{"url", url}});
//
// A Logger is a small value: copy it, keep it, pass it by reference. It refers to a Sink
// (log/sink.h), which outlives it. Thread-safe as far as its Sink is, which StreamSink is.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "base/error.h"
#include "base/result.h"
#include "log/secret.h"
#include "log/sink.h"

namespace caisson::log {

enum class Level { kDebug, kInfo, kWarn, kError };

// "debug", "info", "warn", "error": also the choices of an option that asks for one.
inline constexpr std::string_view kLevelChoices = "debug|info|warn|error";
Result<Level> ParseLevel(std::string_view name);
std::string_view NameOf(Level level);

// A name and a value for one line. Refers to what it is made of; use it in the call.
struct Field {
  Field(std::string_view key, std::string_view text) : key(key), value(text) {}
  Field(std::string_view key, const char* text) : key(key), value(std::string_view(text)) {}
  Field(std::string_view key, const std::string& text) : key(key), value(std::string_view(text)) {}
  // The line says that there is a secret, and nothing of it.
  Field(std::string_view key, const Secret&) : key(key), value(std::string_view("[secret]")) {}
  template <std::integral T>
  Field(std::string_view key, T number) : key(key) {
    if constexpr (std::is_same_v<T, bool>) {
      value = number;
    } else if constexpr (std::is_signed_v<T>) {
      value = static_cast<int64_t>(number);
    } else {
      value = static_cast<uint64_t>(number);
    }
  }
  Field(std::string_view key, double number) : key(key), value(number) {}
  // In seconds.
  template <typename Rep, typename Period>
  Field(std::string_view key, std::chrono::duration<Rep, Period> time)
      : key(key), value(std::chrono::duration<double>(time).count()) {}

  std::string_view key;
  std::variant<std::string_view, int64_t, uint64_t, double, bool> value;
};
using Fields = std::initializer_list<Field>;

class Logger {
 public:
  Logger(Sink& sink, Level level) : sink_(&sink), level_(level) {}

  // The same, with these fields in every line.
  Logger With(Fields fields) const;

  bool Enabled(Level level) const { return level >= level_; }
  Level level() const { return level_; }

  // Text values are cut at 4096 bytes. Never blocks, never fails; a line that finds no room is
  // counted by the sink.
  void Write(Level level, std::string_view message, Fields fields = {}) const;
  void Debug(std::string_view message, Fields fields = {}) const {
    if (Enabled(Level::kDebug)) Write(Level::kDebug, message, fields);
  }
  void Info(std::string_view message, Fields fields = {}) const {
    if (Enabled(Level::kInfo)) Write(Level::kInfo, message, fields);
  }
  void Warn(std::string_view message, Fields fields = {}) const {
    if (Enabled(Level::kWarn)) Write(Level::kWarn, message, fields);
  }
  void Error(std::string_view message, Fields fields = {}) const {
    if (Enabled(Level::kError)) Write(Level::kError, message, fields);
  }
  // With the error's own text as `error`, its name as `code`, and its remedy.
  void Warn(std::string_view message, const caisson::Error& error, Fields fields = {}) const {
    WriteFailure(Level::kWarn, message, error, fields);
  }
  void Error(std::string_view message, const caisson::Error& error, Fields fields = {}) const {
    WriteFailure(Level::kError, message, error, fields);
  }

 private:
  void WriteFailure(Level level, std::string_view message, const caisson::Error& error,
                    Fields fields) const;

  Sink* sink_;
  Level level_;
  std::string bound_;  // the fields of every line, in the sink's format
};

}  // namespace caisson::log
