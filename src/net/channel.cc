#include "net/channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace caisson::net {
namespace {
constexpr size_t kFirstBuffer = 4096;
}

// What is left to write.
struct Channel::Parts {
  explicit Parts(const std::array<std::string, 3>& texts) {
    for (const std::string& text : texts)
      if (!text.empty()) list[count++] = {const_cast<char*>(text.data()), text.size()};
  }
  bool empty() const { return first == count; }
  std::span<const iovec> left() const { return {list.data() + first, count - first}; }
  void Advance(size_t bytes) {
    while (bytes > 0) {
      iovec& part = list[first];
      const size_t take = std::min(bytes, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + take;
      part.iov_len -= take;
      bytes -= take;
      if (part.iov_len == 0) ++first;
    }
  }
  std::array<iovec, 3> list{};
  size_t first = 0, count = 0;
};

// A writer's turn. One that goes before it is done leaves the channel broken.
class Channel::Turn {
 public:
  explicit Turn(Channel& channel) : channel_(channel) { channel_.writing_ = true; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (!done_) channel_.Abort();
    channel_.write_due_ = kNever;
    channel_.writing_ = false;
    channel_.turn_.Wake();
  }
  void Done() { done_ = true; }

 private:
  Channel& channel_;
  bool done_ = false;
};

Channel::Channel(async::Loop& loop, Fd fd, std::unique_ptr<Transport> transport,
                 Clock::duration write_timeout)
    : loop_(&loop),
      fd_(std::move(fd)),
      transport_(std::move(transport)),
      watch_(loop, fd_.get()),
      write_timeout_(write_timeout),
      space_(loop),
      turn_(loop) {}

void Channel::Consume(size_t bytes) {
  begin_ += bytes;
  if (begin_ == end_) begin_ = end_ = 0;
  space_.Wake();
}

void Channel::Shrink() {
  if (begin_ == end_ && buffer_.size() > kFirstBuffer) {
    buffer_ = std::string();
    begin_ = end_ = 0;
    filled_ = false;
  }
}

Channel::Fill Channel::TryFill() {
  if (ended_) return Fill::kEnded;
  if (full()) return Fill::kGot;
  if (begin_ > 0) {
    memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size() || filled_)
    buffer_.resize(std::clamp(buffer_.size() * 4, kFirstBuffer, kMaxBuffer));
  const IoResult result = transport_->Read(buffer_.data() + end_, buffer_.size() - end_);
  switch (result.kind) {
    case IoResult::Kind::kBytes:
      end_ += result.bytes;
      filled_ = end_ == buffer_.size();
      return Fill::kGot;
    case IoResult::Kind::kWaitReadable:
    case IoResult::Kind::kWaitWritable:
      read_wants_write_ = result.kind == IoResult::Kind::kWaitWritable;
      return Fill::kWait;
    case IoResult::Kind::kEnd:
      clean_ = !read_expired_ && !broken_;
      break;
    case IoResult::Kind::kBroken:
      error_number_ = result.error;
      break;
  }
  ended_ = true;
  return Fill::kEnded;
}

async::Event::Awaiter Channel::ReadReady() {
  return read_wants_write_ ? watch_.Writable() : watch_.Readable();
}

Task<Status> Channel::FillMore() {
  const size_t before = end_ - begin_;
  while (true) {
    // Another reader may have filled the buffer meanwhile.
    if (end_ - begin_ > before) co_return Status();
    if (full()) co_return Error(ErrorCode::kTooLarge, "more is buffered than may be");
    switch (TryFill()) {
      case Fill::kGot:
        co_return Status();
      case Fill::kEnded:
        co_return error();
      case Fill::kWait:
        co_await ReadReady();
        break;
    }
  }
}

Error Channel::error() const {
  if (read_expired_ || write_expired_)
    return {ErrorCode::kDeadlineExceeded, "the other end made no progress in time"};
  if (clean_) return {ErrorCode::kGone, "the other end has closed the connection"};
  if (error_number_ == EPROTO) return {ErrorCode::kIo, "the TLS connection failed"};
  return Error::FromErrno("the connection broke",
                          error_number_ != 0 ? error_number_ : ECONNABORTED);
}

// Writes what the kernel takes at once; false when it must wait.
bool Channel::Push(Parts& parts) {
  while (!parts.empty() && !broken_) {
    const IoResult result = transport_->Write(parts.left());
    switch (result.kind) {
      case IoResult::Kind::kBytes: {
        parts.Advance(result.bytes);
        if (write_due_ != kNever) write_due_ = Clock::now() + write_timeout_;
        break;
      }
      case IoResult::Kind::kWaitReadable:
      case IoResult::Kind::kWaitWritable:
        write_wants_read_ = result.kind == IoResult::Kind::kWaitReadable;
        return false;
      default: {
        broken_ = true;
        if (error_number_ == 0) error_number_ = result.error;
      }
    }
  }
  return true;
}

Task<Status> Channel::Write(std::array<std::string, 3> texts) {
  while (writing_) co_await turn_.Wait();
  Parts parts(texts);
  Turn turn(*this);
  while (!Push(parts)) {
    if (write_due_ == kNever) write_due_ = Clock::now() + write_timeout_;
    if (write_wants_read_) {
      co_await watch_.Readable();
    } else {
      co_await watch_.Writable();
    }
  }
  turn.Done();
  if (broken_) co_return error();
  co_return Status();
}

void Channel::Abort() {
  broken_ = true;
  ::shutdown(fd_.get(), SHUT_RDWR);
}

void Channel::StopReading() { ::shutdown(fd_.get(), SHUT_RD); }

bool Channel::Sweep(Clock::time_point now) {
  bool late = false;
  if (now >= read_due_) {
    read_due_ = kNever;
    read_expired_ = late = true;
    StopReading();
  }
  if (now >= write_due_) {
    write_due_ = kNever;
    write_expired_ = late = true;
    Abort();
  }
  return late;
}

}  // namespace caisson::net
