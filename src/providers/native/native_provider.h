// The native provider: namespaces, overlay, cgroups and seccomp of this host's kernel.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>

#include "providers/native/launcher_client.h"
#include "sandbox/provider.h"

namespace caisson::native {

class NativeProvider : public sandbox::Provider {
 public:
  // Starts (or joins, see Keeping) the launcher.
  static Task<Result<std::unique_ptr<NativeProvider>>> Open(async::Loop* loop, LauncherPaths paths,
                                                            Keeping keeping,
                                                            Pooling pooling = Pooling::kOn);

  async::Loop& loop() const override { return loop_; }
  std::string_view name() const override { return "native"; }
  sandbox::ProviderCapabilities capabilities() const override;
  Task<Result<std::unique_ptr<sandbox::Sandbox>>> Create(sandbox::SandboxSpec spec) override;
  Task<Result<std::vector<std::string>>> List() override;
  Task<Result<std::unique_ptr<sandbox::Sandbox>>> Adopt(std::string id) override;
  Task<Status> Remove(std::string id) override;

  // Destroys every sandbox of this launcher and ends it; completes when nothing is left.
  Task<Status> Shutdown();

  const wire::launcher::HelloReply& host() const { return launcher_->hello(); }

 private:
  enum class Origin { kCreated, kAdopted };
  NativeProvider(async::Loop& loop, LauncherPaths paths, std::unique_ptr<LauncherClient> launcher)
      : loop_(loop), paths_(std::move(paths)), launcher_(std::move(launcher)) {}
  // The key of the root that the spec asks for, known to the launcher.
  Task<Result<std::string>> PrepareRoot(std::string environment, std::string rootfs);
  Task<Result<std::unique_ptr<sandbox::Sandbox>>> Take(std::string id,
                                                       wire::launcher::Created created,
                                                       std::vector<sys::UniqueFd> fds,
                                                       sandbox::SandboxSpec spec, Origin origin);

  async::Loop& loop_;
  LauncherPaths paths_;
  std::unique_ptr<LauncherClient> launcher_;
  std::set<std::string> registered_;
  // The host's root as it was planned last. Its files are looked at again at most once a second: a
  // package that the host installs is seen by sandboxes created a second later.
  std::optional<std::string> host_root_;
  std::chrono::steady_clock::time_point host_root_time_;
};

}  // namespace caisson::native
