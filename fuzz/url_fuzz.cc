// Arbitrary bytes as a URL, a path and a query.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/utf8.h"
#include "net/url.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace caisson::net;  // NOLINT: the layer under test
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (*PercentDecode(PercentEncode(input)) != input) std::abort();
  if (const auto url = ParseUrl(input))
    if (url->host.empty() || (url->scheme != Url::Scheme::kUnix && url->port == 0)) std::abort();
  if (const auto path = ParsePath(input))
    for (const auto& segment : path->segments)
      if (segment == ".." || segment == "." || !caisson::IsUtf8(segment)) std::abort();
  if (const auto query = ParseQuery(input))
    if (query->size() > kMaxQueryPairs) std::abort();
  return 0;
}
