// caisson-launcher: the only program of Caisson's that clones, mounts and writes cgroups.
//
//   caisson-launcher --owner-fd N --run-dir DIR --state-dir DIR
//                    [--listen PATH [--linger SECONDS]] [--no-pools]
//   caisson-launcher --sweep --run-dir DIR
//
// It is started by `caisson` from a sealed memory file. See launcher.h for the loop, jail.h for the
// jail.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "launcher/instance.h"
#include "launcher/launcher.h"
#include "sys/text_file.h"

namespace caisson::launcher {
namespace {

constexpr uint64_t kMaxLinger = 366 * 24 * 3600;

struct Arguments {
  int owner_fd = -1;
  bool sweep = false;
  bool pools = true;
  std::string run_dir, state_dir, listen;
  std::optional<uint64_t> linger_seconds;
};

Result<Arguments> Parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--sweep" || name == "--no-pools") {
      (name == "--sweep" ? arguments.sweep : arguments.pools) = name == "--sweep";
      continue;
    }
    if (i + 1 == argc) return Error(ErrorCode::kInvalidArgument, name + " needs a value");
    const char* value = argv[++i];
    if (name == "--owner-fd")
      arguments.owner_fd = atoi(value);
    else if (name == "--run-dir")
      arguments.run_dir = value;
    else if (name == "--state-dir")
      arguments.state_dir = value;
    else if (name == "--listen")
      arguments.listen = value;
    else if (name == "--linger") {
      arguments.linger_seconds = sys::ParseNumber(value);
      if (arguments.linger_seconds.value_or(UINT64_MAX) > kMaxLinger)
        return Error(ErrorCode::kInvalidArgument, "--linger takes seconds, at most a year of them");
    } else
      return Error(ErrorCode::kInvalidArgument, "unknown argument " + name);
  }
  if (arguments.run_dir.empty()) return Error(ErrorCode::kInvalidArgument, "--run-dir is missing");
  return arguments;
}

Result<sys::UniqueFd> Listen(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return Error(ErrorCode::kInvalidArgument,
                 "the socket path " + path + " is longer than 107 bytes")
        .WithRemedy("use a shorter data directory");
  memcpy(address.sun_path, path.c_str(), path.size());
  sys::UniqueFd socket_fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  unlink(path.c_str());
  const mode_t old = umask(0177);
  const bool bound =
      socket_fd &&
      bind(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      listen(socket_fd.get(), 8) == 0;
  umask(old);
  if (!bound) return Error::FromErrno("listen on " + path);
  return socket_fd;
}

int PrintSweep(const std::string& run_dir) {
  const SweepReport report = SweepDeadInstances(run_dir);
  for (const auto& id : report.swept) printf("swept %s\n", id.c_str());
  for (const auto& problem : report.problems) printf("problem %s\n", problem.c_str());
  return report.problems.empty() ? 0 : 1;
}

// The owner reads one line on its socket when we cannot start: a Failed with tag 0.
int Refuse(int owner, const Error& error) {
  const wire::launcher::Failed failed{static_cast<uint16_t>(error.code()), error.sys_errno(),
                                      error.message().substr(0, 1000),
                                      error.remedy().substr(0, 1000)};
  sys::SendPacket(owner, wire::Encode(failed, 0), {});
  fprintf(stderr, "caisson-launcher: %s\n", error.message().c_str());
  return 125;
}

int Main(int argc, char** argv) {
  auto arguments = Parse(argc, argv);
  if (!arguments) {
    fprintf(stderr, "caisson-launcher: %s\n", arguments.error().message().c_str());
    return 125;
  }
  if (arguments->sweep) return PrintSweep(arguments->run_dir);

  // Nothing of the terminal's reaches us: the owner decides when we end.
  setsid();
  prctl(PR_SET_NAME, "caisson-launcher");
  prctl(PR_SET_DUMPABLE, 0);
  for (const int ignored : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGQUIT, SIGTSTP})
    signal(ignored, SIG_IGN);
  umask(022);

  // What earlier launchers left when they were killed goes first.
  (void)SweepDeadInstances(arguments->run_dir);

  LauncherOptions options;
  options.pools = arguments->pools;
  if (arguments->linger_seconds) options.linger_ns = *arguments->linger_seconds * 1'000'000'000;
  options.first_owner.Reset(arguments->owner_fd);
  if (options.first_owner) fcntl(arguments->owner_fd, F_SETFD, FD_CLOEXEC);
  if (!arguments->listen.empty()) {
    auto listener = Listen(arguments->listen);
    if (!listener) return Refuse(arguments->owner_fd, listener.error());
    options.listener = *std::move(listener);
  }
  // From here on there is something to clean up.
  auto host = PrepareHost({arguments->run_dir, arguments->state_dir});
  if (!host) return Refuse(arguments->owner_fd, host.error());
  auto launcher = Launcher::Create(*std::move(host), std::move(options));
  if (!launcher) return Refuse(arguments->owner_fd, launcher.error());
  (*launcher)->Run();
  // While we still listen: whoever comes now starts a launcher of its own, with a socket of its
  // own.
  if (!arguments->listen.empty()) unlink(arguments->listen.c_str());
  return 0;
}

}  // namespace
}  // namespace caisson::launcher

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
// The leak checker traces its own process, which one that is not dumpable forbids.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
#endif
#endif

int main(int argc, char** argv) { return caisson::launcher::Main(argc, argv); }
