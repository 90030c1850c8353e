// Which cgroup hierarchies this host has mounted and where the caller sits in them.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "sys/cgroup_internal.h"

namespace caisson::sys::internal {
namespace {

constexpr size_t kMaxProcFile = 4 << 20;

// mountinfo(5) writes blanks and backslashes as three octal digits.
std::string Unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](size_t at) { return text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && i + 3 < text.size() && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      plain += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                 (text[i + 3] - '0'));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

struct MountLine {
  std::string root, mount_point, options;
  std::string_view type, super_options;
};

std::optional<MountLine> ParseMountLine(std::string_view line) {
  // 36 35 98:0 /root /mount/point rw,noatime [optional…] - type source super_options
  const size_t dash = line.find(" - ");
  if (dash == std::string_view::npos) return std::nullopt;
  std::string_view left = line.substr(0, dash), right = line.substr(dash + 3);
  for (int i = 0; i < 3; ++i) NextPiece(left, ' ');
  MountLine mount;
  mount.root = Unescape(NextPiece(left, ' '));
  mount.mount_point = Unescape(NextPiece(left, ' '));
  mount.options = NextPiece(left, ' ');
  mount.type = NextPiece(right, ' ');
  NextPiece(right, ' ');
  mount.super_options = right;
  return mount;
}

// The caller's path in the hierarchy, from /proc/self/cgroup ("4:memory:/path", "0::/path").
std::optional<std::string> OwnPath(std::string_view self_cgroup, Version version,
                                   std::string_view super_options) {
  while (!self_cgroup.empty()) {
    std::string_view line = NextPiece(self_cgroup, '\n');
    const std::string_view id = NextPiece(line, ':');
    std::string_view names = NextPiece(line, ':');
    if (version == Version::k2 ? (id == "0" && names.empty())
                               : (!names.empty() && HasWord(super_options, NextPiece(names, ','))))
      return std::string(line);
  }
  return std::nullopt;
}

// Turns mount root and cgroup path into the directory, or says why there is none.
void PlaceOwnDir(const MountLine& line, std::string_view path, CgroupMount& mount) {
  if (path.starts_with("/..")) {
    mount.problem = "the caller's cgroup is outside its cgroup namespace";
    return;
  }
  std::string_view below = path;
  if (line.root != "/") {  // a bind mount of a part of the hierarchy, as in containers
    if (!path.starts_with(line.root) ||
        (path.size() > line.root.size() && path[line.root.size()] != '/')) {
      mount.problem = "the caller's cgroup " + std::string(path) + " is not below " + line.root +
                      ", the part that is mounted at " + line.mount_point;
      return;
    }
    below.remove_prefix(line.root.size());
  }
  if (HasWord(line.options, "ro") || HasWord(line.super_options, "ro")) {
    mount.problem = "the cgroup file system at " + line.mount_point + " is mounted read-only";
    return;
  }
  mount.own_dir = line.mount_point;
  if (below != "/") mount.own_dir += below;
}

constexpr struct {
  Controller controller;
  std::string_view v1, v2;
} kNames[] = {
    {Controller::kMemory, "memory", "memory"}, {Controller::kCpu, "cpu", "cpu"},
    {Controller::kCpuAcct, "cpuacct", ""},     {Controller::kPids, "pids", "pids"},
    {Controller::kFreezer, "freezer", ""},     {Controller::kIo, "blkio", "io"},
    {Controller::kDevices, "devices", ""},
};

}  // namespace

int Deadline::Left(int at_most) const {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(at_ - std::chrono::steady_clock::now());
  if (left.count() <= 0) return 0;
  return left.count() < at_most ? static_cast<int>(left.count()) : at_most;
}

void BackOff(int attempt) {
  const long micros = attempt < 7 ? 50L << attempt : 5000L;
  const timespec pause = {0, micros * 1000};
  ::nanosleep(&pause, nullptr);
}

uint32_t ControllersIn(std::string_view words, Version version) {
  uint32_t found = 0;
  for (const auto& name : kNames) {
    const std::string_view word = version == Version::k1 ? name.v1 : name.v2;
    if (!word.empty() && HasWord(words, word)) found |= BitOf(name.controller);
  }
  return found;
}

