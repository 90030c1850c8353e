#include "sandbox/ids.h"

#include <algorithm>

#include "base/random.h"

namespace caisson::sandbox {

std::string NewId() {
  std::string id;
  for (const char byte : RandomBytes(32))
    id += "0123456789abcdefghijklmnopqrstuv"[static_cast<unsigned char>(byte) % 32];
  return id;
}

bool LooksLikeId(std::string_view text) {
  return text.size() >= 8 && text.size() <= 40 && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
         });
}

}  // namespace caisson::sandbox
