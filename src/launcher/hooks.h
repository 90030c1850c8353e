// Switches for tests: crash points and ablation. In the shipped launcher they do not exist; the
// build defines CAISSON_TEST_HOOKS only for caisson-launcher-hooks.
//
//   CAISSON_CRASH_AT=n           the launcher kills itself (SIGKILL) at the n-th crash point it
//   passes CAISSON_KILL_CLIENT_AT=n     the same for the process that started the launcher
//   CAISSON_ABLATE=seccomp,masks leaves out layers of the jail, so that a test can be seen to fail
#pragma once

#include <cstdint>

namespace caisson::launcher {

enum class Layer : uint32_t {
  kSeccomp = 1 << 0,
  kNamespaceCeilings = 1 << 1,
  kLandlock = 1 << 2,
  kUserNs = 1 << 3,
  kCapabilities = 1 << 4,
  kMasks = 1 << 5,
  kReadonlyDev = 1 << 6,
  kNoNewPrivs = 1 << 7,
  kCgroup = 1 << 8,
  kVerify = 1 << 9,
  kUnreadableInit = 1 << 10,
};

#ifdef CAISSON_TEST_HOOKS
void CrashPoint(const char* name);
bool Ablated(Layer layer);
#else
inline void CrashPoint(const char*) {}
constexpr bool Ablated(Layer) { return false; }
#endif

}  // namespace caisson::launcher
