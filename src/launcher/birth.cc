#include "launcher/birth.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "launcher/disk_layout.h"
#include "launcher/hooks.h"
#include "launcher/limits.h"
#include "sys/capabilities.h"
#include "sys/mounts.h"
#include "sys/packet.h"
#include "sys/text_file.h"
#include "sys/user_ns.h"

namespace caisson::launcher {
namespace {

namespace w = wire::launcher;

constexpr uint64_t kStartDeadlineNs = 10'000'000'000;
constexpr uint64_t kAllCaps = 0x1ffffffffff;

// The id that a strict sandbox is, wholly; the owner of /workspace in a default one.
Result<uint32_t> ParseUid(const std::string& user) {
  if (user.empty() || user == "root") return 0u;
  if (user == "user") return 1000u;
  uint32_t uid = 0;
  if (user.size() > 5 || (user.size() > 1 && user[0] == '0')) uid = kIdsPerSlot;
  for (const char c : user) {
    if (c < '0' || c > '9') uid = kIdsPerSlot;
    if (uid < kIdsPerSlot) uid = uid * 10 + static_cast<uint32_t>(c - '0');
  }
  if (uid > 65534)
    return Error(ErrorCode::kInvalidArgument,
                 "\"" + user + "\" is not a user that a sandbox can be created for")
        .WithRemedy("give a uid from 0 to 65534, `root` or `user`");
  return uid;
}

// A detached mount of `source` for the sandbox. A read-only one shows the host's ids shifted like
// the root's; a writable one maps the owner of the source to the sandbox's default user, so that
// what the sandbox writes belongs to that owner. Where the owner is root nothing is mapped: files
// that the sandbox makes there belong to its own id range, never to root, and only what everybody
// may write can be written.
Result<sys::UniqueFd> PrepareMount(const Host& host, const Berth& berth, uint32_t uid,
                                   const w::Mount& mount, int source) {
  struct stat info{};
  if (fstat(source, &info) != 0)
    return Error::FromErrno("look at the source of the mount at " + mount.target);
  const bool writable = mount.mode == w::MountMode::kReadWrite;
  const bool roots = info.st_uid == 0 && !host.rootless;
  if (writable && roots && (info.st_mode & S_IWOTH) == 0)
    return Error(ErrorCode::kPermissionDenied,
                 "the source of the writable mount at " + mount.target +
                     " belongs to root; a sandbox must not write files of root's")
        .WithRemedy("give the source to another user (chown), or mount it read-only (:ro)");
  const int raw = sys::CloneTree(source, "");
  if (raw < 0) return Error::FromErrno("copy the mount for " + mount.target, -raw);
  sys::UniqueFd copy(raw);
  const uint64_t attributes =
      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (writable ? 0 : MOUNT_ATTR_RDONLY);
  int error = -EINVAL;
  if (!host.rootless && !(writable && roots)) {
    sys::UniqueFd map;
    if (writable) {
      const uint32_t inside = berth.ids.first_id() + uid;
      CAISSON_ASSIGN(map,
                     sys::MakeUserNamespace({{info.st_uid, inside, 1}, {info.st_gid, inside, 1}},
                                            sys::Nesting::kForbidden));
    }
    error = sys::SetMountAttributes(raw, attributes, 0, writable ? map.get() : berth.ids.user_ns());
    if (error < 0 && writable)
      return Error::FromErrno("map the owner of the mount at " + mount.target, -error)
          .WithCode(ErrorCode::kUnsupported)
          .WithRemedy(
              "its file system has no id-mapped mounts; mount it read-only, or copy the files in "
              "and out");
  }
  if (error < 0) error = sys::SetMountAttributes(raw, attributes, 0, -1);
  if (error < 0) return Error::FromErrno("protect the mount at " + mount.target, -error);
  return copy;
}

Status PrepareMounts(const Host& host, Box& box, uint32_t uid,
                     std::vector<sys::UniqueFd>& sources) {
  for (size_t i = 0; i < sources.size(); ++i) {
    const auto& mount = box.birth->spec.mounts[i];
    if (host.rootless) {
      char path[4096];
      const ssize_t size = readlink(("/proc/self/fd/" + std::to_string(sources[i].get())).c_str(),
                                    path, sizeof path - 1);
      if (size < 0) return Error::FromErrno("find the source of the mount at " + mount.target);
      path[size] = '\0';
      sources[i].Reset(open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW));
    }
    CAISSON_ASSIGN(auto prepared, PrepareMount(host, *box.berth, uid, mount, sources[i].get()));
    struct stat info{};
    if (fstat(sources[i].get(), &info) != 0)
      return Error::FromErrno("look at the source of " + mount.target);
    box.birth->plan.mounts[i] = {prepared.get(), mount.target.c_str(),
                                 S_ISDIR(info.st_mode) ? 1 : 0};
    box.birth->mounts.push_back(std::move(prepared));
  }
  box.birth->plan.mount_count = sources.size();
  return {};
}

Status PrepareNodes(Box& box) {
  for (size_t i = 0; i < std::size(kDeviceNodes); ++i) {
    const std::string path = std::string("/dev/") + kDeviceNodes[i].name;
    const int node = sys::CloneTree(AT_FDCWD, path.c_str());
    if (node < 0) return Error::FromErrno("copy the mount of " + path, -node);
    box.birth->nodes.emplace_back(node);
    // The node is the host's own: it can be read and written, but its times and attributes stay.
    const int error = sys::SetMountAttributes(
        node, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, 0, -1);
    if (error < 0) return Error::FromErrno("protect the mount of " + path, -error);
    box.birth->plan.nodes[i] = node;
  }
  return {};
}

void FillPlan(const Host& host, Box& box, const Root& root, uint32_t uid) {
  JailPlan& plan = box.birth->plan;
  const bool strict = box.birth->spec.profile == w::Profile::kStrict;
  plan.disk = box.berth->disk->mount_fd();
  plan.user_ns = box.berth->ids.user_ns();
  plan.init = host.init_program.get();
  for (size_t i = 0; i < root.inside.size(); ++i)
    plan.overlays[i] = {box.berth->lowers[i].get(), root.inside[i].c_str()};
  plan.overlay_count = root.inside.size();
  plan.profile = box.birth->spec.profile;
  plan.rootless = host.rootless ? 1 : 0;
  plan.uid = strict ? uid : 0;
  plan.first_id = box.berth->ids.first_id();
  plan.capabilities = Ablated(Layer::kCapabilities) ? kAllCaps
                      : strict                      ? 0
                                                    : sys::kPackageManagerCaps;
  // With one id there is nobody to become, and setgroups(2) is denied in an ordinary user's
  // namespace.
  if (host.ids.kind == IdPlan::Kind::kSingle)
    plan.capabilities &= ~(sys::CapBit(CAP_SETUID) | sys::CapBit(CAP_SETGID));
  plan.seccomp = strict ? &host.seccomp_strict.program() : &host.seccomp_default.program();
  plan.landlock_abi = host.landlock_abi;
  char text[20];
  snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(plan.capabilities));
  box.birth->caps_text = text;
  plan.capabilities_hex = box.birth->caps_text.c_str();
}

