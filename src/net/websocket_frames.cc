#include "net/websocket_frames.h"

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace caisson::net {
namespace {

constexpr size_t kMaxControl = 125;

bool IsControl(Opcode opcode) { return static_cast<uint8_t>(opcode) >= 8; }

std::string Head(Opcode opcode, uint64_t size, uint8_t mask_bit) {
  std::string head;
  head += static_cast<char>(0x80 | static_cast<uint8_t>(opcode));
  if (size <= kMaxControl) {
    head += static_cast<char>(mask_bit | size);
    return head;
  }
  const int bytes = size <= 0xffff ? 2 : 8;
  head += static_cast<char>(mask_bit | (bytes == 2 ? 126 : 127));
  for (int i = bytes - 1; i >= 0; --i) head += static_cast<char>(size >> (8 * i));
  return head;
}

}  // namespace

bool IsCloseCode(uint16_t code) {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
         (code >= 3000 && code <= 4999);
}

void ApplyMask(std::array<uint8_t, 4> mask, uint64_t offset, char* data, size_t size) {
  for (size_t i = 0; i < size; ++i)
    data[i] = static_cast<char>(static_cast<uint8_t>(data[i]) ^ mask[(offset + i) & 3]);
}

std::string FrameHead(Opcode opcode, uint64_t payload_size) {
  return Head(opcode, payload_size, 0);
}

std::string MaskedFrameHead(Opcode opcode, uint64_t payload_size, std::array<uint8_t, 4> mask) {
  std::string head = Head(opcode, payload_size, 0x80);
  head.append(mask.begin(), mask.end());
  return head;
}

std::string ClosePayload(uint16_t code, std::string_view reason) {
  std::string payload;
  payload += static_cast<char>(code >> 8);
  payload += static_cast<char>(code & 0xff);
  payload += reason.substr(0, kMaxControl - 2);
  while (!IsUtf8(std::string_view(payload).substr(2)))
    payload.pop_back();  // cut inside a character
  return payload;
}

MessageAssembler::Parsed MessageAssembler::ParseHead(std::string_view in) const {
  if (in.size() < 2) return {};
  const auto byte = [in](size_t i) { return static_cast<uint8_t>(in[i]); };
  Head head;
  head.fin = (byte(0) & 0x80) != 0;
  head.opcode = static_cast<Opcode>(byte(0) & 0x0f);
  if ((byte(0) & 0x70) != 0) return {{}, kCloseProtocol, "a reserved bit is set"};
  const bool masked = (byte(1) & 0x80) != 0;
  if (masked != (role_ == WebSocketRole::kServer))
    return {{},
            kCloseProtocol,
            masked ? "a server's frame is masked" : "a client's frame is not masked"};
  const uint8_t first = byte(1) & 0x7f;
  const size_t extra = first == 126 ? 2 : first == 127 ? 8 : 0;
  head.length = first;
  if (extra > 0) {
    if (IsControl(head.opcode)) return {{}, kCloseProtocol, "a control frame is too long"};
    if (in.size() < 2 + extra) return {};
    head.length = 0;
    for (size_t i = 0; i < extra; ++i) head.length = head.length << 8 | byte(2 + i);
    if (head.length <= (extra == 2 ? kMaxControl : 0xffff) || head.length >> 63 != 0)
      return {{}, kCloseProtocol, "a length that is not written as it must be"};
  }
  const size_t size = 2 + extra + (masked ? 4 : 0);
  if (in.size() < size) return {};
  if (masked)
    for (size_t i = 0; i < 4; ++i) head.mask[i] = byte(2 + extra + i);
  head.size = size;
  return CheckHead(head);
}

MessageAssembler::Parsed MessageAssembler::CheckHead(Head head) const {
  switch (head.opcode) {
    case Opcode::kClose:
    case Opcode::kPing:
    case Opcode::kPong:
      if (!head.fin) return {{}, kCloseProtocol, "a control frame is fragmented"};
      return {head, 0, {}};
    case Opcode::kContinuation:
      if (!in_message_) return {{}, kCloseProtocol, "a continuation of nothing"};
      break;
    case Opcode::kText:
    case Opcode::kBinary:
      if (in_message_) return {{}, kCloseProtocol, "a message begins inside another"};
      break;
    default:
      return {{}, kCloseProtocol, "an unknown opcode"};
  }
  const size_t so_far = in_message_ ? message_.size() : 0;
  if (head.length > max_message_ - so_far) return {{}, kCloseTooLarge, "the message is too large"};
  return {head, 0, {}};
}

MessageAssembler::Step MessageAssembler::Next(std::string_view in) {
  size_t consumed = 0;
  while (true) {
    if (!in_frame_) {
      const Parsed parsed = ParseHead(in.substr(consumed));
      if (parsed.code != 0)
        return {Step::Kind::kFault, consumed, std::string(parsed.why), parsed.code};
      if (parsed.head.size == 0) return {Step::Kind::kMore, consumed, {}, 0};
      consumed += parsed.head.size;
      head_ = parsed.head;
      taken_ = 0;
      in_frame_ = true;
      if (head_.opcode == Opcode::kText || head_.opcode == Opcode::kBinary) {
        in_message_ = true;
        message_kind_ = head_.opcode;
        message_.clear();
      }
    }
    std::string& into = IsControl(head_.opcode) ? control_ : message_;
    const auto take =
        static_cast<size_t>(std::min<uint64_t>(head_.length - taken_, in.size() - consumed));
    const size_t at = into.size();
    into.append(in.substr(consumed, take));
    if (role_ == WebSocketRole::kServer) ApplyMask(head_.mask, taken_, into.data() + at, take);
    taken_ += take;
    consumed += take;
    if (taken_ < head_.length) return {Step::Kind::kMore, consumed, {}, 0};
    in_frame_ = false;
    if (!IsControl(head_.opcode) && !head_.fin) continue;
    return Complete(consumed);
  }
}

MessageAssembler::Step MessageAssembler::Complete(size_t consumed) {
  switch (head_.opcode) {
    case Opcode::kPing:
      return {Step::Kind::kPing, consumed, std::exchange(control_, {}), 0};
    case Opcode::kPong:
      return {Step::Kind::kPong, consumed, std::exchange(control_, {}), 0};
    case Opcode::kClose:
      return CompleteClose(consumed);
    default:
      break;
  }
  in_message_ = false;
  if (message_kind_ == Opcode::kBinary)
    return {Step::Kind::kBinary, consumed, std::exchange(message_, {}), 0};
  if (!IsUtf8(message_))
    return {Step::Kind::kFault, consumed, "a text message is not UTF-8", kCloseNotUtf8};
  return {Step::Kind::kText, consumed, std::exchange(message_, {}), 0};
}

MessageAssembler::Step MessageAssembler::CompleteClose(size_t consumed) {
  const std::string payload = std::exchange(control_, {});
  if (payload.empty()) return {Step::Kind::kClose, consumed, {}, kCloseNone};
  if (payload.size() == 1)
    return {Step::Kind::kFault, consumed, "a close frame with half a code", kCloseProtocol};
  const auto code = static_cast<uint16_t>(static_cast<uint8_t>(payload[0]) << 8 |
                                          static_cast<uint8_t>(payload[1]));
  if (!IsCloseCode(code))
    return {Step::Kind::kFault, consumed, "a close code that may not be sent", kCloseProtocol};
  std::string reason = payload.substr(2);
  if (!IsUtf8(reason))
    return {Step::Kind::kFault, consumed, "a close reason is not UTF-8", kCloseNotUtf8};
  return {Step::Kind::kClose, consumed, std::move(reason), code};
}

}  // namespace caisson::net
