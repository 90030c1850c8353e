// Disks as directories with a project quota (ext4 or xfs mounted with `prjquota`).
//
// A Disk is the directory quota/p<id> of the state directory, whose project id is <id> and is
// inherited by everything made inside. The name is the reservation of the id: mkdir decides between
// two that want the same one. Ids are drawn at random from a range of 2^30 and must be without use
// and limit on the file system, so that other users of project quotas there stay untouched.
// Limits are set before the directory gets its id. Destroying moves the directory to trash/p<id>
// and removes it; when it is gone its limit is cleared.
#include <dirent.h>
#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <linux/fs.h>
#include <linux/quota.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "launcher/disk.h"
#include "launcher/disk_backends.h"
#include "sys/mounts.h"
#include "sys/remove_tree.h"
#include "sys/unique_fd.h"

namespace caisson::launcher {
namespace {

using sys::RemoveProgress;
using sys::UniqueFd;

constexpr uint32_t kFirstProject = uint32_t{1} << 30;
constexpr uint32_t kProjects = uint32_t{1} << 30;
constexpr int kProjectAttempts = 64;
constexpr uint64_t kQuotaUnit = 1024;      // of the limits in if_dqblk
constexpr uint64_t kInlineRemoval = 4096;  // files removed by a destructor; the rest is trash
#ifndef SYS_quotactl_fd
constexpr long SYS_quotactl_fd = 443;
#endif

int Quotactl(int fd, int command, uint32_t project, void* data) {
  return static_cast<int>(::syscall(SYS_quotactl_fd, fd, QCMD(command, PRJQUOTA), project, data));
}

Status SetLimits(int fd, uint32_t project, uint64_t bytes, uint64_t inodes) {
  if_dqblk limits{};
  limits.dqb_bhardlimit = bytes / kQuotaUnit;
  limits.dqb_ihardlimit = inodes;
  limits.dqb_valid = QIF_LIMITS;
  if (Quotactl(fd, Q_SETQUOTA, project, &limits) != 0)
    return Error::FromErrno("set a project quota");
  return {};
}

Result<if_dqblk> GetQuota(int fd, uint32_t project) {
  if_dqblk quota{};
  if (Quotactl(fd, Q_GETQUOTA, project, &quota) == 0 || errno == ENOENT) return quota;
  return Error::FromErrno("read a project quota");
}

std::string NameOfProject(uint32_t project) { return "p" + std::to_string(project); }

std::optional<uint32_t> ProjectOfName(const char* name) {
  if (*name++ != 'p') return std::nullopt;
  uint64_t value = 0;
  for (; *name != 0; ++name) {
    if (*name < '0' || *name > '9') return std::nullopt;
    value = value * 10 + static_cast<uint64_t>(*name - '0');
    if (value > UINT32_MAX) return std::nullopt;
  }
  if (value < kFirstProject || value - kFirstProject >= kProjects) return std::nullopt;
  return static_cast<uint32_t>(value);
}

Result<UniqueFd> OpenDir(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Error::FromErrno("mkdir " + path);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return Error::FromErrno("open " + path);
  return fd;
}

struct QuotaDirs {
  UniqueFd live;
  UniqueFd trash;
};

Result<QuotaDirs> OpenQuotaDirs(const std::string& state_dir) {
  CAISSON_ASSIGN(UniqueFd live, OpenDir(state_dir + "/quota"));
  CAISSON_ASSIGN(UniqueFd trash, OpenDir(state_dir + "/trash"));
  return QuotaDirs{std::move(live), std::move(trash)};
}

// Removes trash/p<id>, and frees the id once that is gone.
Result<RemoveProgress> RemoveFromTrash(int trash_fd, const char* name, uint64_t budget) {
  CAISSON_ASSIGN(const RemoveProgress progress, sys::RemoveTree(trash_fd, name, budget));
  if (const auto project = ProjectOfName(name); project && progress == RemoveProgress::kGone)
    (void)SetLimits(trash_fd, *project, 0, 0);  // a leftover limit without files harms nobody
  return progress;
}

// Calls `visit(name)` for each p<id> in a directory until it fails.
template <typename Visit>
Status ForEachProject(int dir_fd, Visit visit) {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(::fdopendir(::openat(dir_fd, ".", O_RDONLY | O_CLOEXEC)),
                                          ::closedir);
  if (!dir) return Error::FromErrno("list quota directories");
  while (const dirent* entry = ::readdir(dir.get())) {
    if (ProjectOfName(entry->d_name)) CAISSON_TRY(visit(entry->d_name));
  }
  return {};
}

class QuotaDisk final : public Disk {
 public:
  QuotaDisk(QuotaDirs dirs, uint32_t project, UniqueFd mount)
      : dirs_(std::move(dirs)), project_(project), mount_(std::move(mount)) {}

