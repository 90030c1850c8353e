// exec: a sandbox, a command with our streams, and nothing left.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>

#include "async/signals.h"
#include "async/task_set.h"
#include "async/watch.h"
#include "cli/dispatch.h"
#include "cli/exec_options.h"
#include "cli/exec_report.h"
#include "cli/process_link.h"
#include "cli/session_exec.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "providers/native/native_provider.h"

namespace caisson::cli {
namespace {

using sandbox::Process;

// Our stdin to the command's, until either ends.
Task<void> ForwardInput(std::shared_ptr<Process> process, async::Loop* loop) {
  async::Watch watch(*loop, STDIN_FILENO);
  std::string buffer(65536, '\0');
  for (;;) {
    co_await watch.Readable();
    const ssize_t got = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) break;
    auto written = co_await process->Write(buffer.substr(0, static_cast<size_t>(got)));
    if (!written) co_return;  // it reads no more
  }
  (void)co_await process->CloseStdin();
}

// Signals to us go to the command's tree; asking a second time kills it.
Task<void> ForwardSignals(std::shared_ptr<Process> process, async::Signals* signals) {
  int asked = 0;
  for (;;) {
    const int signo = co_await signals->Next();
    if (signo == SIGWINCH) {
      const WindowSize size = SizeOfTerminal(STDIN_FILENO);
      (void)co_await process->Resize(size.rows, size.cols);
      continue;
    }
    (void)co_await process->Signal(++asked > 1 ? SIGKILL : signo, sandbox::SignalScope::kTree);
  }
}

struct Collected {
  std::string out, err;
};

// Passes output on until the command has ended.
Task<Result<sandbox::ExecOutcome>> ForwardOutput(std::shared_ptr<Process> process,
                                                 Collected* collected) {
  bool broken = false;
  for (;;) {
    auto event = co_await process->Next();
    if (!event) co_return std::move(event).error();
    if (auto* outcome = std::get_if<sandbox::ExecOutcome>(&*event)) co_return std::move(*outcome);
    auto& chunk = std::get<sandbox::OutputChunk>(*event);
    const bool standard = chunk.stream == sandbox::Stream::kStdout;
    if (collected != nullptr) {
      (standard ? collected->out : collected->err) += chunk.data;
    } else if (!broken && !WriteTo(standard ? STDOUT_FILENO : STDERR_FILENO, chunk.data)) {
      // Nobody reads what it says: end it like a writer to a closed pipe.
      broken = true;
      (void)co_await process->Signal(SIGPIPE, sandbox::SignalScope::kTree);
      (void)co_await process->Signal(SIGKILL, sandbox::SignalScope::kTree);
    }
  }
}

Task<Result<int>> RunInSandbox(sandbox::Sandbox* box, ExecRequest request, ExecTiming timing) {
  const bool pty = request.command.stdio == sandbox::Stdio::kPty;
  if (fcntl(STDIN_FILENO, F_GETFD) >= 0) request.command.stdin_kind = sandbox::StdinKind::kOpen;
  if (pty) {
    const WindowSize size = SizeOfTerminal(STDIN_FILENO);
    request.command.rows = size.rows;
    request.command.cols = size.cols;
    if (const char* term = getenv("TERM")) request.command.env.emplace("TERM", term);
  }
  async::Signals signals(box->loop(), {SIGINT, SIGTERM, SIGHUP});
  if (pty) signals.Add(SIGWINCH);
  const auto begin = std::chrono::steady_clock::now();
  auto started = co_await box->Start(request.command);
  if (!started) {
    const int code = CodeOfStartError(started.error());
    if (code == 125) co_return std::move(started).error();
    WriteTo(STDERR_FILENO, ShowError(TheProgram(), nullptr, started.error()));
    co_return code;
  }
  std::shared_ptr<Process> process = *std::move(started);
  std::optional<RawTerminal> raw;
  if (pty && isatty(STDIN_FILENO) != 0) raw.emplace(STDIN_FILENO);
  async::TaskSet forwarding(box->loop());
  if (request.command.stdin_kind == sandbox::StdinKind::kOpen)
    forwarding.Spawn(ForwardInput(process, &box->loop()));
  forwarding.Spawn(ForwardSignals(process, &signals));
  Collected collected;
  auto outcome = co_await ForwardOutput(process, request.json ? &collected : nullptr);
  raw.reset();
  forwarding.Cancel();
  if (!outcome) co_return std::move(outcome).error();
  timing.command = std::chrono::steady_clock::now() - begin;

  const auto destroying = std::chrono::steady_clock::now();
  auto stats = co_await box->Destroy();
  timing.destroy = std::chrono::steady_clock::now() - destroying;
  if (stats && outcome->usage.memory_peak_bytes == 0)
    outcome->usage.memory_peak_bytes = stats->memory_peak_bytes;
  const ExecReport report{*outcome,      stats ? *stats : sandbox::SandboxStats{},
                          timing,        box->report(),
                          collected.out, collected.err};
  if (request.json && !WriteOut(AsJson(report))) co_return 125;
  if (request.stats)
    WriteTo(
        STDERR_FILENO,
        AsText(report, isatty(STDERR_FILENO) != 0 && getenv("NO_COLOR") == nullptr ? Colour::kYes
                                                                                   : Colour::kNo));
  co_return sandbox::ShellCode(*outcome);
}

Task<Result<int>> Exec(async::Loop* loop, ExecRequest request) {
  ExecTiming timing;
  const auto start = std::chrono::steady_clock::now();
  auto provider =
      co_await native::NativeProvider::Open(loop, native::LauncherPaths::FromEnvironment(),
                                            native::Keeping::kEphemeral, native::Pooling::kOff);
  if (!provider) co_return std::move(provider).error();
  timing.launcher = std::chrono::steady_clock::now() - start;
  const auto creating = std::chrono::steady_clock::now();
  auto box = co_await (*provider)->Create(request.sandbox);
  if (!box) co_return std::move(box).error();
  timing.create = std::chrono::steady_clock::now() - creating;
  auto code = co_await RunInSandbox(box->get(), std::move(request), timing);
  if (auto shut = co_await (*provider)->Shutdown(); !shut && code)
    co_return std::move(shut).error();
  co_return code;
}

}  // namespace

Result<int> RunExec(const Parsed& parsed) {
  if (parsed.Given("session")) return RunSessionExec(parsed);
  CAISSON_TRY(CheckLocalExec(parsed));
  CAISSON_ASSIGN(auto request, ReadExecRequest(parsed));
  async::Loop loop;
  return loop.RunUntilDone(Exec(&loop, std::move(request)));
}

}  // namespace caisson::cli
