#include "init/init.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "init/server.h"

namespace caisson::init {
namespace {

constexpr int kCouldNotStart = 125;

// Signals arrive by signalfd or not at all. PID 1 gets none from inside that it does not handle;
// blocking covers every other case but SIGKILL and SIGSTOP.
void BlockSignals() {
  for (int signo = 1; signo < 32; ++signo) signal(signo, SIG_DFL);  // whatever was ignored before
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
}

}  // namespace

int RunInit(int control_fd, uint64_t caps, const char* default_user) {
  BlockSignals();
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  prctl(PR_SET_NAME, "caisson-init");
  if (getpid() != 1 && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) return kCouldNotStart;
  if (fcntl(control_fd, F_SETFD, FD_CLOEXEC) != 0) return kCouldNotStart;
  umask(0);  // permissions of requests are meant as they are; commands get 022

  auto privileges = Privileges::Settle(caps);
  if (!privileges) return kCouldNotStart;
  // From here on: no effective capability.

  Server server(sys::UniqueFd(control_fd), *privileges, default_user);
  return server.Run() ? 0 : kCouldNotStart;
}

}  // namespace caisson::init
