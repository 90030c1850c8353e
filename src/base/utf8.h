// UTF-8 for places that must have it (JSON), from bytes that may be anything.
#pragma once

#include <string>
#include <string_view>

namespace caisson {

// The text with every byte that is not part of valid UTF-8 replaced by U+FFFD.
std::string ToUtf8(std::string_view bytes);
bool IsUtf8(std::string_view bytes);

// RFC 4648 base64, with padding.
std::string ToBase64(std::string_view bytes);

}  // namespace caisson
