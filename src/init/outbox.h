// Outbox: the sending half of the control socket.
//
// Replies and events are sent at once when the socket takes them and queued in order when it does
// not; Output goes straight from its ring or not at all. The queue is bounded by its users: whoever
// reads requests or watches stops while `crowded()`.
#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "base/error.h"
#include "init/ring.h"
#include "wire/init_protocol.h"

namespace caisson::init {

class Outbox {
 public:
  explicit Outbox(int socket) : socket_(socket) {}

  template <typename Message>
  void Send(const Message& message, uint32_t tag) {
    SendPacket(wire::Encode(message, tag));
  }
  void SendDone(uint32_t tag) { Send(wire::init::Done{}, tag); }
  void SendFailed(uint32_t tag, const Error& error);
  void SendFailed(uint32_t tag, int error_number, std::string what);

  // True when the packet is on its way; false when the socket is full or others are queued.
  bool SendOutput(uint32_t process, wire::init::Stream stream, uint64_t offset,
                  const Ring::Spans& spans);

  // Sends what is queued, as far as the socket takes it.
  void Flush();
  // Forgets what is queued: the owner it was meant for is gone.
  void Clear();

  bool broken() const { return broken_; }        // the other end is gone
  bool wants_write() const { return blocked_; }  // wait for EPOLLOUT, then Flush
  bool crowded() const { return queued_bytes_ > kCrowd; }

 private:
  static constexpr size_t kCrowd = 256 * 1024;

  void SendPacket(std::string packet);
  // True when sent; otherwise blocked_ or broken_ is set.
  bool SendNow(const iovec* parts, int count);

  int socket_;
  std::deque<std::string> queue_;
  size_t queued_bytes_ = 0;
  bool blocked_ = false;
  bool broken_ = false;
};

}  // namespace caisson::init
