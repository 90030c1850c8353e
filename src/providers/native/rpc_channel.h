// RpcChannel: requests with replies, and events, over a SEQPACKET socket of wire/frame.h.
//
// One coroutine reads; it hands each reply to the request of its tag and each event (tag 0) to the
// handler. When the socket closes or the other end breaks the protocol, every pending and later
// request fails with kUnavailable and `on_closed` runs once. Shared by whoever has requests in
// flight; its handlers do not let go of it.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "async/task_set.h"
#include "async/watch.h"
#include "base/result.h"
#include "sys/packet.h"
#include "wire/frame.h"

namespace caisson::native {

class RpcChannel : public std::enable_shared_from_this<RpcChannel> {
 public:
  enum class Descriptors { kAccept, kRefuse };  // kRefuse: the other end is inside a sandbox

  static std::shared_ptr<RpcChannel> Create(async::Loop& loop, sys::UniqueFd socket,
                                            Descriptors descriptors);

  // Starts reading. The handlers must not outlive what they refer to: Close first.
  void Start(std::function<void(const wire::Header&, const sys::Packet&)> on_event,
             std::function<void()> on_closed);
  void Close();
  bool closed() const { return closed_; }

  // Sends `message` and waits for the packet that answers it.
  template <typename Message>
  Task<Result<sys::Packet>> Call(Message message, std::vector<int> fds = {}) {
    const uint32_t tag = NextTag();
    return Exchange(tag, wire::Encode(message, tag), std::move(fds));
  }
  // The two halves of Call, for requests that go out back to back and are answered later.
  struct Pending {
    explicit Pending(async::Loop& loop) : done(loop) {}
    async::Event done;
    sys::Packet packet;
    bool answered = false;
  };
  template <typename Message>
  std::shared_ptr<Pending> Begin(const Message& message) {
    const uint32_t tag = NextTag();
    auto pending = std::make_shared<Pending>(loop_);
    pending_[tag] = pending;
    if (!SendNow(wire::Encode(message, tag))) pending->done.Set();
    return pending;
  }
  Task<Result<sys::Packet>> Finish(std::shared_ptr<Pending> pending);

  // Sends without expecting an answer; what the socket does not take now follows later, in order.
  template <typename Message>
  Status Post(const Message& message) {
    return SendNow(wire::Encode(message, 0));
  }

 private:
  RpcChannel(async::Loop& loop, sys::UniqueFd socket, Descriptors descriptors);
  uint32_t NextTag();
  Task<Result<sys::Packet>> Exchange(uint32_t tag, std::string bytes, std::vector<int> fds);
  Status SendNow(std::string bytes);
  Task<void> FlushBacklog();
  Task<void> ReadLoop();
  void Fail();

  async::Loop& loop_;
  sys::UniqueFd socket_;
  async::Watch watch_;
  Descriptors descriptors_;
  std::function<void(const wire::Header&, const sys::Packet&)> on_event_;
  std::function<void()> on_closed_;
  std::unordered_map<uint32_t, std::shared_ptr<Pending>> pending_;
  std::deque<std::string> backlog_;
  uint32_t last_tag_;  // starts anywhere, so that answers to a former owner match nothing of ours
  bool closed_ = false;
  async::TaskSet tasks_;  // the reader, and the writer of the backlog
};

// A request that the protocol has no room for, noticed before it is sent.
inline Error TooLong() {
  return Error(ErrorCode::kInvalidArgument,
               "a name, path, list or other part of the request is too long")
      .WithRemedy(
          "shorten it: user names have at most 64 bytes, paths 4096, an argument or variable 96 "
          "KiB");
}

// The decoded reply, when it is a `Message`; otherwise the error that the packet carries.
// FailedMessage is the protocol's own; `to_error` turns it into an Error.
template <typename Message, typename FailedMessage, typename ToError>
Result<Message> ParseReply(const sys::Packet& packet, ToError to_error) {
  const auto header = wire::PeekHeader(packet.bytes);
  if (header && header->type == static_cast<uint16_t>(FailedMessage::kType)) {
    if (auto failed = wire::Decode<FailedMessage>(packet.bytes)) return to_error(*failed);
  } else if (header && header->type == static_cast<uint16_t>(Message::kType)) {
    if (auto message = wire::Decode<Message>(packet.bytes)) return *std::move(message);
  }
  return Error(ErrorCode::kProtocol,
               "a helper of Caisson's answered with something else than expected");
}

}  // namespace caisson::native
