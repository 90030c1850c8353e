#include "launcher/disk.h"

#include <sys/vfs.h>
#include <unistd.h>

#include <utility>

#include "launcher/detached_mount.h"
#include "launcher/disk_backends.h"
#include "sys/unique_fd.h"

namespace caisson::launcher {
namespace {

using sys::UniqueFd;

class TmpfsDisk final : public Disk {
 public:
  explicit TmpfsDisk(UniqueFd mount) : mount_(std::move(mount)) {}

  DiskBackend backend() const override { return DiskBackend::kTmpfs; }
  int mount_fd() const override { return mount_.get(); }
  Result<DiskStats> Stats() const override { return StatsOfFileSystem(mount_.get()); }

  Result<DiskStats> Resize(uint64_t bytes, uint64_t inodes) override {
    CAISSON_TRY(CheckDiskBounds(bytes, inodes));
    if (auto changed = Reconfigure(
            mount_.get(), {{"size", std::to_string(bytes)}, {"nr_inodes", std::to_string(inodes)}});
        !changed) {
      return std::move(changed)
          .error()
          .Because("resize the sandbox's tmpfs")
          .WithCode(ErrorCode::kLimitRefused)
          .WithRemedy("choose at least what is in use, or delete files in the sandbox first");
    }
    return Stats();
  }

 private:
  UniqueFd mount_;
};

}  // namespace

std::string_view NameOf(DiskBackend backend) {
  switch (backend) {
    case DiskBackend::kTmpfs:
      return "tmpfs";
    case DiskBackend::kLoop:
      return "loop";
    case DiskBackend::kQuota:
      return "quota";
  }
  return "unknown";
}

Status CheckDiskBounds(uint64_t bytes, uint64_t inodes) {
  if (bytes < kMinDiskBytes || bytes > kMaxDiskBytes) {
    return Error(ErrorCode::kLimitRefused, "a disk of " + std::to_string(bytes) + " bytes")
        .WithRemedy("choose between 1 MiB and 16 TiB");
  }
  if (inodes < kMinDiskInodes || inodes > kMaxDiskInodes) {
    return Error(ErrorCode::kLimitRefused, "a disk of " + std::to_string(inodes) + " inodes")
        .WithRemedy("choose between 64 and 2^31");
  }
  return {};
}

Result<DiskStats> StatsOfFileSystem(int fd) {
  struct statfs info;
  if (::fstatfs(fd, &info) != 0) return Error::FromErrno("statfs of the sandbox's disk");
  const auto unit = static_cast<uint64_t>(info.f_frsize != 0 ? info.f_frsize : info.f_bsize);
  return DiskStats{.bytes_limit = info.f_blocks * unit,
                   .bytes_used = (info.f_blocks - info.f_bfree) * unit,
                   .inodes_limit = info.f_files,
                   .inodes_used = info.f_files - info.f_ffree};
}

Result<std::unique_ptr<Disk>> CreateTmpfsDisk(const DiskRequest& request) {
  auto mount = MountDetached("tmpfs", {{"source", "sandbox"},
                                       {"size", std::to_string(request.bytes)},
                                       {"nr_inodes", std::to_string(request.inodes)},
                                       {"mode", "0755"},
                                       {"uid", std::to_string(request.owner_uid)},
                                       {"gid", std::to_string(request.owner_gid)}});
  if (!mount) return std::move(mount).error().Because("make the sandbox's tmpfs");
  return std::unique_ptr<Disk>(std::make_unique<TmpfsDisk>(*std::move(mount)));
}

DiskProbe ProbeTmpfs() {
  const DiskRequest request{.bytes = kMinDiskBytes,
                            .inodes = kMinDiskInodes,
                            .owner_uid = ::geteuid(),
                            .owner_gid = ::getegid()};
  auto disk = CreateTmpfsDisk(request);
  if (!disk) {
    const int number = disk.error().sys_errno();
    return {DiskBackend::kTmpfs, false,
            disk.error().message() +
                (number == EPERM ? "; needs root or an own user and mount namespace" : "")};
  }
  return {DiskBackend::kTmpfs, true,
          "tmpfs with size and inode limit; counts as the sandbox's memory"};
}

Result<std::unique_ptr<Disk>> Disk::Create(DiskBackend backend, const DiskRequest& request,
                                           const std::string& state_dir) {
  CAISSON_TRY(CheckDiskBounds(request.bytes, request.inodes));
  switch (backend) {
    case DiskBackend::kTmpfs:
      return CreateTmpfsDisk(request);
    case DiskBackend::kLoop:
      return CreateLoopDisk(request, state_dir);
    case DiskBackend::kQuota:
      return CreateQuotaDisk(request, state_dir);
  }
  return Error(ErrorCode::kInternal, "a disk backend that does not exist");
}

std::vector<DiskProbe> ProbeDisks(const std::string& state_dir) {
  return {ProbeTmpfs(), ProbeLoop(), ProbeQuota(state_dir)};
}

}  // namespace caisson::launcher
