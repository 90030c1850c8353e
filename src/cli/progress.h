// Progress: how far a transfer is, on one line of the terminal that stderr is, once it takes longer
// than half a second. Shows nothing where stderr is no terminal. The line goes when this does.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace caisson::cli {

class Progress {
 public:
  // `done`: what an earlier transfer has brought already.
  Progress(std::string what, std::optional<uint64_t> total, uint64_t done = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void Add(uint64_t bytes);

  // The line itself: "data.bin  [=====>    ]  50%  1M of 2M  512K/s". At most `width` columns.
  static std::string Line(const std::string& what, uint64_t done, std::optional<uint64_t> total,
                          double bytes_per_second, size_t width);

 private:
  using Clock = std::chrono::steady_clock;
  const std::string what_;
  const std::optional<uint64_t> total_;
  const uint64_t before_;
  uint64_t done_;
  const Clock::time_point begin_;
  Clock::time_point next_;
  const bool terminal_;
  bool shown_ = false;
};

}  // namespace caisson::cli
