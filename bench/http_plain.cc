#include "http_plain.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <thread>
#include <vector>

#include "measure.h"
#include "sys/unique_fd.h"

extern char** environ;

namespace caisson::bench {
namespace {

using sys::UniqueFd;

constexpr size_t kPiece = 64 << 10;

Result<UniqueFd> MemoryFile(uint64_t size) {
  UniqueFd file(memfd_create("caisson-bench", MFD_CLOEXEC));
  if (!file) return Error::FromErrno("make a file in memory");
  const std::string piece(kPiece, 'x');
  for (uint64_t done = 0; done < size; done += piece.size())
    if (write(file.get(), piece.data(), piece.size()) != static_cast<ssize_t>(piece.size()))
      return Error::FromErrno("fill a file in memory");
  lseek(file.get(), 0, SEEK_SET);
  return file;
}

struct Pair {
  UniqueFd sender, receiver;
};
Result<Pair> ConnectedPair() {
  UniqueFd listener(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (!listener || bind(listener.get(), plain, length) != 0 || listen(listener.get(), 1) != 0 ||
      getsockname(listener.get(), plain, &length) != 0)
    return Error::FromErrno("listen on loopback");
  Pair pair{UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), UniqueFd()};
  if (!pair.sender || connect(pair.sender.get(), plain, length) != 0)
    return Error::FromErrno("connect on loopback");
  pair.receiver = UniqueFd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!pair.receiver) return Error::FromErrno("accept on loopback");
  return pair;
}

// All of `from` into `to`; the bytes that went.
uint64_t Pump(int from, int to) {
  std::string buffer(kPiece, '\0');
  uint64_t done = 0;
  for (;;) {
    const ssize_t got = read(from, buffer.data(), buffer.size());
    if (got <= 0) return done;
    for (ssize_t put = 0; put < got;) {
      const ssize_t wrote =
          write(to, buffer.data() + put, static_cast<size_t>(got) - static_cast<size_t>(put));
      if (wrote <= 0) return done;
      put += wrote;
    }
    done += static_cast<uint64_t>(got);
  }
}

struct Running {
  pid_t pid;
  UniqueFd output;
};
Result<Running> StartCat(const std::string& path, int times) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error::FromErrno("make a pipe");
  UniqueFd reading(ends[0]), writing(ends[1]);
  std::string program = "cat", file = path;
  std::vector<char*> argv{program.data()};
  argv.insert(argv.end(), static_cast<size_t>(times), file.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writing.get(), STDOUT_FILENO);
  pid_t pid = 0;
  const int failed = posix_spawnp(&pid, "cat", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return Error::FromErrno("start cat", failed);
  return Running{pid, std::move(reading)};
}

}  // namespace

Result<double> CatThroughPipe(const std::string& text, int times) {
  UniqueFd file(memfd_create("caisson-bench", MFD_CLOEXEC));  // cat opens it by its name in /proc
  if (!file || write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return Error::FromErrno("fill a file in memory");
  const std::string path =
      "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file.get());
  const double begin = NowUs();
  CAISSON_ASSIGN(const Running cat, StartCat(path, times));
  std::string buffer(kPiece, '\0');
  uint64_t got = 0;
  for (ssize_t count; (count = read(cat.output.get(), buffer.data(), buffer.size())) > 0;)
    got += static_cast<uint64_t>(count);
  const double took = NowUs() - begin;
  int status = 0;
  waitpid(cat.pid, &status, 0);
  if (status != 0 || got != text.size() * static_cast<uint64_t>(times))
    return Error(ErrorCode::kInternal, "cat gave " + std::to_string(got) + " bytes");
  return took;
}

Result<double> CopyThroughLoopback(uint64_t size) {
  CAISSON_ASSIGN(const UniqueFd from, MemoryFile(size));
  CAISSON_ASSIGN(const UniqueFd to, MemoryFile(0));
  CAISSON_ASSIGN(Pair pair, ConnectedPair());
  const double begin = NowUs();
  uint64_t received = 0;
  {
    const std::jthread receiver([&] { received = Pump(pair.receiver.get(), to.get()); });
    Pump(from.get(), pair.sender.get());
    pair.sender.Reset();
  }
  const double took = NowUs() - begin;
  if (received != size)
    return Error(ErrorCode::kInternal, "a plain copy gave " + std::to_string(received) + " bytes");
  return took;
}

}  // namespace caisson::bench