  ~QuotaDisk() override {
    mount_.Reset();
    const std::string name = NameOfProject(project_);
    if (::renameat(dirs_.live.get(), name.c_str(), dirs_.trash.get(), name.c_str()) != 0) return;
    (void)RemoveFromTrash(dirs_.trash.get(), name.c_str(), kInlineRemoval);
  }

  DiskBackend backend() const override { return DiskBackend::kQuota; }
  int mount_fd() const override { return mount_.get(); }

  Result<DiskStats> Stats() const override {
    CAISSON_ASSIGN(const if_dqblk quota, GetQuota(dirs_.live.get(), project_));
    return DiskStats{.bytes_limit = quota.dqb_bhardlimit * kQuotaUnit,
                     .bytes_used = quota.dqb_curspace,
                     .inodes_limit = quota.dqb_ihardlimit,
                     .inodes_used = quota.dqb_curinodes};
  }

  Result<DiskStats> Resize(uint64_t bytes, uint64_t inodes) override {
    CAISSON_TRY(CheckDiskBounds(bytes, inodes));
    CAISSON_ASSIGN(const DiskStats now, Stats());
    if (bytes < now.bytes_used || inodes < now.inodes_used) {
      return Error(ErrorCode::kLimitRefused, "the sandbox's disk holds " +
                                                 std::to_string(now.bytes_used) + " bytes in " +
                                                 std::to_string(now.inodes_used) + " inodes")
          .WithRemedy("choose at least what is in use, or delete files in the sandbox first");
    }
    CAISSON_TRY(SetLimits(dirs_.live.get(), project_, bytes, inodes));
    return Stats();
  }

