// Disks on loop devices.
//
// mkfs.ext4 runs once per size and leaves a template, a sparse file with a few hundred KiB of real
// data. A Disk is a copy of the template's data in a file without a name (O_TMPFILE), a loop
// device on it with autoclear, and an ext4 mounted from that. Nothing in this chain outlives its
// last user: when the process and the sandbox's mount namespace are gone, so are device and file.
//
// Nothing here survives a reboot on purpose, so there is no journal and no barrier: an fsync inside
// a sandbox does not make the host's disk flush.
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <poll.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "launcher/detached_mount.h"
#include "launcher/disk.h"
#include "launcher/disk_backends.h"
#include "sys/process.h"
#include "sys/unique_fd.h"

namespace caisson::launcher {
namespace {

using sys::UniqueFd;

constexpr char kTemplatePrefix[] = "template-1-";  // the number is the format's
constexpr size_t kMaxTemplates = 32;
constexpr int kLoopAttempts = 64;  // others may take the device between asking and opening
constexpr int kMkfsTimeoutMs = 60'000;
constexpr uint64_t kBlock = 4096;
constexpr uint64_t kGroup = kBlock * 8 * kBlock;                  // what one bitmap block describes
constexpr unsigned long kExt4ResizeFs = _IOW('f', 16, uint64_t);  // EXT4_IOC_RESIZE_FS

// --- the template ---------------------------------------------------------------------------

std::string FindMkfs() {
  for (const char* path : {"/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4", "/usr/bin/mkfs.ext4",
                           "/usr/sbin/mke2fs", "/sbin/mke2fs", "/usr/bin/mke2fs"}) {
    if (::access(path, X_OK) == 0) return path;
  }
  return {};
}

Error NoMkfs() {
  return Error(ErrorCode::kUnsupported, "mkfs.ext4 is not installed")
      .WithRemedy("install the package e2fsprogs");
}

// The last words of a program whose stderr went to `fd`, as one line.
std::string LastWords(int fd) {
  char text[512];
  const off_t end = ::lseek(fd, 0, SEEK_END);
  const off_t start = std::max<off_t>(0, end - static_cast<off_t>(sizeof text));
  const ssize_t size = ::pread(fd, text, sizeof text, start);
  std::string words;
  for (ssize_t i = 0; i < size; ++i) {
    const bool space = static_cast<unsigned char>(text[i]) <= ' ';
    if (!space)
      words += text[i];
    else if (!words.empty() && words.back() != ' ')
      words += ' ';
  }
  return words;
}

// Waits for a child of ours, killing it after the timeout. The wait status, or an Error.
Result<int> WaitFor(pid_t pid, int timeout_ms) {
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  const uint64_t deadline = sys::MonotonicNs() + uint64_t(timeout_ms) * 1'000'000;
  bool in_time = false;
  for (uint64_t now; pidfd && (now = sys::MonotonicNs()) < deadline;) {
    pollfd ended{pidfd.get(), POLLIN, 0};
    const int rc = ::poll(&ended, 1, static_cast<int>((deadline - now) / 1'000'000) + 1);
    if ((in_time = rc > 0) || (rc < 0 && errno != EINTR)) break;
  }
  if (!in_time) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) return Error(ErrorCode::kDeadlineExceeded, "mkfs.ext4 did not end in time");
  return status;
}

Status RunMkfs(const std::string& image, uint64_t inodes) {
  const std::string program = FindMkfs();
  if (program.empty()) return NoMkfs();
  UniqueFd errors(::memfd_create("mkfs", MFD_CLOEXEC));
  if (!errors) return Error::FromErrno("memfd_create");
  const std::string count = std::to_string(inodes);
  // Every choice is spelled out, so that the host's mke2fs.conf has no say.
  const char* argv[] = {program.c_str(),
                        "-q",
                        "-F",
                        "-b",
                        "4096",
                        "-I",
                        "256",
                        "-m",
                        "0",
                        "-N",
                        count.c_str(),
                        "-O",
                        "none,ext_attr,dir_index,filetype,sparse_super,large_file,huge_file,extent,"
                        "flex_bg,uninit_bg,dir_nlink,extra_isize,resize_inode",
                        "-E",
                        "nodiscard,lazy_itable_init=1",
                        image.c_str(),
                        nullptr};
  const char* env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "MKE2FS_CONFIG=/dev/null",
                       nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&files, errors.get(), 1);
  posix_spawn_file_actions_adddup2(&files, errors.get(), 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, program.c_str(), &files, &attributes,
                                   const_cast<char**>(argv), const_cast<char**>(env));
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return Error::FromErrno("run " + program, failed);
  CAISSON_ASSIGN(const int status, WaitFor(pid, kMkfsTimeoutMs));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return Error(ErrorCode::kLimitRefused, "mkfs.ext4: " + LastWords(errors.get()))
      .WithRemedy("choose fewer inodes or more bytes");
}

