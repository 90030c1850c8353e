// FakeSink: keeps the lines, for tests that look at them or want none.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "log/sink.h"

namespace caisson::log {

class FakeSink final : public Sink {
 public:
  explicit FakeSink(Format format = Format::kJson) : format_(format) {}
  void Put(std::string line) override {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }
  Format format() const override { return format_; }
  std::vector<std::string> lines() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  const Format format_;
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace caisson::log
