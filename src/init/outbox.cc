#include "init/outbox.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace caisson::init {

void Outbox::SendFailed(uint32_t tag, const Error& error) {
  const int number = error.sys_errno() != 0 ? error.sys_errno() : EINVAL;
  SendFailed(tag, number, error.message());
}

void Outbox::SendFailed(uint32_t tag, int error_number, std::string what) {
  if (what.size() > wire::init::kMaxText) what.resize(wire::init::kMaxText);
  Send(wire::init::Failed{.error_number = error_number, .what = std::move(what)}, tag);
}

bool Outbox::SendNow(const iovec* parts, int count) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(parts);
  message.msg_iovlen = static_cast<size_t>(count);
  while (true) {
    if (sendmsg(socket_, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return true;
    if (errno == EINTR) continue;
    // ENOBUFS: the kernel is short of memory for the moment.
    (errno == EAGAIN || errno == ENOBUFS ? blocked_ : broken_) = true;
    return false;
  }
}

void Outbox::SendPacket(std::string packet) {
  if (!blocked_ && !broken_ && queue_.empty()) {
    const iovec part{packet.data(), packet.size()};
    if (SendNow(&part, 1)) return;
  }
  queued_bytes_ += packet.size();
  queue_.push_back(std::move(packet));
}

bool Outbox::SendOutput(uint32_t process, wire::init::Stream stream, uint64_t offset,
                        const Ring::Spans& spans) {
  if (blocked_ || broken_ || !queue_.empty()) return false;
  // The message without its data; then the two lengths that count it.
  std::string head = wire::Encode(
      wire::init::Output{.process = process, .stream = stream, .offset = offset, .data = {}}, 0);
  const auto data_size = static_cast<uint32_t>(spans.size);
  const auto size = static_cast<uint32_t>(head.size() + spans.size);
  std::memcpy(head.data(), &size, sizeof size);
  std::memcpy(head.data() + head.size() - sizeof data_size, &data_size, sizeof data_size);
  const iovec parts[3] = {{head.data(), head.size()}, spans.parts[0], spans.parts[1]};
  return SendNow(parts, 1 + spans.count);
}

void Outbox::Flush() {
  blocked_ = false;
  while (!queue_.empty() && !broken_) {
    const iovec part{queue_.front().data(), queue_.front().size()};
    if (!SendNow(&part, 1)) return;
    queued_bytes_ -= queue_.front().size();
    queue_.pop_front();
  }
}

void Outbox::Clear() {
  queue_.clear();
  queued_bytes_ = 0;
}

}  // namespace caisson::init