std::vector<CgroupMount> ReadMounts(const CgroupHost& host) {
  std::vector<CgroupMount> mounts;
  const auto mount_text = ReadText(AT_FDCWD, (host.proc + "/self/mountinfo").c_str(), kMaxProcFile);
  const auto self_text = ReadText(AT_FDCWD, (host.proc + "/self/cgroup").c_str(), kMaxProcFile);
  if (!mount_text || !self_text) return mounts;
  std::string_view rest = *mount_text;
  while (!rest.empty()) {
    const auto line = ParseMountLine(NextPiece(rest, '\n'));
    if (!line || (line->type != "cgroup" && line->type != "cgroup2")) continue;
    CgroupMount mount;
    mount.version = line->type == "cgroup2" ? Version::k2 : Version::k1;
    mount.mount_point = line->mount_point;
    if (mount.version == Version::k1) {
      mount.controllers = ControllersIn(line->super_options, Version::k1);
      if (mount.controllers == 0) continue;  // name=systemd and controllers of no use here
    }
    const auto path = OwnPath(*self_text, mount.version, line->super_options);
    if (!path) {
      mount.problem = "/proc/self/cgroup does not name the hierarchy at " + mount.mount_point;
    } else {
      PlaceOwnDir(*line, *path, mount);
    }
    if (mount.version == Version::k2 && !mount.own_dir.empty()) {
      const auto words =
          ReadText(AT_FDCWD, (mount.mount_point + "/cgroup.controllers").c_str(), 4096);
      if (words) mount.controllers = ControllersIn(*words, Version::k2);
    }
    // The same hierarchy mounted twice: the first usable mount counts.
    bool known = false;
    for (auto& other : mounts) {
      if (other.version != mount.version) continue;
      if (mount.version == Version::k1 && (other.controllers & mount.controllers) == 0) continue;
      known = true;
      if (other.own_dir.empty() && !mount.own_dir.empty()) other = mount;
    }
    if (!known) mounts.push_back(std::move(mount));
  }
  return mounts;
}

std::optional<uint64_t> GroupDir::TryNumber(std::string_view file) const {
  char buffer[64];
  const auto text = TryRead(file, buffer);
  return text ? ParseNumber(*text) : std::nullopt;
}

bool GroupDir::Has(std::string_view file) const {
  return ::faccessat(parent, Path(file).c_str(), F_OK, 0) == 0;
}

int MakeDir(const CgroupHost& host, int dir_fd, const char* name) {
  if (host.make_dir) return host.make_dir(dir_fd, name);
  return ::mkdirat(dir_fd, name, 0755) == 0 ? 0 : errno;
}

int RemoveDir(const CgroupHost& host, int dir_fd, const char* name) {
  if (host.remove_dir) return host.remove_dir(dir_fd, name);
  return ::unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 ? 0 : errno;
}

Result<dev_t> WholeDisk(const CgroupHost& host, dev_t device) {
  const auto number = std::to_string(major(device)) + ":" + std::to_string(minor(device));
  const std::string node = host.sys + "/dev/block/" + number;
  if (::access(node.c_str(), F_OK) != 0) {
    return Error(ErrorCode::kLimitRefused,
                 "device " + number + " is not a block device, so its I/O rate cannot be limited")
        .WithRemedy("keep the sandboxes' files on a disk (not tmpfs or a virtual file system)");
  }
  if (::access((node + "/partition").c_str(), F_OK) != 0) return device;
  CAISSON_ASSIGN(const std::string text, ReadText(AT_FDCWD, (node + "/../dev").c_str(), 64));
  std::string_view rest = FirstLine(text);
  const auto disk_major = ParseNumber(NextPiece(rest, ':')), disk_minor = ParseNumber(rest);
  if (!disk_major || !disk_minor)
    return Error(ErrorCode::kIo, "cannot tell which disk the partition " + number + " is on");
  return makedev(static_cast<unsigned>(*disk_major), static_cast<unsigned>(*disk_minor));
}

}  // namespace caisson::sys::internal

namespace caisson::sys {

std::string_view NameOf(CgroupLayout layout) {
  switch (layout) {
    case CgroupLayout::kNone:
      return "none";
    case CgroupLayout::kV1:
      return "v1";
    case CgroupLayout::kV2:
      return "v2";
    case CgroupLayout::kHybrid:
      return "hybrid";
  }
  return "unknown";
}

std::string_view NameOf(Controller controller) {
  for (const auto& name : internal::kNames)
    if (name.controller == controller) return controller == Controller::kIo ? "io" : name.v1;
  return "unknown";
}

}  // namespace caisson::sys
