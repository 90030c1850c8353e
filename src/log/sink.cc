#include "log/sink.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "log/line.h"

namespace caisson::log {

Format FormatFor(int fd) {
  if (isatty(fd) == 0) return Format::kJson;
  const char* no_colour = std::getenv("NO_COLOR");
  return no_colour != nullptr && *no_colour != '\0' ? Format::kText : Format::kColoured;
}

StreamSink::StreamSink(int fd, Format format, Options options)
    : fd_(fd), format_(format), options_(options), thread_([this] { Work(); }) {}

StreamSink::~StreamSink() {
  std::unique_lock lock(mutex_);
  ending_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, options_.flush_limit, [&] { return ended_; });
  lock.unlock();
  give_up_ = true;
  thread_.join();
}

void StreamSink::Put(std::string line) {
  line += '\n';
  const std::lock_guard lock(mutex_);
  if (queued_bytes_ + line.size() > options_.queue_bytes) {
    ++to_report_;
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  queued_bytes_ += line.size();
  queue_.push_back(std::move(line));
  changed_.notify_all();
}

void StreamSink::Work() {
  // Signals belong to the other threads; and a broken pipe is an error here, not a SIGPIPE.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ending_ || !queue_.empty(); });
    if (queue_.empty()) break;
    std::string line = std::move(queue_.front());
    queue_.pop_front();
    queued_bytes_ -= line.size();
    const uint64_t lost = queue_.empty() ? std::exchange(to_report_, 0) : 0;
    lock.unlock();
    if (!WriteLine(line)) dropped_.fetch_add(1, std::memory_order_relaxed);
    if (lost > 0) WriteLine(DropNotice(lost));
    lock.lock();
  }
  ended_ = true;
  changed_.notify_all();
}

std::string StreamSink::DropNotice(uint64_t lines) const {
  std::string notice = StartLine(format_, "warn", "log lines were dropped");
  notice += format_ == Format::kJson ? ",\"lines\":" : " lines=";
  notice += std::to_string(lines);
  notice += format_ == Format::kJson ? "}\n" : "\n";
  return notice;
}

// One write for a line of up to PIPE_BUF bytes, which no other writer's can break into (pipe(7)).
// A pipe that polls as writable takes that many without blocking.
bool StreamSink::WriteLine(const std::string& line) {
  std::string_view left = line;
  while (!left.empty()) {
    if (!WaitForRoom()) return false;
    const ssize_t written = write(fd_, left.data(), std::min<size_t>(left.size(), PIPE_BUF));
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written <= 0) return false;
    left.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// Whether the descriptor takes more; not when it is broken or time is over.
bool StreamSink::WaitForRoom() {
  constexpr int kLookUpMs = 20;  // how soon giving up is noticed
  while (!give_up_) {
    pollfd polled = {.fd = fd_, .events = POLLOUT, .revents = 0};
    if (poll(&polled, 1, kLookUpMs) < 0 && errno != EINTR) return false;
    if ((polled.revents & POLLOUT) != 0) return true;
    if (polled.revents != 0) return false;
  }
  return false;
}

}  // namespace caisson::log
