// Poller: epoll, and the tokens by which its events find their owner.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <span>

#include "sys/unique_fd.h"

namespace caisson::init {

enum class Source : uint8_t {
  kControl,
  kSignals,
  kReports,
  kStdout,
  kStderr,
  kStdin,
  kJob,
  kWatch
};

struct Token {
  Source source = Source::kControl;
  uint32_t id = 0;  // of the process, job or watch
};

class Poller {
 public:
  Poller() : fd_(epoll_create1(EPOLL_CLOEXEC)) {}

  bool ok() const { return static_cast<bool>(fd_); }
  // `events` as in epoll_ctl(2). False when the kernel refuses (errno says why).
  bool Add(int fd, uint32_t events, Token token) {
    return Control(EPOLL_CTL_ADD, fd, events, token);
  }
  bool Change(int fd, uint32_t events, Token token) {
    return Control(EPOLL_CTL_MOD, fd, events, token);
  }
  // How many events came within `timeout_ms` (-1: no limit); at most buffer.size().
  int Wait(std::span<epoll_event> buffer, int timeout_ms) {
    return epoll_wait(fd_.get(), buffer.data(), static_cast<int>(buffer.size()), timeout_ms);
  }
  static Token TokenOf(const epoll_event& event) {
    return {static_cast<Source>(event.data.u64 >> 32), static_cast<uint32_t>(event.data.u64)};
  }

 private:
  bool Control(int operation, int fd, uint32_t events, Token token) {
    epoll_event event{.events = events};
    event.data.u64 = uint64_t{static_cast<uint8_t>(token.source)} << 32 | token.id;
    return epoll_ctl(fd_.get(), operation, fd, &event) == 0;
  }
  sys::UniqueFd fd_;
};

}  // namespace caisson::init
