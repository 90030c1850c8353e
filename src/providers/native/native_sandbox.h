// A sandbox made by the launcher of this host.
#pragma once

#include <memory>
#include <string>

#include "providers/native/init_client.h"
#include "providers/native/launcher_client.h"
#include "providers/native/limit_events.h"
#include "providers/native/native_files.h"
#include "sandbox/provider.h"

namespace caisson::native {

// What a sandbox needs to know of its making, and cannot ask its init for.
struct SandboxDefaults {
  std::map<std::string, std::string> env;
  std::chrono::milliseconds wall_time{0};  // 0: none
  uint64_t output_bytes = 0;               // 0: none
  uint32_t open_files = 0;
};

class NativeSandbox : public sandbox::Sandbox {
 public:
  NativeSandbox(std::string id, std::shared_ptr<LauncherClient> launcher,
                std::shared_ptr<InitClient> init, LimitEvents events, sandbox::SandboxReport report,
                SandboxDefaults defaults);
  // Lets go of the sandbox without destroying it.
  ~NativeSandbox() override;

  async::Loop& loop() const override { return init_->loop(); }
  const std::string& id() const override { return id_; }
  const sandbox::SandboxReport& report() const override { return report_; }
  bool gone() const override { return destroyed_ || launcher_->closed() || init_->closed(); }
  Task<Result<std::unique_ptr<sandbox::Process>>> Start(sandbox::ExecSpec spec) override;
  Task<Result<std::unique_ptr<sandbox::Process>>> Attach(uint32_t handle, uint64_t stdout_from,
                                                         uint64_t stderr_from) override;
  Task<Result<std::vector<sandbox::ProcessInfo>>> Processes() override;
  Task<Status> Release(uint32_t handle) override;
  sandbox::Files& files() override { return files_; }
  Task<Result<std::vector<sandbox::LimitState>>> Update(sandbox::Limits limits) override;
  Task<Status> Pause() override;
  Task<Status> Resume() override;
  Task<Result<sandbox::SandboxStats>> Stats() override;
  Task<Result<sandbox::SandboxStats>> Destroy() override;

 private:
  Error WhyItEnded() const;
  Task<Status> SetOpenFiles(uint32_t open_files);
  Task<Status> SetFrozen(wire::launcher::Freezer state);

  std::string id_;
  std::shared_ptr<LauncherClient> launcher_;  // the one that made it
  std::shared_ptr<InitClient> init_;
  std::shared_ptr<const LimitEvents> events_;
  LimitCounts before_;  // of the cgroup's former sandboxes
  sandbox::SandboxReport report_;
  SandboxDefaults defaults_;
  NativeFiles files_;
  bool destroyed_ = false;
};

// Facts of the wire as states of the domain.
std::vector<sandbox::LimitState> ToStates(const std::vector<wire::launcher::LimitFact>& facts);
wire::launcher::Limits ToWire(const sandbox::Limits& limits);
// kLimitRefused when a limit that is set leaves no room for a sandbox.
Status CheckPossible(const wire::launcher::Limits& limits);

}  // namespace caisson::native
