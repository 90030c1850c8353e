#include "providers/native/limit_events.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace caisson::native {
namespace {

uint64_t CountOf(const sys::UniqueFd& file, const char* name) {
  char text[512];
  const ssize_t size = file ? pread(file.get(), text, sizeof text - 1, 0) : 0;
  if (size <= 0) return 0;
  text[size] = '\0';
  return CountIn(text, name);
}

}  // namespace

uint64_t CountIn(const char* text, const char* name) {
  const size_t length = std::strlen(name);
  while (text != nullptr && *text != '\0') {
    if (std::strncmp(text, name, length) == 0 && text[length] == ' ')
      return std::strtoull(text + length + 1, nullptr, 10);
    text = std::strchr(text, '\n');
    if (text != nullptr) ++text;
  }
  return 0;
}

LimitCounts LimitEvents::Read() const {
  return {CountOf(memory_, "oom_kill"), CountOf(pids_, "max")};
}

}  // namespace caisson::native