Status LimitBandwidth(const Host& host, Box& box) {
  const uint64_t percent = box.birth->spec.limits.memory_bandwidth_percent;
  if (percent == w::kNoLimit) return {};
  CAISSON_ASSIGN(auto group, sys::ResctrlGroup::Create({}, host.instance->id(), box.id,
                                                       static_cast<uint32_t>(percent)));
  box.birth->created.limits.push_back(
      {"memory_bandwidth", 1, group.percent(), std::string(sys::ResctrlGroup::kBy), ""});
  box.bandwidth = std::move(group);
  return {};
}

Result<sys::UniqueFd> CloneInit(const Host& host, Box& box, sys::UniqueFd net) {
  int report[2], go[2];
  if (pipe2(report, O_CLOEXEC | O_NONBLOCK) != 0) return Error::FromErrno("make a pipe");
  sys::UniqueFd report_write(report[1]);
  box.birth->report.Reset(report[0]);
  if (pipe2(go, O_CLOEXEC) != 0) return Error::FromErrno("make a pipe");
  sys::UniqueFd go_read(go[0]);
  box.birth->go.Reset(go[1]);
  CAISSON_ASSIGN(auto pair, sys::MakeSocketPair());
  box.control = std::move(pair.first);
  box.birth->plan.report = report_write.get();
  box.birth->plan.go = go_read.get();
  box.birth->plan.control = pair.second.get();
  box.birth->plan.net_ns = net.get();
  CAISSON_TRY(host.gangway->Load(box.birth->plan));
  CAISSON_TRY(host.dock->Enter());
  const sys::CloneResult clone =
      host.gangway->Clone(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS,
                          box.cgroup ? box.cgroup->dir_fd() : -1);
  const int clone_errno = errno;
  if (clone.pid == 0) EnterJail(box.birth->plan);
  CAISSON_TRY(host.dock->Leave());
  if (clone.pid < 0)
    return Error::FromErrno("clone the sandbox's init", clone_errno)
        .WithCode(ErrorCode::kResourceExhausted);
  box.init = sys::Child(clone.pid, sys::UniqueFd(clone.pidfd));
  CrashPoint("init cloned");
  return net;
}

