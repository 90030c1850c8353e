#include "providers/native/host_root.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/sha256.h"
#include "providers/native/cache_dir.h"
#include "providers/native/host_etc.h"
#include "providers/native/skeleton.h"
#include "sys/mounts.h"
#include "sys/remove_tree.h"
#include "sys/unique_fd.h"

namespace caisson::native {
namespace {

using sys::UniqueFd;

// Counts up when the same host must give a different skeleton.
constexpr uint32_t kFormat = 1;
constexpr const char* kTopNames[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};
constexpr const char* kDpkg = "var/lib/dpkg";
constexpr size_t kMaxManifest = 8 << 20;
constexpr size_t kMaxPath = 4096;

// --- stamps ---------------------------------------------------------------------------------

// What of a file changes when its content, kind or rights do. ctime cannot be set back.
std::string StampOf(const struct stat& info) {
  std::string stamp;
  ByteWriter out(stamp);
  out.Int(static_cast<uint64_t>(info.st_dev));
  out.Int(static_cast<uint64_t>(info.st_ino));
  out.Int(static_cast<uint64_t>(info.st_size));
  out.Int(static_cast<uint32_t>(info.st_mode));
  for (const timespec& time : {info.st_mtim, info.st_ctim}) {
    out.Int(static_cast<int64_t>(time.tv_sec));
    out.Int(static_cast<int64_t>(time.tv_nsec));
  }
  return stamp;
}

// The digest of the stamps of all `paths` below the host's root, absent ones included.
std::string DigestOf(int host_root, const std::vector<std::string>& paths) {
  Sha256 sha;
  for (const std::string& path : paths) {
    struct stat info;
    sha.Update(::fstatat(host_root, path.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0
                   ? StampOf(info)
                   : std::string("-"));
  }
  return sha.HexDigest();
}

// Which boot this is; empty when the kernel does not say.
std::string BootId() {
  UniqueFd file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char text[64];
  const ssize_t size = file ? ::read(file.get(), text, sizeof text) : 0;
  std::string id(text, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  std::erase_if(id, [](unsigned char c) { return !std::isxdigit(c); });
  return id;
}

// --- the manifest: what the last build looked at, and what came of it --------------------------

struct Manifest {
  std::string identity;            // of the reader: format, boot, user, host root
  std::vector<std::string> paths;  // relative to the host's root
  std::string digest;              // of their stamps
  RootPlan plan;
};
constexpr const char* kManifestName = "host.manifest";

std::string Encode(const Manifest& manifest) {
  std::string text;
  ByteWriter out(text);
  out.Bytes(manifest.identity);
  out.List(manifest.paths, [&](const std::string& path) { out.Bytes(path); });
  out.Bytes(manifest.digest);
  out.Bytes(manifest.plan.key);
  out.List(manifest.plan.overlays, [&](const OverlaySource& overlay) {
    out.Bytes(overlay.inside);
    out.Bytes(overlay.outside);
  });
  return text;
}

std::optional<Manifest> ReadManifest(int cache_fd) {
  UniqueFd file(::openat(cache_fd, kManifestName, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info;
  if (!file || ::fstat(file.get(), &info) != 0 || info.st_uid != ::geteuid() ||
      info.st_size > static_cast<off_t>(kMaxManifest)) {
    return std::nullopt;
  }
  std::string text(static_cast<size_t>(info.st_size), '\0');
  if (::read(file.get(), text.data(), text.size()) != info.st_size) return std::nullopt;
  ByteReader in(text);
  Manifest manifest;
  manifest.identity = in.String(kMaxPath);
  in.List(100'000, [&] { manifest.paths.push_back(in.String(kMaxPath)); });
  manifest.digest = in.String(128);
  manifest.plan.key = in.String(128);
  in.List(16, [&] {
    std::string inside = in.String(kMaxPath);
    manifest.plan.overlays.push_back({std::move(inside), in.String(kMaxPath)});
  });
  if (!in.AtEnd() || manifest.plan.overlays.empty()) return std::nullopt;
  return manifest;
}

// --- scanning and building --------------------------------------------------------------------

struct HostScan {
  SkeletonPlan skeleton;
  std::vector<std::string> looked_at;
};

Status ScanTop(int host_root, HostScan& scan) {
  for (const char* name : kTopNames) {
    struct stat info;
    scan.looked_at.emplace_back(name);
    if (::fstatat(host_root, name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISDIR(info.st_mode)) scan.skeleton.mount_points.emplace_back(name);
    char target[256];
    const ssize_t size =
        S_ISLNK(info.st_mode) ? ::readlinkat(host_root, name, target, sizeof target) : 0;
    const std::string_view text(target, static_cast<size_t>(std::max<ssize_t>(size, 0)));
    if (!text.empty() && text.size() < sizeof target &&
        IsSystemLink(fmt::format("/{}", name), text))
      scan.skeleton.links.push_back({name, std::string(text)});
  }
  UniqueFd usr(sys::OpenBeneath(host_root, "usr/bin", O_RDONLY | O_DIRECTORY));
  if (!usr) {
    return Error(ErrorCode::kUnsupported,
                 "the host has no /usr/bin to show in the environment 'host'")
        .WithRemedy("give a directory or a tar file as the root");
  }
  scan.skeleton.mount_points.emplace_back("usr");
  scan.looked_at.emplace_back(kDpkg);
  UniqueFd dpkg(sys::OpenBeneath(host_root, kDpkg, O_RDONLY | O_DIRECTORY));
  if (dpkg) scan.skeleton.mount_points.emplace_back(kDpkg);
  return {};
}

Result<HostScan> ScanHost(int host_root) {
  HostScan scan;
  CAISSON_TRY(ScanTop(host_root, scan));
  CAISSON_ASSIGN(EtcScan etc, ScanHostEtc(host_root));
  scan.skeleton.etc = std::move(etc.items);
  for (const char* path : {"etc", "etc/passwd", "etc/group"}) scan.looked_at.emplace_back(path);
  std::ranges::move(etc.looked_at, std::back_inserter(scan.looked_at));
  std::ranges::sort(scan.looked_at);
  scan.looked_at.erase(std::ranges::unique(scan.looked_at).begin(), scan.looked_at.end());
  return scan;
}

// The name of what a scan leads to. Directories count by their presence only, so that a file which
// comes or goes beside the allow-list changes nothing.
std::string KeyOf(int host_root, const HostScan& scan, const std::string& identity) {
  Sha256 sha;
  const auto add = [&sha](std::string_view text) {
    sha.Update(text);
    sha.Update(std::string_view("\0", 1));
  };
  add(identity);
  for (const SkeletonLink& link : scan.skeleton.links) add(link.name), add(link.target);
  for (const std::string& mount_point : scan.skeleton.mount_points) add(mount_point);
  for (const EtcItem& item : scan.skeleton.etc) {
    add(item.path);
    add(item.target);
    if (item.kind == EtcItem::Kind::kFile) add(StampOf(item.info));
  }
  add(DigestOf(host_root, {"etc/passwd", "etc/group"}));
  return sha.HexDigest().substr(0, 24);
}

// Removes the skeletons of earlier boots.
void SweepOldBoots(int cache_fd, const std::string& prefix) {
  const int copy = ::openat(cache_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::unique_ptr<DIR, int (*)(DIR*)> dir(copy < 0 ? nullptr : ::fdopendir(copy), ::closedir);
  while (const dirent* entry = dir ? ::readdir(dir.get()) : nullptr) {
    const std::string_view name = entry->d_name;
    if (name.starts_with("host-") && !name.starts_with(prefix))
      (void)sys::RemoveTree(cache_fd, entry->d_name);
  }
}

RootPlan PlanOf(const HostScan& scan, const std::string& host_root,
                const std::string& skeleton_path, std::string key) {
  RootPlan plan{std::move(key), {{"/", skeleton_path}}};
  for (const std::string& mount_point : scan.skeleton.mount_points)
    plan.overlays.push_back(
        {"/" + mount_point, (host_root == "/" ? "/" : host_root + "/") + mount_point});
  return plan;
}

}  // namespace

Result<RootPlan> PrepareHostRoot(const std::string& cache_dir) {
  return PrepareHostRootFrom("/", cache_dir);
}

Result<RootPlan> PrepareHostRootFrom(const std::string& host_root, const std::string& cache_dir) {
  CAISSON_ASSIGN(const UniqueFd cache, OpenCacheDir(cache_dir));
  UniqueFd host(::open(host_root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!host) return Error::FromErrno("open the host's root " + host_root);
  const std::string boot = BootId();
  const std::string identity =
      fmt::format("{}\n{}\n{}\n{}\n{}", kFormat, boot, ::geteuid(), host_root, cache_dir);
  const std::string prefix = fmt::format("host-{}-", boot.substr(0, 12));

  if (const auto known = ReadManifest(cache.get());
      known && known->identity == identity && DigestOf(host.get(), known->paths) == known->digest &&
      FindEntry(cache.get(), known->plan.key) == CacheEntry::kPresent) {
    return known->plan;
  }

  // The digest is taken before the scan: what changes meanwhile makes the manifest stale, not
  // wrong.
  CAISSON_ASSIGN(const HostScan first, ScanHost(host.get()));
  const std::string digest = DigestOf(host.get(), first.looked_at);
  CAISSON_ASSIGN(const HostScan scan, ScanHost(host.get()));
  std::string key = prefix + KeyOf(host.get(), scan, identity);
  if (FindEntry(cache.get(), key) == CacheEntry::kAbsent) {
    if (!boot.empty()) SweepOldBoots(cache.get(), prefix);
    CAISSON_ASSIGN(DraftDir draft, DraftDir::Create(cache.get()));
    if (auto written = WriteSkeleton(draft.fd(), host.get(), scan.skeleton); !written)
      return std::move(written).error().Because("build the skeleton of the environment 'host'");
    CAISSON_TRY(std::move(draft).Commit(key));
  }
  RootPlan plan = PlanOf(scan, host_root, cache_dir + "/" + key, key);
  if (scan.looked_at == first.looked_at)
    CAISSON_TRY(WriteCacheFile(cache.get(), kManifestName,
                               Encode({identity, scan.looked_at, digest, plan})));
  return plan;
}

}  // namespace caisson::native
