#include "launcher/disk_layout.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace caisson::launcher {
namespace {

class Furnisher {
 public:
  Furnisher(int disk, uint32_t first_id) : disk_(disk), first_id_(first_id) {}

  // A directory owned by uid `owner` inside.
  void Directory(const std::string& path, mode_t mode, uint32_t owner) {
    if (error_ != 0) return;
    if (mkdirat(disk_, path.c_str(), 0700) != 0 && errno != EEXIST) return Fail();
    Own(path, owner);
    if (error_ == 0 && fchmodat(disk_, path.c_str(), mode, 0) != 0) Fail();
  }
  // All the directories on the way to `inside`, below `top`.
  void Way(const std::string& top, const std::string& inside) {
    for (size_t slash = inside.find('/', 1); slash != std::string::npos;
         slash = inside.find('/', slash + 1))
      Directory(top + inside.substr(0, slash), 0755, 0);
    if (inside.size() > 1) Directory(top + inside, 0755, 0);
  }
  void Own(const std::string& path, uint32_t owner) {
    if (error_ != 0) return;
    if (fchownat(disk_, path.c_str(), first_id_ + owner, first_id_ + owner, AT_SYMLINK_NOFOLLOW) !=
        0)
      Fail();
  }
  void Link(const char* target, const char* path) {
    if (error_ == 0 && symlinkat(target, disk_, path) != 0) Fail();
  }
  void Node(const std::string& path, unsigned major_number, unsigned minor_number) {
    if (error_ != 0) return;
    if (mknodat(disk_, path.c_str(), S_IFCHR | 0666, makedev(major_number, minor_number)) != 0)
      return Fail();
    if (fchmodat(disk_, path.c_str(), 0666, 0) != 0) Fail();
  }
  void File(const std::string& path, mode_t mode) {
    if (error_ != 0) return;
    const int fd =
        openat(disk_, path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) return Fail();
    close(fd);
  }
  Status Finish() const {
    if (error_ != 0) return Error::FromErrno("furnish the sandbox's disk", error_);
    return {};
  }

 private:
  void Fail() { error_ = errno; }
  int disk_;
  uint32_t first_id_;
  int error_ = 0;
};

}  // namespace

Status FurnishDisk(int disk, const std::vector<std::string>& overlay_paths, DiskOwner owner,
                   DeviceNodes nodes) {
  Furnisher f(disk, owner.first_id);
  for (size_t i = 0; i < overlay_paths.size(); ++i) {
    f.Directory("u" + std::to_string(i), 0755, 0);
    f.Directory("w" + std::to_string(i), 0755, 0);
  }
  // Directories that must be real ones in the merged root: whatever the image has under these
  // names, the upper layer's directory is what is seen.
  f.Directory("u0/proc", 0555, 0);
  f.Directory("u0/dev", 0755, 0);
  f.Directory("u0/tmp", 01777, 0);
  f.Directory("u0/workspace", 0755, owner.default_uid);
  for (size_t i = 1; i < overlay_paths.size(); ++i) f.Way("u0", overlay_paths[i]);

  f.Directory("tmp", 01777, 0);
  f.Directory("ws", 0755, owner.default_uid);
  f.Directory("shm", 01777, 0);
  f.Directory("md", 0555, 0);
  f.File("mf", 0444);

  f.Directory("dev", 0755, 0);
  for (const char* directory : {"dev/pts", "dev/shm", "dev/mqueue"})
    f.Directory(directory, 0755, 0);
  for (const auto& node : kDeviceNodes) {
    const std::string path = std::string("dev/") + node.name;
    if (nodes == DeviceNodes::kMake)
      f.Node(path, node.major, node.minor);
    else
      f.File(path, 0666);
  }
  f.Link("pts/ptmx", "dev/ptmx");
  f.Link("/proc/self/fd", "dev/fd");
  f.Link("/proc/self/fd/0", "dev/stdin");
  f.Link("/proc/self/fd/1", "dev/stdout");
  f.Link("/proc/self/fd/2", "dev/stderr");
  return f.Finish();
}

}  // namespace caisson::launcher
