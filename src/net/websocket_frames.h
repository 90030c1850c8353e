// WebSocket frames (RFC 6455 §5): making them, and putting messages together from them. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace caisson::net {

enum class WebSocketRole { kServer, kClient };

enum class Opcode : uint8_t {
  kContinuation = 0,
  kText = 1,
  kBinary = 2,
  kClose = 8,
  kPing = 9,
  kPong = 10,
};

// Close codes that this side gives.
inline constexpr uint16_t kCloseNormal = 1000;
inline constexpr uint16_t kCloseProtocol = 1002;
inline constexpr uint16_t kCloseNone = 1005;  // never on the wire
inline constexpr uint16_t kCloseNotUtf8 = 1007;
inline constexpr uint16_t kCloseTooLarge = 1009;
// Whether a close frame may carry it.
bool IsCloseCode(uint16_t code);

// Masks, or unmasks, `data`, which starts at `offset` of the payload.
void ApplyMask(std::array<uint8_t, 4> mask, uint64_t offset, char* data, size_t size);

// A whole frame's head. Clients mask: the mask stands in the head, and the payload is to be masked.
std::string FrameHead(Opcode opcode, uint64_t payload_size);
std::string MaskedFrameHead(Opcode opcode, uint64_t payload_size, std::array<uint8_t, 4> mask);
// The payload of a close frame.
std::string ClosePayload(uint16_t code, std::string_view reason);

class MessageAssembler {
 public:
  MessageAssembler(WebSocketRole role, size_t max_message)
      : role_(role), max_message_(max_message) {}

  struct Step {
    enum class Kind { kMore, kText, kBinary, kPing, kPong, kClose, kFault };
    Kind kind = Kind::kMore;
    size_t consumed = 0;
    std::string data;   // a message, a control frame's payload, a close's reason; kFault: why
    uint16_t code = 0;  // kClose: what it gave; kFault: what to close with
  };
  // Looks at `in`, which starts where the last step's `consumed` ended. kMore: all that can be used
  // is consumed. Not to be called after kFault.
  Step Next(std::string_view in);

 private:
  struct Head {
    bool fin = false;
    Opcode opcode = Opcode::kContinuation;
    uint64_t length = 0;
    std::array<uint8_t, 4> mask{};
    size_t size = 0;  // of the head itself; 0: not all there
  };
  struct Parsed {
    Head head;
    uint16_t code = 0;  // not 0: a violation
    std::string_view why;
  };
  Parsed ParseHead(std::string_view in) const;
  Parsed CheckHead(Head head) const;
  Step Complete(size_t consumed);
  Step CompleteClose(size_t consumed);

  WebSocketRole role_;
  size_t max_message_;
  bool in_frame_ = false;
  Head head_;
  uint64_t taken_ = 0;  // of the frame's payload
  std::string control_;
  bool in_message_ = false;
  Opcode message_kind_ = Opcode::kText;
  std::string message_;
};

}  // namespace caisson::net
