// Arbitrary bytes as a server's answer: its head and its body.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <variant>

#include "net/http_body.h"
#include "net/http_head.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson::net;  // NOLINT: the layer under test
  std::string_view input(reinterpret_cast<const char*>(data), size);
  HeadScanner scanner;
  if (scanner.Scan(input, {}) != HeadScanner::State::kDone) return 0;
  auto parsed = ParseReplyHead(input.substr(0, scanner.size()), "GET");
  const auto* head = std::get_if<ReplyHead>(&parsed);
  if (head == nullptr) return 0;
  if (head->status < 100 || head->status > 999) std::abort();
  input.remove_prefix(scanner.size());
  BodyDecoder decoder(head->framing);
  size_t total = 0;
  while (true) {
    const auto step = decoder.Next(input, 100);
    if (step.consumed > input.size() || step.data.size() > step.consumed) std::abort();
    input.remove_prefix(step.consumed);
    total += step.data.size();
    if (step.kind != BodyDecoder::Step::Kind::kData) break;
  }
  if (total > size) std::abort();
  return 0;
}
