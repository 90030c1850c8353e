#include "launcher/host.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>

#include "launcher/hooks.h"
#include "launcher/limits.h"
#include "launcher/rootless.h"
#include "sys/capabilities.h"
#include "sys/landlock.h"
#include "sys/memfd.h"
#include "sys/resctrl.h"
#include "sys/text_file.h"

extern "C" const char caisson_init_blob_begin[];
extern "C" const char caisson_init_blob_end[];

namespace caisson::launcher {
namespace {

constexpr const char* kSlotFile = "/run/caisson/slots";

// Root in a container may be root in name only; then the way of an ordinary user is taken.
Result<bool> HasHostPower() {
  if (geteuid() != 0) return false;
  // Root of a user namespace holds every capability, but not over the host.
  CAISSON_ASSIGN(const auto map, sys::ReadText(AT_FDCWD, "/proc/self/uid_map"));
  unsigned long inside = 1, outside = 1, count = 0;
  if (sscanf(map.c_str(), "%lu %lu %lu", &inside, &outside, &count) != 3 || inside != 0 ||
      outside != 0 || count != 4294967295)
    return false;
  CAISSON_ASSIGN(const auto state, sys::ReadCapabilities(getpid()));
  for (const int needed : {CAP_SYS_ADMIN, CAP_SETUID, CAP_SETGID, CAP_CHOWN, CAP_MKNOD,
                           CAP_DAC_OVERRIDE, CAP_KILL, CAP_SYS_PTRACE})
    if ((state.effective & sys::CapBit(needed)) == 0) return false;
  return true;
}

// An id-mapped mount as an overlay's lower layer: Linux 5.19.
bool KernelIsAtLeast(int wanted_major, int wanted_minor) {
  utsname name{};
  int major_version = 0, minor_version = 0;
  if (uname(&name) != 0 || sscanf(name.release, "%d.%d", &major_version, &minor_version) != 2)
    return false;
  return major_version > wanted_major ||
         (major_version == wanted_major && minor_version >= wanted_minor);
}

Status MakeDirectory(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) != 0 && errno != EEXIST)
    return Error::FromErrno("make the directory " + path);
  return {};
}

Status PrepareIds(Host& host) {
  CAISSON_ASSIGN(const bool power, HasHostPower());
  if (!power) {
    host.rootless = true;
    CAISSON_ASSIGN(host.ids, EnterRootless());
    return {};
  }
  CAISSON_TRY(MakeDirectory("/run/caisson", 0755));
  CAISSON_ASSIGN(auto slots, SlotTable::Open(kSlotFile));
  host.slots = std::make_unique<SlotTable>(std::move(slots));
  return {};
}

}  // namespace

Result<Host> PrepareHost(const HostOptions& options) {
  Host host;
  // The instance is known to the host before anything is made that could be left behind.
  CAISSON_ASSIGN(auto instance, Instance::Start(options.run_dir, options.state_dir));
  host.instance = std::make_unique<Instance>(std::move(instance));
  CAISSON_ASSIGN(host.cgroups, sys::CgroupTree::Open({}, {.instance = host.instance->id(),
                                                          .companions = {getppid()}}));
  // From here on an ordinary user is root in a user namespace.
  CAISSON_TRY(PrepareIds(host));
  host.state_dir = host.instance->state_directory();
  CAISSON_ASSIGN(auto dock,
                 Dock::Build(host.rootless ? Dock::Proc::kVisible : Dock::Proc::kAbsent));
  host.dock = std::make_unique<Dock>(std::move(dock));
  CAISSON_ASSIGN(auto gangway, Gangway::Reserve());
  host.gangway = std::make_unique<Gangway>(std::move(gangway));
  host.disks = ProbeDisks(host.state_dir);
  host.landlock_abi = sys::LandlockAbi();
  host.overlay_takes_id_maps = KernelIsAtLeast(5, 19);
  host.counts_processes_by_namespace = KernelIsAtLeast(5, 14);
  CAISSON_ASSIGN(host.namespaces, OwnNamespaces::Read());
  CAISSON_ASSIGN(
      host.init_program,
      sys::MakeSealedProgram(
          "caisson-init",
          {caisson_init_blob_begin,
           static_cast<size_t>(caisson_init_blob_end - caisson_init_blob_begin)},
          Ablated(Layer::kUnreadableInit) ? sys::Readable::kByAll : sys::Readable::kByNobody));
  // The copy in the memory file is the one that is used; ours need not stay in memory.
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t first =
      (reinterpret_cast<uintptr_t>(caisson_init_blob_begin) + page - 1) & ~(page - 1);
  const uintptr_t last = reinterpret_cast<uintptr_t>(caisson_init_blob_end) & ~(page - 1);
  if (last > first) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
  return host;
}

std::vector<wire::launcher::Fact> Host::Facts() const {
  std::vector<wire::launcher::Fact> facts;
  facts.push_back({"mode", rootless ? "rootless" : "root"});
  facts.push_back({"ids", ids.kind == IdPlan::Kind::kSlots ? "65536 of its own for each sandbox"
                          : ids.kind == IdPlan::Kind::kSubordinate
                              ? "65536 shared by this user's sandboxes"
                              : "the user's own id only"});
  facts.push_back({"cgroup_layout", std::string(NameOf(cgroups->layout()))});
  const bool by_rlimit =
      WallOf(*this, wire::launcher::Profile::kDefault) == ProcessWall::kCgroupOrRlimit;
  for (const auto& report : cgroups->controllers())
    facts.push_back(
        {"cgroup_" + std::string(NameOf(report.controller)),
         report.works ? report.by
         : report.controller == sys::Controller::kPids && by_rlimit
             ? std::string(kRlimitOfProcesses)
             : "absent: " + report.reason + (report.remedy.empty() ? "" : "; " + report.remedy)});
  for (const auto& probe : disks)
    facts.push_back({"disk_" + std::string(NameOf(probe.backend)),
                     (probe.works ? "" : "absent: ") + probe.detail});
  const auto bandwidth = sys::ResctrlGroup::Probe({});
  facts.push_back({"memory_bandwidth", bandwidth ? std::string(sys::ResctrlGroup::kBy)
                                                 : "absent: " + bandwidth.error().message()});
  facts.push_back({"landlock", sys::LandlockSummary(landlock_abi)});
  facts.push_back({"landlock_abi", std::to_string(landlock_abi)});
  facts.push_back({"seccomp_default", seccomp_default.digest() + ", " +
                                          std::to_string(seccomp_default.allowed_count()) +
                                          " calls"});
  facts.push_back(
      {"seccomp_strict",
       seccomp_strict.digest() + ", " + std::to_string(seccomp_strict.allowed_count()) + " calls"});
  return facts;
}

}  // namespace caisson::launcher
