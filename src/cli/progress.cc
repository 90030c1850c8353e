#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "cli/output.h"
#include "cli/process_link.h"
#include "cli/terminal.h"

namespace caisson::cli {

using namespace std::chrono_literals;

Progress::Progress(std::string what, std::optional<uint64_t> total, uint64_t done)
    : what_(OneLine(what)),
      total_(total),
      before_(done),
      done_(done),
      begin_(Clock::now()),
      next_(begin_ + 500ms),
      terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (shown_) WriteTo(STDERR_FILENO, "\r\x1b[K");
}

void Progress::Add(uint64_t bytes) {
  done_ += bytes;
  const auto now = Clock::now();
  if (!terminal_ || now < next_) return;
  next_ = now + 100ms;
  shown_ = true;
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double rate = seconds <= 0 ? 0 : static_cast<double>(done_ - before_) / seconds;
  WriteTo(STDERR_FILENO,
          "\r" + Line(what_, done_, total_, rate, SizeOfTerminal(STDERR_FILENO).cols) + "\x1b[K");
}

std::string Progress::Line(const std::string& what, uint64_t done, std::optional<uint64_t> total,
                           double bytes_per_second, size_t width) {
  constexpr size_t kBar = 20;
  std::string tail = FormatSize(done);
  if (total && *total > 0) {
    const double part = std::min(1.0, static_cast<double>(done) / static_cast<double>(*total));
    const auto filled = static_cast<size_t>(part * kBar);
    std::string bar(filled, '=');
    if (filled < kBar) bar += '>';
    bar.resize(kBar, ' ');
    tail = fmt::format("[{}] {:3.0f}%  {} of {}", bar, part * 100, FormatSize(done),
                       FormatSize(*total));
  }
  tail += fmt::format("  {}/s", FormatSize(static_cast<uint64_t>(bytes_per_second)));
  // A name that does not fit loses its beginning: the end tells files apart.
  if (width < tail.size() + 12) return tail.substr(0, width);
  std::string name = what;
  const size_t room = width - tail.size() - 3;
  if (DisplayWidth(name) > room) {
    while (!name.empty() && DisplayWidth(name) >= room) {
      do {
        name.erase(0, 1);
      } while (!name.empty() && (static_cast<unsigned char>(name[0]) & 0xc0) == 0x80);
    }
    name = "…" + name;
  }
  return name + "  " + tail;
}

}  // namespace caisson::cli
