#include "base/utf8.h"

#include <cstdint>
#include <cstring>

namespace caisson {
namespace {

constexpr size_t kStride = 4 * sizeof(uint64_t);

// How many bytes at the front are ASCII; looks at kStride at a time, and may stop before the last.
size_t AsciiPrefix(std::string_view bytes) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  uint64_t words[kStride / sizeof(uint64_t)];
  size_t length = 0;
  for (; length + sizeof words <= bytes.size(); length += sizeof words) {
    memcpy(words, bytes.data() + length, sizeof words);
    if (((words[0] | words[1] | words[2] | words[3]) & kHighBits) != 0) break;
  }
  return length;
}

// The length of the valid sequence that `bytes` starts with; 0 when there is none.
size_t SequenceLength(std::string_view bytes) {
  auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = at(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xc2 && lead < 0xe0   ? 2
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xf0 && lead < 0xf5 ? 4
                                                      : 0;
  if (length == 0 || bytes.size() < length) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((at(i) & 0xc0) != 0x80) return 0;
  // Overlong forms, surrogates, and beyond U+10FFFF.
  if ((lead == 0xe0 && at(1) < 0xa0) || (lead == 0xed && at(1) >= 0xa0) ||
      (lead == 0xf0 && at(1) < 0x90) || (lead == 0xf4 && at(1) >= 0x90))
    return 0;
  return length;
}

}  // namespace

std::string ToUtf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const size_t length = SequenceLength(bytes);
    if (length == 0)
      out += "\xef\xbf\xbd";
    else
      out.append(bytes.substr(0, length));
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

bool IsUtf8(std::string_view bytes) {
  for (;;) {
    bytes.remove_prefix(AsciiPrefix(bytes));
    // As far as the next bytes that may all be ASCII.
    const size_t before = bytes.size();
    while (!bytes.empty() && before - bytes.size() < kStride) {
      const size_t length = SequenceLength(bytes);
      if (length == 0) return false;
      bytes.remove_prefix(length);
    }
    if (bytes.empty()) return true;
  }
}

std::string ToBase64(std::string_view bytes) {
  static constexpr char kAlphabet[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])) << 16;
    if (i + 1 < bytes.size())
      word |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[i + 1])) << 8;
    if (i + 2 < bytes.size()) word |= static_cast<unsigned char>(bytes[i + 2]);
    out += kAlphabet[word >> 18];
    out += kAlphabet[(word >> 12) & 63];
    out += i + 1 < bytes.size() ? kAlphabet[(word >> 6) & 63] : '=';
    out += i + 2 < bytes.size() ? kAlphabet[word & 63] : '=';
  }
  return out;
}

}  // namespace caisson
