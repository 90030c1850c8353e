#include "sandbox/ids.h"

#include <sys/random.h>

#include <algorithm>
#include <cstddef>

namespace caisson::sandbox {

std::string NewId() {
  unsigned char raw[32];
  for (size_t got = 0; got < sizeof raw;) {
    const ssize_t n = getrandom(raw + got, sizeof raw - got, 0);
    if (n > 0) got += static_cast<size_t>(n);
  }
  std::string id;
  for (const unsigned char byte : raw) id += "0123456789abcdefghijklmnopqrstuv"[byte % 32];
  return id;
}

bool LooksLikeId(std::string_view text) {
  return text.size() >= 8 && text.size() <= 40 && std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
         });
}

}  // namespace caisson::sandbox
