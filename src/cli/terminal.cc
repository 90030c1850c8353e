#include "cli/terminal.h"

#include <signal.h>
#include <sys/ioctl.h>

namespace caisson::cli {

WindowSize SizeOfTerminal(int fd) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) return {};
  return {size.ws_row, size.ws_col};
}

RawTerminal::RawTerminal(int fd) : fd_(fd) {
  termios now{};
  if (tcgetattr(fd, &now) != 0) return;
  before_ = now;
  cfmakeraw(&now);
  tcsetattr(fd, TCSADRAIN, &now);
}

RawTerminal::~RawTerminal() {
  if (!before_) return;
  // As a background process we would be stopped for touching the terminal.
  sigset_t block, old;
  sigemptyset(&block);
  sigaddset(&block, SIGTTOU);
  sigprocmask(SIG_BLOCK, &block, &old);
  tcsetattr(fd_, TCSADRAIN, &*before_);
  sigprocmask(SIG_SETMASK, &old, nullptr);
}

}  // namespace caisson::cli
