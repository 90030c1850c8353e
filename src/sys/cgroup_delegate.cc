// Making the instance's directory in a hierarchy and, on v2, getting controllers handed down to it.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "sys/cgroup_internal.h"

namespace caisson::sys::internal {
namespace {

constexpr uint32_t kWanted = BitOf(Controller::kMemory) | BitOf(Controller::kCpu) |
                             BitOf(Controller::kPids) | BitOf(Controller::kIo);
constexpr Controller kV2Controllers[] = {Controller::kMemory, Controller::kCpu, Controller::kPids,
                                         Controller::kIo};

// The cgroup that the launcher was in before an earlier one of this product moved it to a leaf.
std::string OutOfLeaf(const std::string& own_dir, const std::string& mount_point) {
  const size_t leaf = own_dir.rfind('/');
  if (leaf == std::string::npos || leaf < mount_point.size() ||
      !std::string_view(own_dir).substr(leaf + 1).starts_with(kLeafPrefix))
    return own_dir;
  return own_dir.substr(0, leaf);
}

Error CannotUse(const std::string& dir, int error) {
  auto failure = Error::FromErrno("cannot make a group below " + dir, error);
  if (error == EACCES || error == EPERM) {
    return std::move(failure).WithRemedy(
        "run as root, or in a delegated cgroup v2 subtree: systemd-run --user --scope "
        "-p Delegate=yes");
  }
  if (error == EROFS) return std::move(failure).WithRemedy("remount the cgroup file system rw");
  if (error == ENOENT)
    return std::move(failure).WithRemedy("mount the cgroup file system where /proc says it is");
  return failure;
}

// Makes `caisson-<instance>` below hierarchy.base. An empty one of before is made anew, so that no
// limit or program of before stays on it.
Status MakeInstance(const CgroupHost& host, Hierarchy& hierarchy) {
  hierarchy.instance_fd.Reset();
  auto base = TryOpenDir(AT_FDCWD, hierarchy.base.c_str());
  if (!base) return CannotUse(hierarchy.base, errno);
  hierarchy.base_fd = *std::move(base);
  const char* name = hierarchy.instance_name.c_str();
  RemoveDir(host, hierarchy.base_fd.get(), name);
  const int error = MakeDir(host, hierarchy.base_fd.get(), name);
  if (error != 0 && error != EEXIST) return CannotUse(hierarchy.base, error);
  auto instance = TryOpenDir(hierarchy.base_fd.get(), name);
  if (!instance) return CannotUse(hierarchy.base, errno);
  hierarchy.instance_fd = *std::move(instance);
  if (::faccessat(hierarchy.instance_fd.get(), "cgroup.procs", W_OK, AT_EACCESS) != 0)
    return CannotUse(hierarchy.base, errno);
  return {};
}

uint32_t Listed(const GroupDir& dir, std::string_view file) {
  char buffer[512];
  const auto words = dir.TryRead(file, buffer);
  return words ? ControllersIn(*words, Version::k2) : 0;
}

struct Enabled {
  uint32_t now = 0;    // enabled for the children of the directory
  uint32_t added = 0;  // by this call
  int error = 0;       // of the last one that failed
};

// Whether the kernel would let children of `dir` have controllers: the real root always, any other
// cgroup only without processes of its own. With processes, memory and io are refused (EBUSY),
// while cpu and pids are accepted and turn the subtree into a threaded one, where no process can
// go.
bool MayHandDown(const GroupDir& dir) {
  if (!dir.Has("cgroup.type")) return true;
  const auto empty = IsEmpty(dir);
  return empty && *empty;
}

// Hands as many of `wanted` as possible down to the children of `dir`.
Enabled Enable(const GroupDir& dir, uint32_t wanted) {
  Enabled result;
  const uint32_t before = Listed(dir, "cgroup.subtree_control");
  if (!MayHandDown(dir)) {
    result.error = EBUSY;
    return result;
  }
  for (const Controller controller : kV2Controllers) {
    if ((wanted & ~before & BitOf(controller)) == 0) continue;
    const ShortText word = ShortText("+").Add(NameOf(controller));
    const int error = dir.TryWrite("cgroup.subtree_control", word.view());
    if (error != 0) result.error = error;
  }
  result.now = Listed(dir, "cgroup.subtree_control") & wanted;
  result.added = result.now & ~before;
  return result;
}

void Disable(const GroupDir& dir, uint32_t controllers) {
  for (const Controller controller : kV2Controllers) {
    if ((controllers & BitOf(controller)) == 0) continue;
    dir.TryWrite("cgroup.subtree_control", ShortText("-").Add(NameOf(controller)).view());
  }
}

// From the mount's root down to the parent of `base`: ancestors that may lack a controller only
// because nobody asked. Failures do not matter; what base offers is read afterwards.
void EnableAbove(const CgroupMount& mount, const std::string& base) {
  for (size_t end = mount.mount_point.size(); end < base.size();) {
    const std::string above = base.substr(0, end);
    if (const auto fd = TryOpenDir(AT_FDCWD, above.c_str())) Enable({fd->get(), "."}, kWanted);
    end = base.find('/', end + 1);
    if (end == std::string::npos) break;
  }
}

// Empties the base cgroup of those processes that may be moved, into the launcher's leaf.
Status MoveToLeaf(const CgroupHost& host, const CgroupOptions& options, Hierarchy& hierarchy) {
  const GroupDir base = {hierarchy.base_fd.get(), "."};
  CAISSON_ASSIGN(const std::vector<pid_t> present, ListProcesses(base));
  const auto may_move = [&](pid_t pid) {
    return pid > 0 && (options.bystanders == Bystanders::kMove || pid == ::getpid() ||
                       std::ranges::find(options.companions, pid) != options.companions.end());
  };
  const auto others = std::ranges::count_if(present, [&](pid_t pid) { return !may_move(pid); });
  if (others > 0) {
    return Error(ErrorCode::kConflict, hierarchy.base + " holds " + std::to_string(others) +
                                           " other processes, and a cgroup v2 with processes "
                                           "cannot hand controllers down");
  }
  const int error = MakeDir(host, hierarchy.base_fd.get(), hierarchy.leaf_name.c_str());
  if (error != 0 && error != EEXIST) return CannotUse(hierarchy.base, error);
  const GroupDir leaf = {hierarchy.base_fd.get(), hierarchy.leaf_name};
  for (const pid_t pid : present) {
    const ShortText number = ShortText().Add(static_cast<uint64_t>(pid));
    const int failed = leaf.TryWrite("cgroup.procs", number.view());
    if (failed != 0 && failed != ESRCH) {
      return Error::FromErrno("cannot move process " + std::to_string(pid) + " to " +
                                  hierarchy.base + "/" + hierarchy.leaf_name,
                              failed);
    }
    hierarchy.moved.push_back(pid);
  }
  return {};
}

void MoveBack(const CgroupHost& host, Hierarchy& hierarchy) {
  if (hierarchy.moved.empty()) return;
  Disable({hierarchy.instance_fd.get(), "."}, hierarchy.controllers);
  Disable({hierarchy.base_fd.get(), "."}, hierarchy.enabled);
  const auto present = ListProcesses({hierarchy.base_fd.get(), hierarchy.leaf_name});
  if (present) {
    for (const pid_t pid : *present) {
      if (pid <= 0) continue;
      TryWriteText(hierarchy.base_fd.get(), "cgroup.procs",
                   ShortText().Add(static_cast<uint64_t>(pid)).view());
    }
  }
  RemoveDir(host, hierarchy.base_fd.get(), hierarchy.leaf_name.c_str());
  hierarchy.moved.clear();
}

// Tries to make `base` hand its controllers down. True when at least one is; problem and remedy are
// about those that are not.
bool TryBase(const CgroupHost& host, const CgroupMount& mount, const CgroupOptions& options,
             const std::string& base, const std::string& own, Hierarchy& hierarchy) {
  hierarchy.base = base;
  if (const auto made = MakeInstance(host, hierarchy); !made) {
    hierarchy.problem = made.error().message();
    hierarchy.remedy = made.error().remedy();
    return false;
  }
  EnableAbove(mount, base);
  const GroupDir base_dir = {hierarchy.base_fd.get(), "."};
  const uint32_t offered = Listed(base_dir, "cgroup.controllers") & kWanted;
  Enabled enabled = Enable(base_dir, offered);
  if (enabled.error == EBUSY && base == own) {
    const auto moved = MoveToLeaf(host, options, hierarchy);
    if (moved) enabled = Enable(base_dir, offered);
    if (!moved) hierarchy.problem = moved.error().message();
  }
  hierarchy.enabled = enabled.added;
  if (enabled.now != 0) {
    const Enabled inner = Enable({hierarchy.instance_fd.get(), "."}, enabled.now);
    hierarchy.controllers = inner.now;
    if (inner.now != 0) {
      hierarchy.problem = base + " is not given this controller by the cgroup above it";
      hierarchy.remedy =
          "with systemd: Delegate=cpu io memory pids in the unit (for users: in user@.service)";
      return true;
    }
    enabled.error = inner.error;
  }
  if (hierarchy.problem.empty()) {
    hierarchy.problem =
        offered == 0 ? base + " offers no controllers"
                     : Error::FromErrno("cannot hand controllers down from " + base, enabled.error)
                           .message();
  }
  MoveBack(host, hierarchy);
  hierarchy.controllers = 0;
  return false;
}

}  // namespace

Result<std::unique_ptr<Hierarchy>> OpenV1(const CgroupHost& host, const CgroupMount& mount,
                                          const CgroupOptions& options) {
  auto hierarchy = std::make_unique<Hierarchy>();
  hierarchy->version = Version::k1;
  hierarchy->base = mount.own_dir;
  hierarchy->instance_name = std::string(kInstancePrefix) + options.instance;
  hierarchy->controllers = mount.controllers;
  CAISSON_TRY(MakeInstance(host, *hierarchy));
  hierarchy->has_swap_file =
      GroupDir{hierarchy->instance_fd.get(), "."}.Has("memory.memsw.limit_in_bytes");
  return hierarchy;
}

Result<std::unique_ptr<Hierarchy>> OpenV2(const CgroupHost& host, const CgroupMount& mount,
                                          const CgroupOptions& options) {
  auto hierarchy = std::make_unique<Hierarchy>();
  hierarchy->version = Version::k2;
  hierarchy->instance_name = std::string(kInstancePrefix) + options.instance;
  hierarchy->leaf_name = std::string(kLeafPrefix) + options.instance;
  const std::string own = OutOfLeaf(mount.own_dir, mount.mount_point);
  bool handed_down = false;
  std::string problem, remedy;
  if ((mount.controllers & kWanted) != 0) {
    for (std::string base = own; !handed_down; base.erase(base.rfind('/'))) {
      handed_down = TryBase(host, mount, options, base, own, *hierarchy);
      if (handed_down) break;
      if (problem.empty()) problem = hierarchy->problem, remedy = hierarchy->remedy;
      if (hierarchy->instance_fd)
        RemoveDir(host, hierarchy->base_fd.get(), hierarchy->instance_name.c_str());
      hierarchy->problem.clear();
      if (base.size() <= mount.mount_point.size()) break;
    }
  } else {
    problem = "no controller is left for cgroup v2: all are mounted as v1";
  }
  if (!handed_down) {  // still worth having for cgroup.kill, freezing and CLONE_INTO_CGROUP
    hierarchy->base = own;
    hierarchy->controllers = 0;
    hierarchy->problem = problem;
    hierarchy->remedy = !remedy.empty() ? remedy
                                        : "start Caisson in a cgroup of its own: systemd-run "
                                          "--scope -p Delegate=yes caisson ...";
    CAISSON_TRY(MakeInstance(host, *hierarchy));
  }
  const GroupDir instance = {hierarchy->instance_fd.get(), "."};
  char buffer[256];
  hierarchy->has_pressure = instance.TryRead("cpu.pressure", buffer).has_value();
  if (hierarchy->Serves(Controller::kMemory))
    hierarchy->has_swap_file = instance.Has("memory.swap.max");
  return hierarchy;
}

void Close(const CgroupHost& host, Hierarchy& hierarchy) {
  if (!hierarchy.instance_fd) return;
  MoveBack(host, hierarchy);
  RemoveDir(host, hierarchy.base_fd.get(), hierarchy.instance_name.c_str());
}

}  // namespace caisson::sys::internal
