#include "sandbox/run.h"

#include "async/task_set.h"

namespace caisson::sandbox {
namespace {

// A command that closes its stdin early is no failure of ours: what it read is what it wanted.
Task<void> Feed(std::shared_ptr<Process> process, std::string input) {
  for (size_t at = 0; at < input.size(); at += 65536)
    if (!co_await process->Write(input.substr(at, 65536))) co_return;
  (void)co_await process->CloseStdin();
}

}  // namespace

Task<Result<ExecResult>> Run(Sandbox* sandbox, ExecSpec spec, std::string input) {
  const bool feeds = !input.empty();
  if (feeds) spec.stdin_kind = StdinKind::kOpen;
  auto started = co_await sandbox->Start(std::move(spec));
  if (!started) co_return std::move(started).error();
  std::shared_ptr<Process> process = *std::move(started);
  async::TaskSet feeding(sandbox->loop());
  if (feeds) feeding.Spawn(Feed(process, std::move(input)));
  ExecResult result;
  for (;;) {
    auto event = co_await process->Next();
    if (!event) co_return std::move(event).error();
    if (auto* chunk = std::get_if<OutputChunk>(&*event)) {
      (chunk->stream == Stream::kStdout ? result.out : result.err) += chunk->data;
      continue;
    }
    result.outcome = std::get<ExecOutcome>(*std::move(event));
    break;
  }
  (void)co_await sandbox->Release(process->handle());  // it may have gone with its sandbox
  co_return result;
}

}  // namespace caisson::sandbox
