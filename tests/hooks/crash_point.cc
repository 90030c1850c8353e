// The crash points of `caisson-hooks`; see src/base/crash_point.h.
#include "base/crash_point.h"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace caisson {

void CrashPoint(const char* name) {
  static const char* const wanted = getenv("CAISSON_SERVER_CRASH");
  if (wanted == nullptr || strcmp(wanted, name) != 0) return;
  (void)!write(STDERR_FILENO, "crash point: ", 13);
  (void)!write(STDERR_FILENO, name, strlen(name));
  (void)!write(STDERR_FILENO, "\n", 1);
  kill(getpid(), SIGKILL);
}

}  // namespace caisson
