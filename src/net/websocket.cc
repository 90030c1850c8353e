#include "net/websocket.h"

#include <openssl/rand.h>

#include <cstdlib>

#include "base/text.h"
#include "base/utf8.h"
#include "net/websocket_handshake.h"

namespace caisson::net {
namespace {

class Socket final : public WebSocket {
 public:
  Socket(std::unique_ptr<Channel> owned, Channel* channel, WebSocketRole role,
         std::string subprotocol, size_t max_message)
      : owned_(std::move(owned)),
        channel_(channel),
        role_(role),
        subprotocol_(std::move(subprotocol)),
        assembler_(role, max_message) {}

  Task<Result<WsMessage>> Receive() override;
  Task<Status> SendText(std::string text) override {
    if (!IsUtf8(text)) return Fail(Error(ErrorCode::kInternal, "a text message that is not UTF-8"));
    return SendFrame(Opcode::kText, std::move(text));
  }
  Task<Status> SendBinary(std::string bytes) override {
    return SendFrame(Opcode::kBinary, std::move(bytes));
  }
  Task<Status> Ping(std::string payload) override {
    if (payload.size() > 125)
      return Fail(Error(ErrorCode::kInternal, "a ping of more than 125 bytes"));
    return SendFrame(Opcode::kPing, std::move(payload));
  }
  Task<Status> Close(uint16_t code, std::string reason) override;
  std::string_view subprotocol() const override { return subprotocol_; }

 private:
  static Task<Status> Fail(Error error) { co_return std::move(error); }
  Task<Status> SendFrame(Opcode opcode, std::string payload);
  Task<Status> PutFrame(Opcode opcode, std::string payload);
  Task<Result<WsMessage>> TakeClose(MessageAssembler::Step step);
  Task<Result<WsMessage>> Refuse(MessageAssembler::Step step);

  std::unique_ptr<Channel> owned_;
  Channel* channel_;
  WebSocketRole role_;
  std::string subprotocol_;
  MessageAssembler assembler_;
  bool close_sent_ = false;
  bool over_ = false;  // nothing more is to be received
};

Error Closed() { return {ErrorCode::kGone, "the WebSocket is closed"}; }

Task<Status> Socket::SendFrame(Opcode opcode, std::string payload) {
  if (close_sent_) co_return Closed();
  co_return co_await PutFrame(opcode, std::move(payload));
}

Task<Status> Socket::PutFrame(Opcode opcode, std::string payload) {
  std::string head;
  if (role_ == WebSocketRole::kClient) {
    std::array<uint8_t, 4> mask{};
    if (RAND_bytes(mask.data(), mask.size()) != 1) std::abort();
    head = MaskedFrameHead(opcode, payload.size(), mask);
    ApplyMask(mask, 0, payload.data(), payload.size());
  } else {
    head = FrameHead(opcode, payload.size());
  }
  auto written = co_await channel_->Write({std::move(head), std::move(payload), {}});
  if (!written) co_return std::move(written).error().WithCode(ErrorCode::kGone);
  co_return Status();
}

Task<Status> Socket::Close(uint16_t code, std::string reason) {
  if (close_sent_) co_return Closed();
  if (!IsCloseCode(code) || !IsUtf8(reason))
    co_return Error(ErrorCode::kInternal, "a close that may not be sent");
  close_sent_ = true;
  co_return co_await PutFrame(Opcode::kClose, ClosePayload(code, reason));
}

Task<Result<WsMessage>> Socket::TakeClose(MessageAssembler::Step step) {
  over_ = true;
  if (!close_sent_) {
    close_sent_ = true;
    std::string payload = step.code == kCloseNone ? std::string() : ClosePayload(step.code, "");
    // The other end has said good-bye: whether it hears ours changes nothing.
    static_cast<void>((co_await PutFrame(Opcode::kClose, std::move(payload))).has_value());
  }
  co_return WsMessage{WsMessage::Kind::kClose, std::move(step.data), step.code};
}

Task<Result<WsMessage>> Socket::Refuse(MessageAssembler::Step step) {
  over_ = true;
  if (!close_sent_) {
    close_sent_ = true;
    static_cast<void>(
        (co_await PutFrame(Opcode::kClose, ClosePayload(step.code, step.data))).has_value());
  }
  co_return Error(ErrorCode::kProtocol, Concat({"the WebSocket was misused: ", step.data}));
}

Task<Result<WsMessage>> Socket::Receive() {
  while (!over_) {
    MessageAssembler::Step step = assembler_.Next(channel_->buffered());
    channel_->Consume(step.consumed);
    using Kind = MessageAssembler::Step::Kind;
    switch (step.kind) {
      case Kind::kText:
        co_return WsMessage{WsMessage::Kind::kText, std::move(step.data), 0};
      case Kind::kBinary:
        co_return WsMessage{WsMessage::Kind::kBinary, std::move(step.data), 0};
      case Kind::kPong:
        break;
      case Kind::kPing:
        if (!close_sent_) {
          auto written = co_await PutFrame(Opcode::kPong, std::move(step.data));
          if (!written) co_return std::move(written).error();
        }
        break;
      case Kind::kClose:
        co_return co_await TakeClose(std::move(step));
      case Kind::kFault:
        co_return co_await Refuse(std::move(step));
      case Kind::kMore: {
        auto filled = co_await channel_->FillMore();
        if (filled) break;
        over_ = true;
        co_return std::move(filled).error().WithCode(ErrorCode::kGone);
      }
    }
  }
  co_return Closed();
}

}  // namespace

std::unique_ptr<WebSocket> MakeWebSocket(Channel* channel, WebSocketRole role,
                                         std::string subprotocol, size_t max_message) {
  return std::make_unique<Socket>(nullptr, channel, role, std::move(subprotocol), max_message);
}

std::unique_ptr<WebSocket> MakeWebSocket(std::unique_ptr<Channel> channel, WebSocketRole role,
                                         std::string subprotocol, size_t max_message) {
  Channel* raw = channel.get();
  return std::make_unique<Socket>(std::move(channel), raw, role, std::move(subprotocol),
                                  max_message);
}

}  // namespace caisson::net