// Lets the child go on.
Status Depart(Box& box) {
  box.deadline_ns = sys::MonotonicNs() + kStartDeadlineNs;
  Departure departure;
  box.birth->spec.hostname.copy(departure.hostname, sizeof departure.hostname - 1);
  box.birth->spec.user.copy(departure.user, sizeof departure.user - 1);
  // A child that has failed already (EPIPE) says why on the report pipe.
  if (write(box.birth->go.get(), &departure, sizeof departure) != sizeof departure &&
      errno != EPIPE)
    return Error::FromErrno("release the sandbox's init");
  box.birth->go.Reset();
  return sys::SetNonBlocking(box.control.get());
}

}  // namespace

Status CheckSpec(const Host& host, const w::Create& spec, size_t sources) {
  if (spec.id.size() < 8) return Error(ErrorCode::kInvalidArgument, "the sandbox id is too short");
  for (const char c : spec.id)
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')))
      return Error(ErrorCode::kInvalidArgument,
                   "a sandbox id has only lower-case letters and digits");
  if (spec.mounts.size() != sources)
    return Error(ErrorCode::kProtocol, "a create needs one descriptor per mount");
  for (const auto& mount : spec.mounts)
    if (mount.target.empty() || mount.target[0] != '/' ||
        mount.target.find('\0') != std::string::npos ||
        mount.target.find("/..") != std::string::npos || mount.target == "/")
      return Error(ErrorCode::kInvalidArgument,
                   "\"" + mount.target + "\" is not a path inside that something can be mounted on")
          .WithRemedy("give an absolute path without `..`, not `/` itself");
  if (host.ids.kind == IdPlan::Kind::kSingle && spec.user != "" && spec.user != "root" &&
      spec.user != "0")
    return Error(ErrorCode::kUnsupported,
                 "this user has one id only, so a sandbox has no other user than root")
        .WithRemedy(
            "add the user to /etc/subuid and /etc/subgid with 65536 ids and install uidmap");
  return {};
}

bool CanBeSpare(const Host& host, const w::Create& spec) {
  if (!spec.mounts.empty() || spec.limits.memory_bandwidth_percent != w::kNoLimit) return false;
  const auto backend = ChooseDisk(host, spec.disk_backend, spec.limits);
  return backend && *backend == DiskBackend::kTmpfs;
}

