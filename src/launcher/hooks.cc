#include "launcher/hooks.h"

#ifdef CAISSON_TEST_HOOKS

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace caisson::launcher {
namespace {

struct NamedLayer {
  const char* name;
  Layer layer;
};
constexpr NamedLayer kLayers[] = {
    {"seccomp", Layer::kSeccomp},
    {"namespaces_limit", Layer::kNamespaceCeilings},
    {"landlock", Layer::kLandlock},
    {"userns", Layer::kUserNs},
    {"capabilities", Layer::kCapabilities},
    {"masks", Layer::kMasks},
    {"readonly_dev", Layer::kReadonlyDev},
    {"no_new_privs", Layer::kNoNewPrivs},
    {"cgroup", Layer::kCgroup},
    {"dumpable", Layer::kUnreadableInit},
    {"verify", Layer::kVerify},
};

uint32_t ReadAblation() {
  const char* text = getenv("CAISSON_ABLATE");
  uint32_t mask = 0;
  for (const auto& [name, layer] : kLayers)
    if (text != nullptr && strstr(text, name) != nullptr) mask |= static_cast<uint32_t>(layer);
  return mask;
}

// Counts down from the number in an environment variable.
class Countdown {
 public:
  explicit Countdown(const char* variable)
      : left_(getenv(variable) != nullptr ? atol(getenv(variable)) : 0) {}
  bool Reached() { return left_ > 0 && --left_ == 0; }

 private:
  long left_;
};

}  // namespace

void CrashPoint(const char* name) {
  static Countdown self("CAISSON_CRASH_AT"), client("CAISSON_KILL_CLIENT_AT");
  if (client.Reached()) kill(getppid(), SIGKILL);
  if (!self.Reached()) return;
  (void)!write(STDERR_FILENO, "crash point: ", 13);
  (void)!write(STDERR_FILENO, name, strlen(name));
  (void)!write(STDERR_FILENO, "\n", 1);
  kill(getpid(), SIGKILL);
}

bool Ablated(Layer layer) {
  static const uint32_t mask = ReadAblation();
  if (layer == Layer::kVerify) return mask != 0;  // what is left out on purpose would not pass
  return (mask & static_cast<uint32_t>(layer)) != 0;
}

}  // namespace caisson::launcher

#endif
