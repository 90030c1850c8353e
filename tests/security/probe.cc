// The runner: one attempt, all of them, the list, or one raw system call.
#include "probe.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace caisson::probe {
namespace {

constexpr int kAttemptSeconds = 10;

const char* KindName(Kind kind) {
  switch (kind) {
    case Kind::kRefused:
      return "refused";
    case Kind::kOpen:
      return "open";
    case Kind::kOk:
      return "ok";
    case Kind::kError:
      return "error";
    case Kind::kSkipped:
      return "skipped";
  }
  return "error";
}

std::array<std::span<const Attempt>, 8> Groups() {
  return {NamespaceAttempts(), MountAttempts(),   ProcAttempts(),   DescriptorAttempts(),
          KernelAttempts(),    NetworkAttempts(), DeviceAttempts(), ProcessAttempts()};
}

void WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t n = write(fd, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

std::string LineOf(std::string_view name, const Verdict& verdict) {
  return "{\"name\":" + JsonString(name) + ",\"result\":\"" + KindName(verdict.kind) +
         "\",\"errno\":" + JsonString(verdict.error) + ",\"detail\":" + JsonString(verdict.detail) +
         "}\n";
}

// The child writes kind, error and detail, separated by NUL.
[[noreturn]] void RunInChild(const Attempt& attempt, int out) {
  alarm(kAttemptSeconds);
  Verdict verdict = attempt.run();
  std::string packed(1, static_cast<char>('0' + static_cast<int>(verdict.kind)));
  packed += verdict.error + '\0' + verdict.detail.substr(0, 2000);
  WriteAll(out, packed);
  _exit(0);
}

Verdict VerdictOfDeath(int status) {
  if (!WIFSIGNALED(status)) return {Kind::kError, "", "the attempt ended without a verdict"};
  const int number = WTERMSIG(status);
  if (number == SIGALRM) return {Kind::kError, "SIGALRM", "the attempt hung"};
  if (number == SIGSYS || number == SIGXFSZ)
    return {Kind::kRefused, SignalName(number), "killed by the kernel"};
  return {Kind::kError, SignalName(number), "the attempt died"};
}

Verdict RunAttempt(const Attempt& attempt) {
  int pipe_fds[2];
  if (pipe(pipe_fds) != 0) return Failed("pipe");
  const pid_t child = fork();
  if (child < 0) return Failed("fork");
  if (child == 0) {
    close(pipe_fds[0]);
    RunInChild(attempt, pipe_fds[1]);
  }
  close(pipe_fds[1]);
  std::string packed;
  char buffer[4096];
  // Descendants of the attempt may hold the pipe; its own end decides.
  for (;;) {
    pollfd wait_for{pipe_fds[0], POLLIN, 0};
    if (poll(&wait_for, 1, (kAttemptSeconds + 2) * 1000) <= 0) break;
    ssize_t n = read(pipe_fds[0], buffer, sizeof(buffer));
    if (n <= 0) break;
    packed.append(buffer, static_cast<size_t>(n));
  }
  close(pipe_fds[0]);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (packed.empty()) return VerdictOfDeath(status);
  const size_t split = packed.find('\0');
  if (split == std::string::npos) return {Kind::kError, "", "torn verdict"};
  return {static_cast<Kind>(packed[0] - '0'), packed.substr(1, split - 1),
          packed.substr(split + 1)};
}

int RunAll(bool inside) {
  for (auto group : Groups()) {
    for (const Attempt& attempt : group) {
      const bool skip = attempt.risk == kRisky && !inside;
      WriteAll(1, LineOf(attempt.id, skip ? Verdict{Kind::kSkipped, "", "needs --inside"}
                                          : RunAttempt(attempt)));
    }
  }
  return 0;
}

int List() {
  for (auto group : Groups()) {
    for (const Attempt& attempt : group) {
      WriteAll(1, "{\"name\":" + JsonString(attempt.id) + ",\"class\":" +
                      JsonString(attempt.impact) + ",\"what\":" + JsonString(attempt.what) +
                      ",\"default\":" + JsonString(attempt.expected_default) +
                      ",\"strict\":" + JsonString(attempt.expected_strict) +
                      ",\"risky\":" + (attempt.risk == kRisky ? "true" : "false") + "}\n");
    }
  }
  return 0;
}

int RunOne(std::string_view name) {
  for (auto group : Groups()) {
    for (const Attempt& attempt : group) {
      if (name != attempt.id) continue;
      WriteAll(1, LineOf(name, RunAttempt(attempt)));
      return 0;
    }
  }
  WriteAll(2, "probe: no attempt or tool of this name; see --list\n");
  return 2;
}

// sc NR ARG...: numbers in any base; an argument that is not a number is passed as a string.
int RawSyscall(std::span<char* const> arguments) {
  if (arguments.empty() || arguments.size() > 7) {
    WriteAll(2, "usage: probe sc NR [ARG...]\n");
    return 2;
  }
  std::array<long, 7> values{};
  for (size_t i = 0; i < arguments.size(); ++i) {
    char* end = nullptr;
    const unsigned long long value = std::strtoull(arguments[i], &end, 0);
    values[i] = *arguments[i] != '\0' && *end == '\0' ? static_cast<long>(value)
                                                      : reinterpret_cast<long>(arguments[i]);
  }
  const long result =
      syscall(values[0], values[1], values[2], values[3], values[4], values[5], values[6]);
  Verdict verdict = Judge(result, "returned " + std::to_string(result));
  WriteAll(1, LineOf("sc", verdict));
  return 0;
}

int Main(std::span<char* const> arguments) {
  const std::string_view name = arguments.empty() ? "" : arguments[0];
  auto rest = arguments.empty() ? arguments : arguments.subspan(1);
  if (name == "--list") return List();
  if (name == "--all") return RunAll(!rest.empty() && std::strcmp(rest[0], "--inside") == 0);
  if (name == "sc") return RawSyscall(rest);
  for (auto tools : {Tools(), StressTools()})
    for (const Tool& tool : tools)
      if (name == tool.name) return tool.run(rest);
  if (!name.empty() && name[0] != '-') return RunOne(name);
  std::string usage = "usage: probe NAME | --list | --all [--inside] | sc NR [ARG...]\n";
  for (auto tools : {Tools(), StressTools()})
    for (const Tool& tool : tools) usage += std::string("       probe ") + tool.usage + "\n";
  WriteAll(2, usage);
  return 2;
}

}  // namespace
}  // namespace caisson::probe

int main(int argc, char** argv) {
  caisson::probe::RecordStart();
  return caisson::probe::Main(std::span<char* const>(argv, static_cast<size_t>(argc)).subspan(1));
}
