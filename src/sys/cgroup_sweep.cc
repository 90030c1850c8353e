// Finding and clearing what instances left behind, in every hierarchy of the host.
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "sys/cgroup.h"
#include "sys/cgroup_internal.h"

namespace caisson::sys {

using internal::CgroupMount;
using internal::Deadline;
using internal::GroupDir;
using internal::kInstancePrefix;
using internal::kLeafPrefix;
using internal::Version;

namespace {

constexpr int kMaxDepth = 24;
constexpr size_t kMaxDirs = 200'000;

std::vector<std::string> SubDirs(const std::string& path) {
  std::vector<std::string> names;
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return names;
  DIR* const dir = ::fdopendir(fd);
  if (!dir) {
    ::close(fd);
    return names;
  }
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(dir);
  return names;
}

// The instance directories of one hierarchy; does not look inside them.
std::vector<std::string> FindInstances(const std::string& mount_point) {
  std::vector<std::string> found;
  std::vector<std::pair<std::string, int>> pending = {{mount_point, 0}};
  for (size_t seen = 0; !pending.empty() && seen < kMaxDirs; ++seen) {
    const auto [path, depth] = std::move(pending.back());
    pending.pop_back();
    for (const std::string& name : SubDirs(path)) {
      std::string below = path + "/" + name;
      if (name.starts_with(kInstancePrefix)) {
        found.push_back(std::move(below));
      } else if (depth < kMaxDepth) {
        pending.emplace_back(std::move(below), depth + 1);
      }
    }
  }
  return found;
}

std::string_view LeafOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

// The directory and all below it, the deepest first.
void Collect(const std::string& path, int depth, std::vector<std::string>& paths) {
  if (depth < kMaxDepth)
    for (const std::string& name : SubDirs(path)) Collect(path + "/" + name, depth + 1, paths);
  paths.push_back(path);
}

class Sweeper {
 public:
  Sweeper(const CgroupHost& host, std::chrono::milliseconds deadline)
      : host_(host), deadline_(deadline) {}

  // Kills and removes one instance's directory.
  void Sweep(const CgroupMount& mount, const std::string& instance) {
    std::vector<std::string> paths;
    Collect(instance, 0, paths);
    for (const std::string& path : paths) {
      const auto fd = TryOpenDir(AT_FDCWD, path.c_str());
      if (!fd) continue;
      const GroupDir dir = {fd->get(), "."};
      Kill(mount, dir);
      if ((mount.controllers & internal::BitOf(Controller::kMemory)) != 0)
        internal::DialectOf(mount.version).Reclaim(dir);
      Remove(path);
    }
    // The launcher's leaf beside it may hold a live server; then it stays.
    const size_t slash = instance.rfind('/');
    const auto base = TryOpenDir(AT_FDCWD, instance.substr(0, slash).c_str());
    const std::string leaf =
        std::string(kLeafPrefix) + instance.substr(slash + 1 + kInstancePrefix.size());
    if (base) internal::RemoveDir(host_, base->get(), leaf.c_str());
  }

  Status Outcome() const {
    if (problems_.empty()) return {};
    return Error(ErrorCode::kDeadlineExceeded, "the sweep left something behind: " + problems_)
        .WithRemedy("sweep again; a process in uninterruptible sleep has to end first");
  }

 private:
  void Kill(const CgroupMount& mount, const GroupDir& dir) {
    const bool freezer = (mount.controllers & internal::BitOf(Controller::kFreezer)) != 0 &&
                         mount.version == Version::k1;
    const auto killed =
        internal::KillGroup(dir, mount.version, freezer ? &dir : nullptr, deadline_);
    if (!killed) Note(killed.error().message());
  }

  void Remove(const std::string& path) {
    const size_t slash = path.rfind('/');
    const auto parent = TryOpenDir(AT_FDCWD, path.substr(0, slash).c_str());
    for (int attempt = 0; parent; ++attempt) {
      const int error = internal::RemoveDir(host_, parent->get(), path.substr(slash + 1).c_str());
      if (error == 0 || error == ENOENT) return;
      if (error == EBUSY && !deadline_.Passed()) {
        internal::BackOff(attempt);
        continue;
      }
      Note(Error::FromErrno("cannot remove " + path, error).message());
      return;
    }
  }

  void Note(const std::string& problem) {
    if (problems_.size() > 500) return;
    if (!problems_.empty()) problems_ += "; ";
    problems_ += problem;
  }

  const CgroupHost& host_;
  Deadline deadline_;
  std::string problems_;
};

}  // namespace

std::vector<std::string> CgroupTree::ListInstances(const CgroupHost& host) {
  std::set<std::string> names;
  for (const CgroupMount& mount : internal::ReadMounts(host))
    for (const std::string& path : FindInstances(mount.mount_point))
      names.emplace(LeafOf(path).substr(kInstancePrefix.size()));
  return {names.begin(), names.end()};
}

Status CgroupTree::SweepInstance(const CgroupHost& host, std::string_view instance,
                                 std::chrono::milliseconds deadline) {
  Sweeper sweeper(host, deadline);
  const std::string wanted = std::string(kInstancePrefix).append(instance);
  std::vector<CgroupMount> mounts = internal::ReadMounts(host);
  // v2 first: cgroup.kill ends in one write what the v1 loop would hunt. Then v1's freezer: a
  // frozen process dies only when thawed there.
  std::ranges::sort(mounts, std::less(), [](const CgroupMount& mount) {
    if (mount.version == Version::k2) return 0;
    return (mount.controllers & internal::BitOf(Controller::kFreezer)) != 0 ? 1 : 2;
  });
  for (const CgroupMount& mount : mounts)
    for (const std::string& path : FindInstances(mount.mount_point))
      if (LeafOf(path) == wanted) sweeper.Sweep(mount, path);
  return sweeper.Outcome();
}

}  // namespace caisson::sys
