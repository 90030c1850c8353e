// The terminal that caisson runs on: raw while a command has it, as it was afterwards.
#pragma once

#include <termios.h>

#include <cstdint>
#include <optional>

namespace caisson::cli {

struct WindowSize {
  uint16_t rows = 24, cols = 80;
};
WindowSize SizeOfTerminal(int fd);

class RawTerminal {
 public:
  explicit RawTerminal(int fd);
  ~RawTerminal();
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  int fd_;
  std::optional<termios> before_;
};

}  // namespace caisson::cli
