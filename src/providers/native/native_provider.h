// The native provider: namespaces, overlay, cgroups and seccomp of this host's kernel.
//
// When the launcher dies its sandboxes die with it, which OnLoss tells; a provider that keeps goes
// on with another launcher (launcher_link.h), and creates that were under way are made by that.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "providers/native/launcher_link.h"
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
  void OnLoss(std::function<void(const sandbox::Loss&)> handler) override;

  // Destroys every sandbox of this launcher and ends it; completes when nothing is left.
  Task<Status> Shutdown();

  const wire::launcher::HelloReply& host() const { return launcher_->last()->hello(); }

 private:
  enum class Origin { kCreated, kAdopted };
  using Launcher = std::shared_ptr<LauncherClient>;
  NativeProvider(async::Loop& loop, LauncherPaths paths, std::unique_ptr<LauncherLink> launcher)
      : loop_(loop), paths_(std::move(paths)), launcher_(std::move(launcher)) {}
  // The key of the root that the spec asks for, known to the launcher.
  Task<Result<std::string>> PrepareRoot(Launcher launcher, std::string environment,
                                        std::string rootfs);
  Task<Result<std::unique_ptr<sandbox::Sandbox>>> CreateWith(Launcher launcher,
                                                             wire::launcher::Create create,
                                                             std::vector<int> fds,
                                                             sandbox::SandboxSpec spec);
  Task<Result<std::unique_ptr<sandbox::Sandbox>>> Take(Launcher launcher, std::string id,
                                                       wire::launcher::Created created,
                                                       std::vector<sys::UniqueFd> fds,
                                                       sandbox::SandboxSpec spec, Origin origin);

  async::Loop& loop_;
  LauncherPaths paths_;
  std::unique_ptr<LauncherLink> launcher_;
  // The host's root as it was planned last. Its files are looked at again at most once a second: a
  // package that the host installs is seen by sandboxes created a second later.
  std::optional<std::string> host_root_;
  std::chrono::steady_clock::time_point host_root_time_;
};

}  // namespace caisson::native
