#include "base/random.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "base/encoding.h"

namespace caisson {

namespace {

void Fill(void* to, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t got = getrandom(static_cast<char*>(to) + done, size - done, 0);
    if (got < 0 && errno != EINTR) std::abort();
    done += static_cast<size_t>(std::max<ssize_t>(got, 0));
  }
}

}  // namespace

std::string RandomBytes(size_t size) {
  std::string bytes(size, '\0');
  Fill(bytes.data(), size);
  return bytes;
}

uint64_t RandomNumber() {
  uint64_t number = 0;
  Fill(&number, sizeof number);
  return number;
}

std::string RandomBase62(size_t size) {
  std::string text;
  text.reserve(size);
  while (text.size() < size) {
    for (const char c : RandomBytes(size - text.size() + 8)) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 248 || text.size() == size) continue;  // 248 = 4 × 62: no digit is favoured
      text += ToBase62(byte % 62, 1);
    }
  }
  return text;
}

}  // namespace caisson
