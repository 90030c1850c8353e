// Where log lines go. Sink is the interface; StreamSink writes to a descriptor from a thread of its
// own, so that whoever logs never waits for a terminal, a pipe or a disk.
//
// Lines wait in a bounded queue. When it is full, further ones are dropped and counted, and once
// there is room again a line says how many were. A descriptor that is closed or broken costs the
// lines, nothing else: no signal, no error, no waiting.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

namespace caisson::log {

enum class Format {
  kJson,      // one object per line
  kText,      // for people: time, level, message, name=value
  kColoured,  // the same, with colours
};

// Text on a terminal, coloured unless NO_COLOR says otherwise; JSON elsewhere.
Format FormatFor(int fd);

class Sink {
 public:
  virtual ~Sink() = default;
  // `line` has no newline yet. From any thread.
  virtual void Put(std::string line) = 0;
  virtual Format format() const = 0;
};

class StreamSink final : public Sink {
 public:
  struct Options {
    size_t queue_bytes = size_t{1} << 20;
    std::chrono::milliseconds flush_limit{500};  // how long the destructor may take
  };

  // Does not own `fd`, which stays open longer than this.
  StreamSink(int fd, Format format) : StreamSink(fd, format, Options()) {}
  StreamSink(int fd, Format format, Options options);
  // Writes what waits, as far as the limit allows.
  ~StreamSink() override;
  StreamSink(const StreamSink&) = delete;
  StreamSink& operator=(const StreamSink&) = delete;

  void Put(std::string line) override;
  Format format() const override { return format_; }
  // Lines that were lost since the beginning.
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  void Work();
  bool WriteLine(const std::string& line);
  bool WaitForRoom();
  std::string DropNotice(uint64_t lines) const;

  const int fd_;
  const Format format_;
  const Options options_;
  std::atomic<uint64_t> dropped_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> queue_;
  size_t queued_bytes_ = 0;
  uint64_t to_report_ = 0;  // drops that no line has told of
  bool ending_ = false;
  bool ended_ = false;
  std::atomic<bool> give_up_ = false;  // nothing more may be written
  std::thread thread_;
};

}  // namespace caisson::log
