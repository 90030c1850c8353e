#include "providers/native/native_provider.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>

#include "providers/native/host_root.h"
#include "providers/native/import_tar.h"
#include "providers/native/native_sandbox.h"
#include "sandbox/ids.h"

namespace caisson::native {

namespace l = wire::launcher;
using sandbox::SandboxSpec;

namespace {

Error OpenError(Error error) {
  if (error.code() == ErrorCode::kResourceExhausted)
    return error;  // nothing is wrong with the path
  const bool absent = error.sys_errno() == ENOENT;
  return std::move(error)
      .WithCode(absent ? ErrorCode::kNotFound : ErrorCode::kPermissionDenied)
      .WithRemedy("give a path on the host that exists and that you may read");
}

Result<sys::UniqueFd> OpenPath(const std::string& path, const std::string& what) {
  sys::UniqueFd fd(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd) return OpenError(Error::FromErrno("open " + what + " " + path));
  return fd;
}

// Places that a mount must not cover: they are made by the jail itself.
Status CheckTarget(const sandbox::MountSpec& mount) {
  const std::string& target = mount.target;
  auto bad = [&](const char* why) {
    return Error(ErrorCode::kInvalidArgument,
                 "cannot mount " + mount.source + " at \"" + target + "\": " + why)
        .WithRemedy("give an absolute path inside without `..`, e.g. /workspace/data or /mnt/data");
  };
  if (target.empty() || target[0] != '/') return bad("the target is not an absolute path");
  if (target.find_first_not_of('/') == std::string::npos) return bad("it is the root itself");
  for (const char* part : {"/../", "/./"})
    if ((target + "/").find(part) != std::string::npos)
      return bad("the target is not a plain path");
  for (const char* reserved : {"/proc", "/dev", "/sys"})
    if (target == reserved || target.starts_with(std::string(reserved) + "/"))
      return bad("that place belongs to the sandbox");
  return {};
}

Result<RootPlan> PlanRoot(const std::string& environment, const std::string& rootfs,
                          const std::string& cache) {
  if (rootfs.empty()) {
    if (environment == "host" || environment.empty()) return PrepareHostRoot(cache);
    return Error(ErrorCode::kNotFound, "there is no environment \"" + environment + "\"")
        .WithRemedy("use `host`, or give a root with --rootfs");
  }
  struct stat info{};
  if (stat(rootfs.c_str(), &info) != 0)
    return Error::FromErrno("use the root filesystem " + rootfs)
        .WithCode(ErrorCode::kNotFound)
        .WithRemedy("give a directory or a tar file that exists");
  return S_ISDIR(info.st_mode) ? DirectoryRoot(rootfs) : ImportTar(rootfs, cache);
}

// Fills in the defaults of the profile and says which limits nobody asked for.
Result<l::Limits> CompleteLimits(const SandboxSpec& spec) {
  const auto& defaults =
      spec.profile == sandbox::Profile::kStrict ? sandbox::kStrictLimits : sandbox::kDefaultLimits;
  const auto& asked = spec.limits;
  l::Limits limits = ToWire(asked);
  auto fill = [&](uint64_t& field, uint64_t value, uint32_t bit) {
    if (field != l::kNoLimit) return;
    field = value;
    limits.defaulted |= bit;
  };
  fill(limits.memory_bytes, defaults.memory_bytes, l::kMemoryBit);
  fill(limits.swap_bytes, defaults.swap_bytes, l::kSwapBit);
  fill(limits.cpu_millis, defaults.cpu_millis, l::kCpuBit);
  fill(limits.pids, defaults.pids, l::kPidsBit);
  fill(limits.disk_bytes,
       std::min(defaults.disk_bytes, std::max<uint64_t>(limits.memory_bytes / 2, sandbox::kMiB)),
       l::kDiskBit);
  // Inodes in proportion to the disk, unless given: on ext4 their table is part of it.
  if (limits.disk_inodes == l::kNoLimit)
    limits.disk_inodes = std::clamp<uint64_t>(defaults.disk_inodes, limits.disk_bytes / 16384,
                                              limits.disk_bytes / 4096);
  CAISSON_TRY(CheckPossible(limits));
  return limits;
}

sandbox::IsolationLevel LevelOf(const l::HelloReply& host) {
  return host.rootless != 0 ? sandbox::IsolationLevel::kNamespacesRootless
                            : sandbox::IsolationLevel::kNamespaces;
}

}  // namespace

Task<Result<std::unique_ptr<NativeProvider>>> NativeProvider::Open(async::Loop* loop,
                                                                   LauncherPaths paths,
                                                                   Keeping keeping,
                                                                   Pooling pooling) {
  auto launcher = co_await LauncherLink::Open(loop, paths, keeping, pooling);
  if (!launcher) co_return std::move(launcher).error();
  std::unique_ptr<NativeProvider> provider(
      new NativeProvider(*loop, std::move(paths), *std::move(launcher)));
  // The first create does not wait for it. What went wrong with it the first create says.
  if (pooling == Pooling::kOn)
    (void)co_await provider->PrepareRoot(provider->launcher_->last(), "host", "");
  co_return provider;
}

sandbox::ProviderCapabilities NativeProvider::capabilities() const {
  return {.pause = true,
          .live_limits = true,
          .pty = true,
          .watch = true,
          .adoption = true,
          .strict_profile = true,
          .isolation = LevelOf(host())};
}

Task<Result<std::string>> NativeProvider::PrepareRoot(Launcher launcher, std::string environment,
                                                      std::string rootfs) {
  const bool host = rootfs.empty() && (environment.empty() || environment == "host");
  const auto now = std::chrono::steady_clock::now();
  if (host && host_root_ && now - host_root_time_ < std::chrono::seconds(1) &&
      launcher->KnowsRoot(*host_root_))
    co_return *host_root_;
  auto plan = PlanRoot(environment, rootfs, paths_.state_dir + "/cache");
  if (!plan) co_return std::move(plan).error();
  if (host) {
    host_root_ = plan->key;
    host_root_time_ = now;
  }
  if (launcher->KnowsRoot(plan->key)) co_return plan->key;
  l::RegisterRoot root;
  root.key = plan->key;
  std::vector<sys::UniqueFd> held;
  std::vector<int> fds;
  for (const auto& overlay : plan->overlays) {
    CAISSON_CO_ASSIGN(auto fd, OpenPath(overlay.outside, "the layer"));
    root.inside.push_back(overlay.inside);
    fds.push_back(fd.get());
    held.push_back(std::move(fd));
  }
  auto done = co_await launcher->Call<l::Done>(std::move(root), std::move(fds));
  if (!done) co_return std::move(done).error();
  launcher->NoteRoot(plan->key);
  co_return plan->key;
}

Task<Result<std::unique_ptr<sandbox::Sandbox>>> NativeProvider::Create(SandboxSpec spec) {
  CAISSON_CO_TRY(sandbox::CheckIsolation(LevelOf(host()), spec.min_isolation));
  const bool strict = spec.profile == sandbox::Profile::kStrict;
  l::Create create;
  CAISSON_CO_ASSIGN(create.limits, CompleteLimits(spec));
  create.id = spec.id.empty() ? sandbox::NewId() : spec.id;
  create.hostname = spec.hostname.empty() ? "caisson" : spec.hostname;
  if (create.hostname.size() > 63)
    co_return Error(ErrorCode::kInvalidArgument, "the host name is longer than 63 bytes");
  const bool single = host().rootless != 0 && strict && spec.user.empty();
  create.user = !spec.user.empty() ? spec.user : strict && !single ? "1000" : "0";
  create.profile = strict ? l::Profile::kStrict : l::Profile::kDefault;
  create.disk_backend = static_cast<l::DiskBackend>(spec.disk_backend);
  std::vector<sys::UniqueFd> held;
  std::vector<int> fds;
  for (const auto& mount : spec.mounts) {
    CAISSON_CO_TRY(CheckTarget(mount));
    CAISSON_CO_ASSIGN(auto fd, OpenPath(mount.source, "the mount source"));
    create.mounts.push_back({mount.target, mount.mode == sandbox::MountMode::kReadOnly
                                               ? l::MountMode::kReadOnly
                                               : l::MountMode::kReadWrite});
    fds.push_back(fd.get());
    held.push_back(std::move(fd));
  }
  // What a launcher made before it died has died with it, so the next one may be asked again.
  for (int attempt = 1;; ++attempt) {
    CAISSON_CO_ASSIGN(auto launcher, co_await launcher_->Get());
    auto made = co_await CreateWith(launcher, create, fds, spec);
    if (made || !launcher->closed() || attempt == 2) co_return made;
  }
}

Task<Result<std::unique_ptr<sandbox::Sandbox>>> NativeProvider::CreateWith(Launcher launcher,
                                                                           l::Create create,
                                                                           std::vector<int> fds,
                                                                           SandboxSpec spec) {
  CAISSON_CO_ASSIGN(create.root_key, co_await PrepareRoot(launcher, spec.environment, spec.rootfs));
  const std::string id = create.id;
  auto created = co_await launcher->Call<l::Created>(std::move(create), std::move(fds));
  if (!created) co_return std::move(created).error();
  auto taken = co_await Take(launcher, id, std::move(created->reply), std::move(created->fds),
                             std::move(spec), Origin::kCreated);
  if (!taken) {
    auto error = std::move(taken).error();
    (void)co_await launcher->Call<l::Destroyed>(l::Destroy{id});
    co_return error;
  }
  co_return taken;
}

Task<Result<std::unique_ptr<sandbox::Sandbox>>> NativeProvider::Take(
    Launcher launcher, std::string id, l::Created created, std::vector<sys::UniqueFd> fds,
    SandboxSpec spec, Origin origin) {
  if (fds.size() != 1u + created.memory_events + created.pids_events)
    co_return Error(ErrorCode::kResourceExhausted,
                    "the sandbox's descriptors could not be received: too many are open")
        .WithRemedy("raise the limit of open files (ulimit -n), or destroy other sandboxes");
  sys::UniqueFd control = std::move(fds[0]);
  LimitEvents events(created.memory_events != 0 ? std::move(fds[1]) : sys::UniqueFd(),
                     created.pids_events != 0 ? std::move(fds.back()) : sys::UniqueFd());
  const auto& limits =
      spec.profile == sandbox::Profile::kStrict ? sandbox::kStrictLimits : sandbox::kDefaultLimits;
  SandboxDefaults defaults{spec.env, spec.limits.wall_time.value_or(limits.wall_time),
                           spec.limits.output_bytes.value_or(limits.output_bytes),
                           spec.limits.open_files.value_or(limits.open_files)};
  sandbox::SandboxReport report{
      "native", std::string(NameOf(LevelOf(launcher->hello()))), {}, ToStates(created.limits)};
  for (auto& fact : created.isolation)
    report.isolation.push_back({std::move(fact.name), std::move(fact.value)});
  report.limits.push_back(
      {"open_files", true, defaults.open_files, "RLIMIT_NOFILE of each command", ""});
  if (defaults.wall_time.count() > 0)
    report.limits.push_back({"wall_time", true, static_cast<uint64_t>(defaults.wall_time.count()),
                             "init's timer, for each command", ""});
  if (defaults.output_bytes > 0)
    report.limits.push_back(
        {"output", true, defaults.output_bytes, "init's counter, for each command", ""});
  // An adopted sandbox keeps what its former owner told it.
  std::vector<wire::init::Rlimit> rlimits;
  if (origin == Origin::kCreated)
    rlimits.push_back({RLIMIT_NOFILE, defaults.open_files, defaults.open_files});
  auto opened = co_await InitClient::Open(&loop_, std::move(control), std::move(rlimits));
  if (!opened) co_return std::move(opened).error();
  std::shared_ptr<InitClient> init = *std::move(opened);
  auto made =
      std::make_unique<NativeSandbox>(std::move(id), std::move(launcher), init, std::move(events),
                                      std::move(report), std::move(defaults));
  co_return std::unique_ptr<sandbox::Sandbox>(std::move(made));
}

Task<Status> NativeProvider::Shutdown() {
  CAISSON_CO_ASSIGN(auto launcher, co_await launcher_->Get());
  launcher_->Retire();
  auto done = co_await launcher->Call<l::Done>(l::Shutdown{});
  if (!done) co_return std::move(done).error();
  co_return Status();
}

Task<Result<std::vector<std::string>>> NativeProvider::List() {
  CAISSON_CO_ASSIGN(auto launcher, co_await launcher_->Get());
  std::vector<std::string> all;
  for (;;) {
    auto page = co_await launcher->Call<l::Sandboxes>(l::List{all.empty() ? "" : all.back()});
    if (!page) co_return std::move(page).error();
    if (page->reply.ids.empty()) co_return all;
    all.insert(all.end(), page->reply.ids.begin(), page->reply.ids.end());
  }
}

Task<Result<std::unique_ptr<sandbox::Sandbox>>> NativeProvider::Adopt(std::string id) {
  CAISSON_CO_ASSIGN(auto launcher, co_await launcher_->Get());
  // A frozen init answers nobody. Where there is no freezer, nothing is frozen.
  (void)co_await launcher->Call<l::Done>(l::Freeze{id, l::Freezer::kThaw});
  auto adopted = co_await launcher->Call<l::Adopted>(l::Adopt{id});
  if (!adopted) co_return std::move(adopted).error();
  co_return co_await Take(std::move(launcher), id, std::move(adopted->reply.created),
                          std::move(adopted->fds), {}, Origin::kAdopted);
}

Task<Status> NativeProvider::Remove(std::string id) {
  CAISSON_CO_ASSIGN(auto launcher, co_await launcher_->Get());
  auto destroyed = co_await launcher->Call<l::Destroyed>(l::Destroy{id});
  if (!destroyed) co_return std::move(destroyed).error();
  co_return Status();
}

void NativeProvider::OnLoss(std::function<void(const sandbox::Loss&)> handler) {
  if (!handler) return launcher_->Observe(nullptr, nullptr);
  launcher_->Observe(
      [handler] {
        handler({"", "the launcher that held its sandbox died, and the sandbox with it"});
      },
      [handler](const l::Lost& lost) {
        handler({lost.id, lost.out_of_memory != 0
                              ? "its sandbox reached its memory limit with nothing left to free, "
                                "and the kernel ended it"
                              : "its sandbox ended by itself"});
      });
}

}  // namespace caisson::native
