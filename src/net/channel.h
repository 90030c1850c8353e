// Channel: one connected socket, with what has been read ahead, writes in turn, and time limits.
//
// Shared by the server's connections, the client's, and WebSockets. Reading: look at buffered(),
// Consume what is understood, TryFill for more. Time limits are only noted here; whoever owns the
// channel calls Sweep now and then, and what is late finds the socket shut down.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "async/event.h"
#include "async/watch.h"
#include "net/socket.h"
#include "net/transport.h"

namespace caisson::net {

class Channel {
 public:
  using Clock = async::Loop::Clock;
  static constexpr Clock::time_point kNever = Clock::time_point::max();

  Channel(async::Loop& loop, Fd fd, std::unique_ptr<Transport> transport,
          Clock::duration write_timeout);

  // What has been read and not consumed. Views of it end with the next TryFill or Consume.
  std::string_view buffered() const {
    return std::string_view(buffer_.data() + begin_, end_ - begin_);
  }
  void Consume(size_t bytes);
  // Gives the buffer's memory back when it is empty.
  void Shrink();

  enum class Fill { kGot, kWait, kEnded };
  // Reads once, if there is room: a full buffer (kMaxBuffer) is kGot. After kEnded, see error().
  Fill TryFill();
  // After kWait: completes when TryFill is worth another try.
  async::Event::Awaiter ReadReady();
  // At least one byte more than before, or the reason why there is none: kGone when the other end
  // has finished, kDeadlineExceeded, kTooLarge when the buffer is full, kIo.
  Task<Status> FillMore();
  bool ended() const { return ended_; }         // nothing more can be read
  bool end_is_clean() const { return clean_; }  // … because the other end said so
  bool full() const { return end_ - begin_ >= kMaxBuffer; }
  Error error() const;
  async::Event& space() { return space_; }  // woken by Consume

  // Writes all parts, after those who asked before. Ended while it waits for the socket, it leaves
  // the channel broken; nobody can tell how much of it went out.
  Task<Status> Write(std::array<std::string, 3> parts);
  bool broken() const { return broken_; }
  void FinishWriting() { transport_->FinishWriting(); }
  // Ends it in both directions; whoever waits finds out.
  void Abort();
  // The same for reading alone: what waits for more sees the end.
  void StopReading();

  // Until then something must have been read; kNever for no limit.
  void SetReadDeadline(Clock::time_point due) { read_due_ = due; }
  bool read_expired() const { return read_expired_; }
  // Enforces the deadlines; whether one had just passed.
  bool Sweep(Clock::time_point now);

  async::Loop& loop() { return *loop_; }
  int fd() const { return fd_.get(); }

  static constexpr size_t kMaxBuffer = 65536;

 private:
  class Turn;
  struct Parts;
  bool Push(Parts& parts);

  async::Loop* loop_;
  Fd fd_;
  std::unique_ptr<Transport> transport_;
  async::Watch watch_;
  Clock::duration write_timeout_;
  std::string buffer_;
  size_t begin_ = 0, end_ = 0;
  bool filled_ = false;  // the last read took all the room there was: more is likely to wait
  async::Event space_;
  bool read_wants_write_ = false;
  bool write_wants_read_ = false;
  bool ended_ = false, clean_ = false;
  int error_number_ = 0;
  bool broken_ = false;
  bool writing_ = false;
  async::Event turn_;  // woken when a writer is done
  Clock::time_point read_due_ = kNever, write_due_ = kNever;
  bool read_expired_ = false, write_expired_ = false;
};

}  // namespace caisson::net