Result<std::unique_ptr<Box>> StartBox(const Host& host, Pools pools, w::Create spec,
                                      std::vector<sys::UniqueFd> sources) {
  CAISSON_ASSIGN(const uint32_t uid,
                 spec.profile == w::Profile::kStrict ? ParseUid(spec.user) : Result<uint32_t>(0u));
  CAISSON_ASSIGN(const auto backend, ChooseDisk(host, spec.disk_backend, spec.limits));
  CAISSON_ASSIGN(const auto limits, PlanLimits(host, spec.limits, WallOf(host, spec.profile)));
  const Root* root = pools.berths.Find(spec.root_key);
  if (root == nullptr)
    return Error(ErrorCode::kNotFound, "no root \"" + spec.root_key + "\" is registered");
  auto box = std::make_unique<Box>();
  box->birth = std::make_unique<Birth>();
  box->id = spec.id;
  CAISSON_ASSIGN(auto berth, pools.berths.Take({spec.root_key, uid, backend, spec.limits.disk_bytes,
                                                spec.limits.disk_inodes}));
  box->berth = std::move(berth);
  box->birth->spec = std::move(spec);
  if (!Ablated(Layer::kCgroup)) {
    CAISSON_ASSIGN(auto limited, pools.cgroups.Take(limits.cgroup));
    box->cgroup = std::move(limited.cgroup);
    box->birth->created.limits = ToFacts(limited.reports);
  }
  CAISSON_TRY(LimitBandwidth(host, *box));
  for (const auto& fact : limits.facts) box->birth->created.limits.push_back(fact);
  CAISSON_ASSIGN(auto net, pools.nets.Take());
  CAISSON_TRY(PrepareMounts(host, *box, uid, sources));
  if (host.rootless) CAISSON_TRY(PrepareNodes(*box));
  FillPlan(host, *box, *root, uid);
  box->birth->plan.processes = limits.process_rlimit.value_or(RLIM_INFINITY);
  CAISSON_ASSIGN(net, CloneInit(host, *box, std::move(net)));
  // When the host runs out of memory, sandboxes go before anything else; init makes its commands go
  // before itself.
  (void)sys::TryWriteText(
      AT_FDCWD, ("/proc/" + std::to_string(box->init.pid()) + "/oom_score_adj").c_str(), "500");
  // The child builds its root while we attach it; it waits for its Departure before it goes on.
  if (box->cgroup)
    CAISSON_TRY(box->cgroup->dir_fd() >= 0 ? box->cgroup->AttachCloned(box->init.pid())
                                           : box->cgroup->Attach(box->init.pid()));
  if (box->bandwidth) CAISSON_TRY(box->bandwidth->Attach(box->init.pid()));
  CrashPoint("cgroup attached");
  CAISSON_TRY(Depart(*box));
  return box;
}

Status ConfirmBox(const Host& host, Box& box) {
  auto& created = box.birth->created;
  if (!Ablated(Layer::kVerify)) {
    CAISSON_ASSIGN(
        auto verified,
        VerifyJail(box.init.pid(), box.birth->plan, host.namespaces,
                   box.cgroup && host.cgroups->tracks_processes() ? box.cgroup->name() : "",
                   host.ids.count));
    created.isolation = std::move(verified.facts);
  }
  const bool strict = box.birth->spec.profile == w::Profile::kStrict;
  const auto& filter = strict ? host.seccomp_strict : host.seccomp_default;
  created.isolation.push_back({"seccomp", "filter " + filter.digest() + ", " +
                                              std::to_string(filter.allowed_count()) + " calls"});
  created.isolation.push_back({"landlock_abi", std::to_string(host.landlock_abi)});
  created.isolation.push_back({"profile", strict ? "strict" : "default"});
  created.isolation.push_back({"mode", host.rootless ? "rootless" : "root"});
  created.isolation.push_back({"id_mapped_root", box.berth->id_mapped ? "yes" : "no"});
  created.isolation.push_back(
      {"disk_backend", std::string(NameOf(box.berth->request.disk_backend))});
  auto disk = box.berth->disk->Stats();
  if (!disk) return std::move(disk).error();
  created.limits.push_back(DiskFact("disk", disk->bytes_limit, box.berth->request.disk_backend));
  created.limits.push_back(DiskFact("inodes", disk->inodes_limit, box.berth->request.disk_backend));
  created.pid = box.init.pid();
  box.berth->lowers.clear();  // the jail has consumed them
  return {};
}

}  // namespace caisson::launcher