 private:
  QuotaDirs dirs_;
  uint32_t project_;
  UniqueFd mount_;
};

// Reserves an id that nothing on the file system uses, by making its directory.
Result<uint32_t> ReserveProject(const QuotaDirs& dirs) {
  for (int attempt = 0; attempt < kProjectAttempts; ++attempt) {
    uint32_t random = 0;
    if (::getrandom(&random, sizeof random, 0) != sizeof random)
      return Error::FromErrno("getrandom");
    const uint32_t project = kFirstProject + random % kProjects;
    const std::string name = NameOfProject(project);
    struct stat info;
    if (::fstatat(dirs.trash.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0) continue;
    CAISSON_ASSIGN(const if_dqblk quota, GetQuota(dirs.live.get(), project));
    if (quota.dqb_curspace != 0 || quota.dqb_curinodes != 0 || quota.dqb_bhardlimit != 0) continue;
    if (::mkdirat(dirs.live.get(), name.c_str(), 0755) == 0) return project;
    if (errno != EEXIST) return Error::FromErrno("mkdir for a project quota");
  }
  return Error(ErrorCode::kResourceExhausted, "no free project id was found");
}

Status TagDirectory(int dir_fd, uint32_t project) {
  fsxattr attributes{};
  if (::ioctl(dir_fd, FS_IOC_FSGETXATTR, &attributes) != 0)
    return Error::FromErrno("FS_IOC_FSGETXATTR");
  attributes.fsx_projid = project;
  attributes.fsx_xflags |= FS_XFLAG_PROJINHERIT;
  if (::ioctl(dir_fd, FS_IOC_FSSETXATTR, &attributes) != 0)
    return Error::FromErrno("FS_IOC_FSSETXATTR");
  return {};
}

// Limits, tags and mounts the directory of a reserved project.
Result<UniqueFd> FurnishProject(const QuotaDirs& dirs, uint32_t project,
                                const DiskRequest& request) {
  CAISSON_TRY(SetLimits(dirs.live.get(), project, request.bytes, request.inodes));
  UniqueFd dir(::openat(dirs.live.get(), NameOfProject(project).c_str(),
                        O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!dir) return Error::FromErrno("open a quota directory");
  CAISSON_TRY(TagDirectory(dir.get(), project));
  if (::fchmod(dir.get(), 0755) != 0 ||
      ::fchown(dir.get(), request.owner_uid, request.owner_gid) != 0)
    return Error::FromErrno("chown a quota directory");
  const int mount = sys::CloneTree(dir.get(), "");
  if (mount < 0) return Error::FromErrno("open_tree of a quota directory", -mount);
  UniqueFd owned(mount);
  if (const int rc = sys::SetMountAttributes(mount, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, 0, -1);
      rc != 0)
    return Error::FromErrno("mount_setattr of a quota directory", -rc);
  return owned;
}

}  // namespace

Result<std::unique_ptr<Disk>> CreateQuotaDisk(const DiskRequest& request,
                                              const std::string& state_dir) {
  if (DiskProbe probe = ProbeQuota(state_dir); !probe.works)
    return Error(ErrorCode::kUnsupported, "project quota: " + probe.detail);
  CAISSON_ASSIGN(QuotaDirs dirs, OpenQuotaDirs(state_dir));
  CAISSON_ASSIGN(const uint32_t project, ReserveProject(dirs));
  auto mount = FurnishProject(dirs, project, request);
  // From here on the destructor gives everything back, also when the furnishing failed.
  if (!mount) {
    const QuotaDisk half_made(std::move(dirs), project, UniqueFd());
    return std::move(mount).error().Because("make the sandbox's quota disk");
  }
  return std::unique_ptr<Disk>(new QuotaDisk(std::move(dirs), project, *std::move(mount)));
}

DiskProbe ProbeQuota(const std::string& state_dir) {
  const auto no = [](std::string why) {
    return DiskProbe{DiskBackend::kQuota, false, std::move(why)};
  };
  UniqueFd dir(::open(state_dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir) return no(Error::FromErrno("open " + state_dir).message());
  fs_quota_stat state{};
  if (Quotactl(dir.get(), Q_XGETQSTAT, 0, &state) != 0 ||
      (state.qs_flags & FS_QUOTA_PDQ_ENFD) == 0) {
    return no("project quota is not on for the file system of " + state_dir +
              "; use ext4 (mkfs -O quota,project) or xfs, mounted with prjquota, and Linux 5.14 or "
              "newer");
  }
  if (::geteuid() != 0) return no("setting quotas needs root");
  return {DiskBackend::kQuota, true, "project quota on the file system of " + state_dir};
}

Result<RemoveProgress> EmptyDiskTrash(const std::string& state_dir, uint64_t budget) {
  UniqueFd trash(
      ::open((state_dir + "/trash").c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!trash && errno == ENOENT) return RemoveProgress::kGone;
  if (!trash) return Error::FromErrno("open " + state_dir + "/trash");
  RemoveProgress total = RemoveProgress::kGone;
  CAISSON_TRY(ForEachProject(trash.get(), [&](const char* name) -> Status {
    if (total == RemoveProgress::kUnfinished) return {};
    CAISSON_ASSIGN(total, RemoveFromTrash(trash.get(), name, budget));
    return {};
  }));
  return total;
}

Status SweepDisks(const std::string& state_dir) {
  if (UniqueFd loops(
          ::open((state_dir + "/loops").c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      loops) {
    std::unique_ptr<DIR, int (*)(DIR*)> dir(
        ::fdopendir(::openat(loops.get(), ".", O_RDONLY | O_CLOEXEC)), ::closedir);
    while (const dirent* entry = dir ? ::readdir(dir.get()) : nullptr) {
      if (std::strncmp(entry->d_name, "draft-", 6) == 0 ||
          std::strncmp(entry->d_name, "image-", 6) == 0)
        ::unlinkat(loops.get(), entry->d_name, 0);
    }
  }
  struct stat info;
  if (::stat((state_dir + "/quota").c_str(), &info) != 0 &&
      ::stat((state_dir + "/trash").c_str(), &info) != 0)
    return {};
  CAISSON_ASSIGN(QuotaDirs dirs, OpenQuotaDirs(state_dir));
  CAISSON_TRY(ForEachProject(dirs.live.get(), [&](const char* name) -> Status {
    if (::renameat(dirs.live.get(), name, dirs.trash.get(), name) != 0)
      return Error::FromErrno("move to the trash");
    return {};
  }));
  CAISSON_TRY(EmptyDiskTrash(state_dir, UINT64_MAX));
  return {};
}

}  // namespace caisson::launcher
