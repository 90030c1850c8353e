#include "providers/native/native_process.h"

namespace caisson::native {

namespace w = wire::init;

NativeProcess::~NativeProcess() {
  init_->Forget(handle_);
  if (!state_->exited) init_->Post(w::Detach{handle_});
}

void NativeProcess::StartAt(uint64_t stdout_from, uint64_t stderr_from) {
  state_->stdout_next = stdout_from;
  state_->stderr_next = stderr_from;
}

// Everything the command wrote has been handed on. What was dropped will not come.
bool NativeProcess::Drained() const {
  return state_->output.empty() && state_->stdout_next >= state_->exited->stdout_end &&
         state_->stderr_next >= state_->exited->stderr_end;
}

Task<Result<sandbox::ProcessEvent>> NativeProcess::Next() {
  auto state = state_;
  for (;;) {
    if (!state->output.empty()) {
      w::Output output = std::move(state->output.front());
      state->output.pop_front();
      auto& next = output.stream == w::Stream::kStdout ? state->stdout_next : state->stderr_next;
      next = output.offset + output.data.size();
      state->ungranted += output.data.size();
      if (state->ungranted >= kWindow / 4)
        init_->Post(w::Credit{handle_, std::exchange(state->ungranted, 0)});
      co_return sandbox::OutputChunk{
          output.stream == w::Stream::kStdout ? sandbox::Stream::kStdout : sandbox::Stream::kStderr,
          output.offset, std::move(output.data)};
    }
    if (state->exited && (Drained() || state->lost)) co_return co_await judge_(*state->exited);
    if (state->lost) co_return co_await judge_(std::nullopt);
    state->changed.Clear();
    co_await state->changed.Wait();
  }
}

Task<Status> NativeProcess::SendInput(std::string data, uint8_t eof) {
  auto done = co_await init_->Call<w::Done>(w::Input{handle_, eof, std::move(data)});
  if (!done) co_return std::move(done).error();
  co_return Status();
}

Task<Status> NativeProcess::Write(std::string data) {
  for (size_t at = 0; at < data.size(); at += wire::kMaxData)
    CAISSON_CO_TRY(co_await SendInput(data.substr(at, wire::kMaxData), 0));
  co_return Status();
}

Task<Status> NativeProcess::CloseStdin() { return SendInput("", 1); }

Task<Status> NativeProcess::Signal(int signo, sandbox::SignalScope scope) {
  auto done =
      co_await init_->Call<w::Done>(w::Signal{handle_, signo, static_cast<w::Scope>(scope)});
  if (!done) co_return std::move(done).error();
  co_return Status();
}

Task<Status> NativeProcess::Resize(uint16_t rows, uint16_t cols) {
  auto done = co_await init_->Call<w::Done>(w::Resize{handle_, rows, cols});
  if (!done) co_return std::move(done).error();
  co_return Status();
}

}  // namespace caisson::native
