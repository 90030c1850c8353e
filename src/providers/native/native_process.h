// A command in a native sandbox.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "providers/native/init_client.h"
#include "sandbox/provider.h"

namespace caisson::native {

// Turns how init says a command ended, if init lived to say it, into a verdict; it may have to ask
// the kernel's counters.
using Judge = std::function<Task<sandbox::ExecOutcome>(std::optional<wire::init::Exited>)>;

class NativeProcess : public sandbox::Process {
 public:
  // Output sent to us ahead of being fetched.
  static constexpr uint64_t kWindow = 1024 * 1024;

  NativeProcess(std::shared_ptr<InitClient> init, uint32_t handle, int pid, Judge judge)
      : init_(std::move(init)),
        handle_(handle),
        pid_(pid),
        judge_(std::move(judge)),
        state_(init_->StateOf(handle)) {}
  ~NativeProcess() override;

  uint32_t handle() const override { return handle_; }
  int pid() const override { return pid_; }
  Task<Result<sandbox::ProcessEvent>> Next() override;
  Task<Status> Write(std::string data) override;
  Task<Status> CloseStdin() override;
  Task<Status> Signal(int signo, sandbox::SignalScope scope) override;
  Task<Status> Resize(uint16_t rows, uint16_t cols) override;

  void StartAt(uint64_t stdout_from, uint64_t stderr_from);

 private:
  Task<Status> SendInput(std::string data, uint8_t eof);
  bool Drained() const;

  std::shared_ptr<InitClient> init_;
  uint32_t handle_;
  int pid_;
  Judge judge_;
  std::shared_ptr<ProcessState> state_;
};

}  // namespace caisson::native
