// Arbitrary bytes as a connection's input: heads and bodies. However the bytes are cut into pieces,
// the same requests come out, and what comes out keeps its promises.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>

#include "base/utf8.h"
#include "net/http_body.h"
#include "net/http_head.h"

namespace {

using namespace caisson::net;  // NOLINT: the layer under test

void CheckRequest(const Request& request) {
  if (!IsToken(request.method)) std::abort();
  if (request.path != "*" && !request.path.starts_with('/')) std::abort();
  if (!caisson::IsUtf8(request.path) || request.path.find("/../") != std::string::npos)
    std::abort();
  for (const Header& header : request.headers)
    if (!IsToken(header.name) || !IsFieldValue(header.value)) std::abort();
}

// All that a server would make of `input`, arriving `piece` bytes at a time.
std::string Serve(std::string_view input, size_t piece) {
  std::string seen;
  size_t start = 0;
  const HeadLimits limits{.max_first_line = 256, .max_bytes = 1024, .max_headers = 8};
  while (start < input.size()) {
    HeadScanner scanner;
    auto state = HeadScanner::State::kMore;
    for (size_t end = start; state == HeadScanner::State::kMore && end < input.size();) {
      end = std::min(end + piece, input.size());
      state = scanner.Scan(input.substr(start, end - start), limits);
    }
    if (state == HeadScanner::State::kFault) return seen + std::to_string(scanner.fault().status);
    if (state == HeadScanner::State::kMore) return seen + "more";
    auto parsed = ParseRequestHead(input.substr(start, scanner.size()));
    start += scanner.size();
    if (const auto* fault = std::get_if<HttpFault>(&parsed))
      return seen + std::to_string(fault->status);
    const auto& head = std::get<RequestHead>(parsed);
    CheckRequest(head.request);
    seen += head.request.method + " " + head.request.path + "\n";
    BodyDecoder decoder(head.framing);
    for (size_t end = start; !decoder.ended();) {
      end = std::min(end + piece, input.size());
      const auto step = decoder.Next(input.substr(start, end - start), piece);
      if (step.consumed > end - start) std::abort();
      start += step.consumed;
      seen += step.data;
      if (step.kind == BodyDecoder::Step::Kind::kFault) return seen + "fault";
      if (step.kind == BodyDecoder::Step::Kind::kMore && end == input.size()) return seen + "more";
      if (end < start) end = start;
    }
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (Serve(input, 1) != Serve(input, 64)) std::abort();
  return 0;
}
