#include "init/init.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init/server.h"

namespace caisson::init {
namespace {

constexpr int kCouldNotStart = 125;

// Signals arrive by signalfd or not at all. PID 1 gets none from inside that it does not handle;
// blocking covers every other case but SIGKILL and SIGSTOP.
void BlockSignals() {
  // Whatever was ignored before would be ignored by every command. By the system call: the C
  // library keeps two of the real-time signals for itself and does not touch them.
  struct {
    uint64_t handler = 0, flags = 0, restorer = 0, mask = 0;
  } by_default;
  for (int signo = 1; signo <= 64; ++signo)
    syscall(SYS_rt_sigaction, signo, &by_default, nullptr, sizeof by_default.mask);
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
