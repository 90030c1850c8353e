#include "providers/native/launcher_client.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "sys/memfd.h"

extern "C" const char caisson_launcher_blob_begin[];
extern "C" const char caisson_launcher_blob_end[];

namespace caisson::native {
namespace {

namespace w = wire::launcher;

// The launcher's environment: what it looks up programs with, and the switches of test builds.
std::vector<std::string> LauncherEnvironment() {
  std::vector<std::string> env = {
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  for (const char* name : {"CAISSON_CRASH_AT", "CAISSON_KILL_CLIENT_AT", "CAISSON_ABLATE"})
    if (const char* value = getenv(name)) env.push_back(std::string(name) + "=" + value);
  return env;
}

// Spawns the embedded launcher with `arguments`; `socket` (if >= 0) becomes its descriptor 3, `out`
// its stdout.
Result<pid_t> SpawnLauncher(std::vector<std::string> arguments, int socket, int out) {
  CAISSON_ASSIGN(const auto program,
                 sys::MakeSealedProgram(
                     "caisson-launcher",
                     {caisson_launcher_blob_begin,
                      static_cast<size_t>(caisson_launcher_blob_end - caisson_launcher_blob_begin)},
                     sys::Readable::kByOwner));
  arguments.insert(arguments.begin(), "caisson-launcher");
  std::vector<std::string> environment = LauncherEnvironment();
  std::vector<char*> argv, envp;
  for (auto& a : arguments) argv.push_back(a.data());
  for (auto& e : environment) envp.push_back(e.data());
  argv.push_back(nullptr);
  envp.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  if (out >= 0) posix_spawn_file_actions_adddup2(&actions, out, 1);
  if (socket >= 0) posix_spawn_file_actions_adddup2(&actions, socket, 3);
  // The memory file is CLOEXEC: it is opened by the exec and gone after it.
  const std::string path = "/proc/self/fd/" + std::to_string(program.get());
  pid_t pid = -1;
  const int error = posix_spawn(&pid, path.c_str(), &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return Error::FromErrno("start caisson-launcher", error)
        .WithCode(ErrorCode::kUnavailable)
        .WithRemedy("is /proc mounted?");
  return pid;
}

std::optional<sys::UniqueFd> ConnectTo(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return std::nullopt;
  std::memcpy(address.sun_path, path.c_str(), path.size());
  sys::UniqueFd socket_fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket_fd ||
      connect(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return std::nullopt;
  return socket_fd;
}

// The right to look for a launcher and start one. Waits for others who do, who need milliseconds.
Result<sys::UniqueFd> LockStart(const std::string& state_dir) {
  (void)mkdir(state_dir.c_str(),
              0700);  // one that cannot be made is told by the launcher, with a remedy
  sys::UniqueFd lock(open((state_dir + "/launcher.lock").c_str(),
                          O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return Error::FromErrno("open " + state_dir + "/launcher.lock");
  for (int tries = 0; flock(lock.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return Error::FromErrno("lock " + state_dir + "/launcher.lock");
    if (tries == 1000)
      return Error(ErrorCode::kUnavailable,
                   "another owner has been starting a launcher for 10 seconds")
          .WithRemedy("try again");
    usleep(10'000);
  }
  return lock;
}

std::string EnvironmentOr(const char* name, std::string fallback) {
  const char* value = getenv(name);
  return value != nullptr && *value != '\0' ? std::string(value) : std::move(fallback);
}

}  // namespace

LauncherPaths LauncherPaths::FromEnvironment() {
  const std::string home = EnvironmentOr("CAISSON_HOME", "");
  if (geteuid() == 0) return {"/run/caisson", home.empty() ? "/var/lib/caisson" : home};
  if (!home.empty()) return {home + "/run", home};
  const std::string user = EnvironmentOr("HOME", "/tmp/caisson-" + std::to_string(geteuid()));
  const std::string data = EnvironmentOr("XDG_DATA_HOME", user + "/.local/share") + "/caisson";
  const std::string runtime = EnvironmentOr("XDG_RUNTIME_DIR", "");
  return {runtime.empty() ? data + "/run" : runtime + "/caisson", data};
}

Task<Result<std::unique_ptr<LauncherClient>>> LauncherClient::Start(async::Loop* loop,
                                                                    LauncherPaths paths,
                                                                    Keeping keeping,
                                                                    Pooling pooling) {
  std::unique_ptr<LauncherClient> client(new LauncherClient());
  std::optional<sys::UniqueFd> socket;
  sys::UniqueFd
      starting;  // held until the launcher has answered: owners that come at once share one
  if (keeping == Keeping::kKeep) {
    CAISSON_CO_ASSIGN(starting, LockStart(paths.state_dir));
    socket = ConnectTo(paths.socket());
  }
  if (!socket) {
    CAISSON_CO_ASSIGN(auto pair, sys::MakeSocketPair());
    // Number 3 is where the launcher's end goes, and dup2 onto itself would leave it CLOEXEC.
    sys::UniqueFd theirs(fcntl(pair.second.get(), F_DUPFD_CLOEXEC, 10));
    std::vector<std::string> arguments = {"--owner-fd",  "3",           "--run-dir",
                                          paths.run_dir, "--state-dir", paths.state_dir};
    if (pooling == Pooling::kOff) arguments.push_back("--no-pools");
    if (keeping == Keeping::kKeep) arguments.insert(arguments.end(), {"--listen", paths.socket()});
    CAISSON_CO_ASSIGN(client->pid_, SpawnLauncher(std::move(arguments), theirs.get(), -1));
    socket = std::move(pair.first);
  }
  auto* raw = client.get();
  std::shared_ptr<std::optional<Error>> refusal = std::make_shared<std::optional<Error>>();
  client->channel_ =
      RpcChannel::Create(*loop, *std::move(socket), RpcChannel::Descriptors::kAccept);
  client->channel_->Start(
      [raw, refusal](const wire::Header& header, const sys::Packet& packet) {
        if (header.type == static_cast<uint16_t>(w::Type::kLost)) {
          if (auto lost = wire::Decode<w::Lost>(packet.bytes); lost && raw->on_lost_)
            raw->on_lost_(*lost);
        } else if (header.type == static_cast<uint16_t>(w::Type::kFailed)) {
          if (auto failed = wire::Decode<w::Failed>(packet.bytes))
            *refusal = ToError(*failed);  // it could not start
        }
      },
      [raw] {
        if (raw->on_closed_) raw->on_closed_();
      });
  auto hello = co_await raw->Call<w::HelloReply>(w::Hello{});
  if (!hello) co_return refusal->has_value() ? **refusal : std::move(hello).error();
  client->hello_ = std::move(hello->reply);
  client->answered_ = true;
  co_return client;
}

LauncherClient::~LauncherClient() {
  if (channel_) channel_->Close();
  if (answered_ || pid_ <= 0) return;
  kill(pid_, SIGKILL);  // it serves nobody, and most have died already
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Error LauncherClient::ToError(const w::Failed& failed) {
  const bool known = failed.code < ErrorTable().size();
  return Error(known ? static_cast<ErrorCode>(failed.code) : ErrorCode::kInternal, failed.message)
      .WithRemedy(failed.remedy);
}

Result<SweepResult> Sweep(const LauncherPaths& paths) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) return Error::FromErrno("make a pipe");
  sys::UniqueFd read_end(out[0]), write_end(out[1]);
  CAISSON_ASSIGN(const pid_t pid,
                 SpawnLauncher({"--sweep", "--run-dir", paths.run_dir}, -1, write_end.get()));
  write_end.Reset();
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(read_end.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
    return Error(ErrorCode::kUnavailable, "the sweep ended early")
        .WithRemedy("look at its messages above, then try again");
  SweepResult result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    at = end == std::string::npos ? text.size() : end + 1;
    if (line.starts_with("swept ")) result.swept.push_back(line.substr(6));
    if (line.starts_with("problem ")) result.problems.push_back(line.substr(8));
  }
  return result;
}

}  // namespace caisson::native
