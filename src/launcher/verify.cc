#include "launcher/verify.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "sys/capabilities.h"
#include "sys/text_file.h"
#include "sys/unique_fd.h"

namespace caisson::launcher {
namespace {

using wire::launcher::Fact;
using wire::launcher::Profile;

constexpr const char* kNamespaces[7] = {"ns/user", "ns/mnt", "ns/net",   "ns/pid",
                                        "ns/ipc",  "ns/uts", "ns/cgroup"};

Error Mismatch(std::string what) {
  return Error(ErrorCode::kIsolationFailed,
               "the new sandbox is not what was planned: " + std::move(what))
      .WithRemedy("run `caisson doctor`; this sandbox was killed before anything ran in it");
}

Status CheckStatus(int proc, const JailPlan& plan) {
  CAISSON_ASSIGN(const auto text, sys::ReadText(proc, "status"));
  CAISSON_ASSIGN(const auto state, sys::ParseCapabilities(text));
  const uint64_t held = plan.uid == 0 ? plan.capabilities : 0;
  if (state.effective != 0)
    return Mismatch("init has effective capabilities " + sys::CapabilityNames(state.effective));
  if (state.permitted != held)
    return Mismatch("init's permitted capabilities are " + sys::CapabilityNames(state.permitted));
  if (state.inheritable != 0 || state.ambient != 0)
    return Mismatch("inheritable or ambient capabilities are not empty");
  if ((state.bounding & ~plan.capabilities) != 0)
    return Mismatch("the bounding set is " + sys::CapabilityNames(state.bounding));
  if (!state.no_new_privs) return Mismatch("no_new_privs is not set");
  if (state.seccomp_mode != 2) return Mismatch("no seccomp filter is in force");
  const uint32_t id = plan.first_id + plan.uid;
  for (int i = 0; i < 4; ++i)
    if (state.uid[i] != id || state.gid[i] != id)
      return Mismatch("init runs as id " + std::to_string(state.uid[i]));
  return {};
}

Status CheckMap(int proc, const char* file, const JailPlan& plan, uint32_t count) {
  CAISSON_ASSIGN(const auto text, sys::ReadText(proc, file));
  unsigned long inside = 0, outside = 0, size = 0;
  if (sscanf(text.c_str(), "%lu %lu %lu", &inside, &outside, &size) != 3 ||
      outside != static_cast<uint32_t>(plan.first_id + inside) || size != count ||
      text.find('\n') + 1 != text.size())
    return Mismatch(std::string(file) + " is \"" + text + "\"");
  return {};
}

Status CheckNamespaces(int proc, const OwnNamespaces& own) {
  for (size_t i = 0; i < std::size(kNamespaces); ++i) {
    struct stat info{};
    if (fstatat(proc, kNamespaces[i], &info, 0) != 0)
      return Error::FromErrno(std::string("look at ") + kNamespaces[i]);
    if (info.st_ino == own.ids[i])
      return Mismatch(std::string(kNamespaces[i]) + " is the launcher's own");
  }
  return {};
}

Status CheckCgroup(int proc, const std::string& name) {
  if (name.empty()) return {};
  CAISSON_ASSIGN(const auto text, sys::ReadText(proc, "cgroup"));
  if (text.find("/" + name + "\n") == std::string::npos)
    return Mismatch("init is not in its cgroup " + name);
  return {};
}

// Init's descriptors: nothing that leads to the host.
Status CheckDescriptors(int proc) {
  sys::UniqueFd dir_fd(openat(proc, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* dir = dir_fd ? fdopendir(dir_fd.Release()) : nullptr;
  if (dir == nullptr) return Error::FromErrno("list init's descriptors");
  Status result;
  while (const dirent* entry = readdir(dir)) {
    if (entry->d_name[0] == '.') continue;
    char target[128];
    const ssize_t size = readlinkat(dirfd(dir), entry->d_name, target, sizeof target);
    if (size < 0) continue;  // closed meanwhile
    const std::string_view link(target, static_cast<size_t>(size));
    if (!link.starts_with("socket:") && !link.starts_with("anon_inode:") &&
        !link.starts_with("pipe:") && link != "/dev/null")
      result = Mismatch("init holds a descriptor of " + std::string(link));
  }
  closedir(dir);
  return result;
}

struct MountCount {
  size_t mounts = 0;
};
// Every mount: nosuid; nodev but for /dev; covers below /proc read-only, the root too in strict; no
// path of the host in sight.
Result<MountCount> CheckMounts(int proc, const JailPlan& plan) {
  CAISSON_ASSIGN(const auto text, sys::ReadText(proc, "mountinfo"));
  MountCount count;
  bool root_seen = false;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    std::string_view line = std::string_view(text).substr(at, end - at);
    at = end == std::string::npos ? text.size() : end + 1;
    ++count.mounts;
    std::string_view fields[6];
    for (auto& field : fields) {
      const size_t space = line.find(' ');
      field = line.substr(0, space);
      line.remove_prefix(space == std::string_view::npos ? line.size() : space + 1);
    }
    const std::string_view point = fields[4], options = fields[5];
    const bool device = point == "/dev" || point.starts_with("/dev/");
    if (options.find("nosuid") == std::string_view::npos && !(plan.rootless != 0 && device))
      return Mismatch("the mount at " + std::string(point) + " is not nosuid");
    if (!device && options.find("nodev") == std::string_view::npos)
      return Mismatch("the mount at " + std::string(point) + " is not nodev");
    if (point.starts_with("/proc/") && !options.starts_with("ro"))
      return Mismatch("the cover at " + std::string(point) + " is writable");
    if (point == "/") {
      root_seen = true;
      if (plan.profile == Profile::kStrict && !options.starts_with("ro"))
        return Mismatch("the root is writable");
      if (line.find("lowerdir=l0,") == std::string_view::npos)
        return Mismatch("the root is not the planned overlay");
    }
  }
  if (!root_seen) return Mismatch("the root is not a mount");
  return count;
}

}  // namespace

Result<OwnNamespaces> OwnNamespaces::Read() {
  OwnNamespaces own;
  for (size_t i = 0; i < std::size(kNamespaces); ++i) {
    struct stat info{};
    if (stat((std::string("/proc/self/") + kNamespaces[i]).c_str(), &info) != 0)
      return Error::FromErrno(std::string("look at /proc/self/") + kNamespaces[i]);
    own.ids[i] = info.st_ino;
  }
  return own;
}

Result<Verified> VerifyJail(pid_t pid, const JailPlan& plan, const OwnNamespaces& own,
                            const std::string& cgroup_name, uint32_t id_count) {
  sys::UniqueFd proc(
      open(("/proc/" + std::to_string(pid)).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!proc) return Error::FromErrno("look at the new sandbox's init");
  CAISSON_TRY(CheckStatus(proc.get(), plan));
  CAISSON_TRY(CheckMap(proc.get(), "uid_map", plan, id_count));
  CAISSON_TRY(CheckMap(proc.get(), "gid_map", plan, id_count));
  CAISSON_TRY(CheckNamespaces(proc.get(), own));
  CAISSON_TRY(CheckCgroup(proc.get(), cgroup_name));
  CAISSON_TRY(CheckDescriptors(proc.get()));
  CAISSON_ASSIGN(const auto mounts, CheckMounts(proc.get(), plan));
  Verified verified;
  verified.facts.push_back({"namespaces", "user,mnt,net,pid,ipc,uts,cgroup"});
  verified.facts.push_back(
      {"uid_range", std::to_string(plan.first_id) + "+" + std::to_string(id_count)});
  verified.facts.push_back(
      {"capabilities", sys::CapabilityNames(plan.uid == 0 ? plan.capabilities : 0)});
  verified.facts.push_back({"no_new_privs", "yes"});
  verified.facts.push_back({"mounts", std::to_string(mounts.mounts)});
  return verified;
}

}  // namespace caisson::launcher