// Keeps the number of templates bounded, whatever sizes are asked for: the oldest one goes.
void PruneTemplates(int loops_fd) {
  std::unique_ptr<DIR, int (*)(DIR*)> dir(
      ::fdopendir(::openat(loops_fd, ".", O_RDONLY | O_CLOEXEC)), ::closedir);
  if (!dir) return;
  size_t count = 0;
  std::string oldest;
  timespec oldest_time{};
  while (const dirent* entry = ::readdir(dir.get())) {
    struct stat info;
    if (std::strncmp(entry->d_name, kTemplatePrefix, std::strlen(kTemplatePrefix)) != 0) continue;
    if (::fstatat(loops_fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    ++count;
    const timespec& t = info.st_mtim;
    if (oldest.empty() ||
        std::pair(t.tv_sec, t.tv_nsec) < std::pair(oldest_time.tv_sec, oldest_time.tv_nsec)) {
      oldest = entry->d_name;
      oldest_time = t;
    }
  }
  if (count >= kMaxTemplates) ::unlinkat(loops_fd, oldest.c_str(), 0);
}

Result<UniqueFd> OpenLoopsDir(const std::string& state_dir) {
  const std::string path = state_dir + "/loops";
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Error::FromErrno("mkdir " + path);
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return Error::FromErrno("open " + path);
  return fd;
}

// The template for this size, opened for reading; made first if it does not exist.
Result<UniqueFd> OpenTemplate(const DiskRequest& request, const std::string& state_dir,
                              int loops_fd) {
  const std::string name =
      kTemplatePrefix + std::to_string(request.bytes) + "-" + std::to_string(request.inodes);
  UniqueFd image(::openat(loops_fd, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (image) return image;
  if (errno != ENOENT) return Error::FromErrno("open the template " + name);
  PruneTemplates(loops_fd);
  const std::string draft = "draft-" + std::to_string(::getpid());
  image.Reset(
      ::openat(loops_fd, draft.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!image) return Error::FromErrno("create " + state_dir + "/loops/" + draft);
  Status made;
  if (::ftruncate(image.get(), static_cast<off_t>(request.bytes / kBlock * kBlock)) != 0) {
    made = Error::FromErrno("size the disk image").WithCode(ErrorCode::kLimitRefused);
  } else {
    made = RunMkfs(state_dir + "/loops/" + draft, request.inodes);
  }
  // Whoever comes second replaces an equal template.
  if (made && ::renameat(loops_fd, draft.c_str(), loops_fd, name.c_str()) != 0)
    made = Error::FromErrno("rename the template " + name);
  if (!made) {
    ::unlinkat(loops_fd, draft.c_str(), 0);
    return std::move(made).error();
  }
  return image;
}

// --- the image ------------------------------------------------------------------------------

Result<UniqueFd> NamelessFile(int loops_fd) {
  UniqueFd file(::openat(loops_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) return file;
  if (errno != EOPNOTSUPP && errno != EISDIR) return Error::FromErrno("create a disk image");
  const std::string name = "image-" + std::to_string(::getpid());
  file.Reset(
      ::openat(loops_fd, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return Error::FromErrno("create a disk image");
  ::unlinkat(loops_fd, name.c_str(), 0);
  return file;
}

// Copies the data of a sparse file and leaves its holes.
Status CopySparse(int from, int to) {
  if (::ioctl(to, FICLONE, from) == 0) return {};
  struct stat info;
  if (::fstat(from, &info) != 0 || ::ftruncate(to, info.st_size) != 0)
    return Error::FromErrno("size a disk image");
  alignas(4096) static char buffer[64 * 1024];
  for (off_t at = 0; (at = ::lseek(from, at, SEEK_DATA)) >= 0;) {
    const off_t end = ::lseek(from, at, SEEK_HOLE);
    if (end < 0) return Error::FromErrno("copy a disk image");
    while (at < end) {
      const auto want = static_cast<size_t>(std::min<off_t>(end - at, sizeof buffer));
      const ssize_t got = ::pread(from, buffer, want, at);
      if (got <= 0 || ::pwrite(to, buffer, static_cast<size_t>(got), at) != got)
        return Error::FromErrno("copy a disk image");
      at += got;
    }
  }
  return errno == ENXIO ? Status() : Error::FromErrno("copy a disk image");
}

// --- the device -----------------------------------------------------------------------------

struct LoopDevice {
  UniqueFd fd;
  std::string path;
};

Result<LoopDevice> AttachLoop(int image) {
  UniqueFd control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control) {
    return Error::FromErrno("open /dev/loop-control")
        .WithCode(ErrorCode::kUnsupported)
        .WithRemedy("load the kernel module loop, and run as root");
  }
  for (int attempt = 0; attempt < kLoopAttempts; ++attempt) {
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) {
      return Error::FromErrno("find a free loop device").WithCode(ErrorCode::kResourceExhausted);
    }
    LoopDevice device{{}, "/dev/loop" + std::to_string(number)};
    device.fd.Reset(::open(device.path.c_str(), O_RDWR | O_CLOEXEC));
    if (!device.fd)
      return Error::FromErrno("open " + device.path).WithCode(ErrorCode::kResourceExhausted);
    loop_config config{};
    config.fd = static_cast<uint32_t>(image);
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    std::strncpy(reinterpret_cast<char*>(config.info.lo_file_name), "caisson", LO_NAME_SIZE - 1);
    if (::ioctl(device.fd.get(), LOOP_CONFIGURE, &config) == 0) return device;
    if (errno == EINVAL || errno == ENOTTY) {
      return Error::FromErrno("LOOP_CONFIGURE")
          .WithCode(ErrorCode::kUnsupported)
          .WithRemedy("use Linux 5.8 or newer");
    }
    if (errno != EBUSY) return Error::FromErrno("attach " + device.path);
  }
  return Error(ErrorCode::kResourceExhausted, "every free loop device was taken by somebody else");
}

class LoopDisk final : public Disk {
 public:
  LoopDisk(UniqueFd image, UniqueFd device, UniqueFd mount)
      : image_(std::move(image)), device_(std::move(device)), mount_(std::move(mount)) {}

  DiskBackend backend() const override { return DiskBackend::kLoop; }
  int mount_fd() const override { return mount_.get(); }
  Result<DiskStats> Stats() const override { return StatsOfFileSystem(mount_.get()); }
  Result<DiskStats> Resize(uint64_t bytes, uint64_t inodes) override;

 private:
  // Gives image and device this size; on failure the caller puts the old one back.
  Status SetDeviceSize(uint64_t bytes) {
    if (::ftruncate(image_.get(), static_cast<off_t>(bytes)) != 0)
      return Error::FromErrno("size the disk image");
    if (::ioctl(device_.get(), LOOP_SET_CAPACITY) != 0)
      return Error::FromErrno("LOOP_SET_CAPACITY");
    return {};
  }

  UniqueFd image_;
  UniqueFd device_;
  UniqueFd mount_;  // goes first, so that the device is idle when its descriptor closes
};

Result<DiskStats> LoopDisk::Resize(uint64_t bytes, uint64_t inodes) {
  CAISSON_TRY(CheckDiskBounds(bytes, inodes));
  struct stat info;
  if (::fstat(image_.get(), &info) != 0) return Error::FromErrno("stat the disk image");
  const auto old_bytes = static_cast<uint64_t>(info.st_size);
  const uint64_t new_bytes = bytes / kBlock * kBlock;
  CAISSON_ASSIGN(const DiskStats before, Stats());
  if (new_bytes < old_bytes) {
    return Error(ErrorCode::kLimitRefused, "a loop disk in use cannot shrink from " +
                                               std::to_string(old_bytes) + " to " +
                                               std::to_string(new_bytes) + " bytes")
        .WithRemedy("make a new sandbox with the smaller disk");
  }
  if (new_bytes == old_bytes && inodes <= before.inodes_limit) return before;
  // Inodes come with whole block groups, so they cannot grow faster than the bytes do.
  const auto groups = [](uint64_t size) { return (size + kGroup - 1) / kGroup; };
  const uint64_t reachable = before.inodes_limit / groups(old_bytes) * groups(new_bytes);
  if (inodes > reachable) {
    return Error(ErrorCode::kLimitRefused, "a loop disk of " + std::to_string(new_bytes) +
                                               " bytes gets " + std::to_string(reachable) +
                                               " inodes, not " + std::to_string(inodes))
        .WithRemedy("grow the bytes as well, or make a new sandbox with more inodes");
  }
  Status grown = SetDeviceSize(new_bytes);
  if (grown) {
    uint64_t blocks = new_bytes / kBlock;
    UniqueFd root(::openat(mount_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!root || ::ioctl(root.get(), kExt4ResizeFs, &blocks) != 0) {
      grown = Error::FromErrno("grow the ext4");
      if (grown.error().sys_errno() == EPERM)
        grown = std::move(grown).error().WithRemedy(
            "run the launcher with CAP_SYS_RESOURCE, or make a new sandbox");
    }
  }
  if (!grown) {
    (void)SetDeviceSize(old_bytes);  // the error that is reported is the first one
    return std::move(grown)
        .error()
        .WithCode(ErrorCode::kLimitRefused)
        .Because("resize the sandbox's loop disk");
  }
  return Stats();
}

}  // namespace

Status PrepareLoopTemplate(const DiskRequest& request, const std::string& state_dir) {
  CAISSON_TRY(CheckDiskBounds(request.bytes, request.inodes));
  CAISSON_ASSIGN(const UniqueFd loops, OpenLoopsDir(state_dir));
  CAISSON_TRY(OpenTemplate(request, state_dir, loops.get()));
  return {};
}

Result<std::unique_ptr<Disk>> CreateLoopDisk(const DiskRequest& request,
                                             const std::string& state_dir) {
  CAISSON_ASSIGN(const UniqueFd loops, OpenLoopsDir(state_dir));
  CAISSON_ASSIGN(const UniqueFd original, OpenTemplate(request, state_dir, loops.get()));
  CAISSON_ASSIGN(UniqueFd image, NamelessFile(loops.get()));
  CAISSON_TRY(CopySparse(original.get(), image.get()));
  CAISSON_ASSIGN(LoopDevice device, AttachLoop(image.get()));
  auto mount = MountDetached("ext4", {{"source", device.path},
                                      {"errors", "remount-ro"},
                                      {"barrier", "0"},
                                      {"noinit_itable", ""},
                                      {"nodiscard", ""}});
  if (!mount) return std::move(mount).error().Because("mount the sandbox's loop disk");
  ::unlinkat(mount->get(), "lost+found", AT_REMOVEDIR);
  if (::fchownat(mount->get(), "", request.owner_uid, request.owner_gid, AT_EMPTY_PATH) != 0)
    return Error::FromErrno("chown the root of the sandbox's loop disk");
  return std::unique_ptr<Disk>(
      std::make_unique<LoopDisk>(std::move(image), std::move(device.fd), *std::move(mount)));
}

DiskProbe ProbeLoop() {
  const auto no = [](std::string why) {
    return DiskProbe{DiskBackend::kLoop, false, std::move(why)};
  };
  if (FindMkfs().empty()) return no("mkfs.ext4 is not installed; install the package e2fsprogs");
  UniqueFd context(static_cast<int>(::syscall(SYS_fsopen, "ext4", FSOPEN_CLOEXEC)));
  if (!context) return no(Error::FromErrno("this process cannot mount ext4").message());
  UniqueFd image(::memfd_create("probe", MFD_CLOEXEC));
  if (!image || ::ftruncate(image.get(), kMinDiskBytes) != 0)
    return no(Error::FromErrno("memfd").message());
  auto device = AttachLoop(image.get());
  if (!device) {
    const Error& error = device.error();
    return no(error.message() + (error.remedy().empty() ? "" : "; " + error.remedy()));
  }
  return {DiskBackend::kLoop, true, "ext4 in sparse files behind loop devices"};
}

}  // namespace caisson::launcher
