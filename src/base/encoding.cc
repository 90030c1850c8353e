#include "base/encoding.h"

#include <algorithm>
#include <array>

namespace caisson {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";
constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view kBase64Url =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr std::string_view kBase62 =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

constexpr std::array<int8_t, 256> Inverse(std::string_view alphabet) {
  std::array<int8_t, 256> table{};
  for (int8_t& entry : table) entry = -1;
  for (size_t i = 0; i < alphabet.size(); ++i) {
    table[static_cast<unsigned char>(alphabet[i])] = static_cast<int8_t>(i);
  }
  return table;
}

constexpr auto kFromHex = Inverse(kHex);
constexpr auto kFromBase64 = Inverse(kBase64);
constexpr auto kFromBase64Url = Inverse(kBase64Url);
constexpr auto kFromBase62 = Inverse(kBase62);

// Without padding.
std::optional<std::string> Decode64(std::string_view text, const std::array<int8_t, 256>& table) {
  if (text.size() % 4 == 1) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int8_t digit = table[static_cast<unsigned char>(c)];
    if (digit < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xff);
      bits &= (1U << count) - 1;
    }
  }
  if (bits != 0) return std::nullopt;
  return bytes;
}

}  // namespace

std::string ToHex(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

std::optional<std::string> FromHex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    const int8_t high = kFromHex[static_cast<unsigned char>(text[i])];
    const int8_t low = kFromHex[static_cast<unsigned char>(text[i + 1])];
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high << 4 | low);
  }
  return bytes;
}

std::string ToBase64Url(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() * 4 + 2) / 3);
  uint32_t bits = 0;
  int count = 0;
  for (const char c : bytes) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    count += 8;
    while (count >= 6) {
      count -= 6;
      text += kBase64Url[bits >> count & 63];
    }
    bits &= (1U << count) - 1;
  }
  if (count > 0) text += kBase64Url[bits << (6 - count) & 63];
  return text;
}

std::optional<std::string> FromBase64Url(std::string_view text) {
  return Decode64(text, kFromBase64Url);
}

std::optional<std::string> FromBase64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  return Decode64(text, kFromBase64);
}

std::string ToBase62(uint64_t value, size_t width) {
  std::string text(width, kBase62[0]);
  for (size_t i = width; i > 0 && value > 0; --i) {
    text[i - 1] = kBase62[value % 62];
    value /= 62;
  }
  return text;
}

bool IsBase62(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return kFromBase62[static_cast<unsigned char>(c)] >= 0; });
}

bool ConstantTimeEqual(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference = difference | static_cast<unsigned char>(a[i] ^ b[i]);
  }
  return difference == 0;
}

}  // namespace caisson
