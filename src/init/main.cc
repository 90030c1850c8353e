// caisson-init: PID 1 of a sandbox. Usage: caisson-init CONTROL_FD CAPS_HEX DEFAULT_USER
//
// The launcher has built the jail around it and executes it from a sealed file: all namespaces,
// no_new_privs, Landlock and seccomp are in force, and CONTROL_FD is the only descriptor besides
// 0, 1 and 2, which are /dev/null. See wire/init_protocol.h for what it does.

#include <charconv>
#include <cstring>

#include "init/init.h"

namespace {

template <typename T>
bool Parse(const char* text, int base, T& value) {
  const char* end = text + strlen(text);
  const auto parsed = std::from_chars(text, end, value, base);
  return parsed.ec == std::errc() && parsed.ptr == end && text != end;
}

}  // namespace

int main(int argc, char** argv) {
  int control = -1;
  uint64_t caps = 0;
  if (argc != 4 || !Parse(argv[1], 10, control) || control < 3 || !Parse(argv[2], 16, caps)) {
    return 125;
  }
  return caisson::init::RunInit(control, caps, argv[3]);
}
