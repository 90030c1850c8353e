// Bytes as text: hex, base64url, base62. Pure functions, thread-safe.
//
// Decoding is strict: a wrong letter, padding, a wrong length, or bits that the encoder would not
// have set are refused, so each value has exactly one spelling.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace caisson {

// Lower-case hex.
std::string ToHex(std::string_view bytes);
std::optional<std::string> FromHex(std::string_view text);

// RFC 4648 §5 without padding.
std::string ToBase64Url(std::string_view bytes);
std::optional<std::string> FromBase64Url(std::string_view text);

// RFC 4648 §4 with padding.
std::optional<std::string> FromBase64(std::string_view text);

// `value` in digits 0-9A-Za-z, most significant first, with leading zeros up to `width`. The digits
// that do not fit into `width` are left out.
std::string ToBase62(uint64_t value, size_t width);
bool IsBase62(std::string_view text);

// Whether the two are equal, in a time that depends on their lengths only.
bool ConstantTimeEqual(std::string_view a, std::string_view b);

}  // namespace caisson
