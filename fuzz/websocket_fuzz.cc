// Arbitrary bytes as WebSocket frames, whole and byte by byte: the same messages come out, none
// larger than the limit, and text is UTF-8.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/utf8.h"
#include "net/websocket_frames.h"

namespace {

using caisson::net::MessageAssembler;
using caisson::net::WebSocketRole;

constexpr size_t kMaxMessage = 300;

std::string Receive(WebSocketRole role, std::string_view input, size_t piece) {
  using Kind = MessageAssembler::Step::Kind;
  MessageAssembler assembler(role, kMaxMessage);
  std::string buffer, seen;
  while (!input.empty()) {
    buffer += input.substr(0, piece);
    input.remove_prefix(std::min(piece, input.size()));
    while (true) {
      const auto step = assembler.Next(buffer);
      if (step.consumed > buffer.size()) std::abort();
      buffer.erase(0, step.consumed);
      if (step.kind == Kind::kMore) break;
      if (step.data.size() > kMaxMessage) std::abort();
      if (step.kind == Kind::kText && !caisson::IsUtf8(step.data)) std::abort();
      seen += std::to_string(static_cast<int>(step.kind)) + step.data;
      if (step.kind == Kind::kFault || step.kind == Kind::kClose) return seen;
    }
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  for (const WebSocketRole role : {WebSocketRole::kServer, WebSocketRole::kClient})
    if (Receive(role, input, 1) != Receive(role, input, size + 1)) std::abort();
  return 0;
}
