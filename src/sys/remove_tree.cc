#include "sys/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "sys/unique_fd.h"

namespace caisson::sys {
namespace {

constexpr int kOpenDir = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
constexpr int kMaxPasses = 64;  // over one directory before it counts as growing

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};
using Dir = std::unique_ptr<DIR, CloseDir>;

bool IsDots(const char* name) {
  return name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0));
}

// Opens a directory, giving its owner the rights to empty it where they were taken away.
UniqueFd OpenForRemoval(int parent_fd, const char* name) {
  UniqueFd fd(::openat(parent_fd, name, kOpenDir));
  if (!fd && errno == EACCES && ::fchmodat(parent_fd, name, 0700, 0) == 0)
    fd.Reset(::openat(parent_fd, name, kOpenDir));
  if (fd && ::geteuid() != 0) ::fchmod(fd.get(), 0700);
  return fd;
}

class Remover {
 public:
  Remover(UniqueFd top, dev_t device, uint64_t budget)
      : top_(std::move(top)), device_(device), budget_(budget) {}

  // Empties the top directory. kUnfinished when the budget ran out.
  Result<RemoveProgress> EmptyTop() {
    for (int pass = 0; pass < kMaxPasses; ++pass) {
      moved_ = 0;
      CAISSON_ASSIGN(const uint64_t seen, EmptyOnce(top_.get(), Level::kTop));
      if (seen == 0) return RemoveProgress::kGone;
      if (budget_ == 0) return RemoveProgress::kUnfinished;
      if (moved_ > 0) pass = 0;  // directories came up from below: that is progress
    }
    return Error(ErrorCode::kIo, "the directory tree keeps growing while it is removed");
  }

 private:
  enum class Level { kTop, kBelow };

  // One pass over a directory; returns how many entries it saw.
  Result<uint64_t> EmptyOnce(int dir_fd, Level level) {
    Dir dir(::fdopendir(::openat(dir_fd, ".", kOpenDir)));
    if (!dir) return Error::FromErrno("open a directory to remove");
    uint64_t seen = 0;
    while (budget_ > 0) {
      errno = 0;
      const dirent* entry = ::readdir(dir.get());
      if (entry == nullptr) {
        if (errno != 0) return Error::FromErrno("read a directory to remove");
        break;
      }
      if (IsDots(entry->d_name)) continue;
      ++seen;
      CAISSON_TRY(RemoveEntry(dir_fd, entry->d_name, level));
    }
    return seen;
  }

  Status RemoveEntry(int dir_fd, const char* name, Level level) {
    if (::unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT) return Spend();
    if (errno != EISDIR && errno != EPERM) return Error::FromErrno("remove a file");
    if (::unlinkat(dir_fd, name, AT_REMOVEDIR) == 0) return Spend();
    if (errno != ENOTEMPTY && errno != EEXIST && errno != EACCES)
      return Error::FromErrno("remove a directory");
    return level == Level::kTop ? EmptySubdirectory(name) : MoveToTop(dir_fd, name);
  }

  Status EmptySubdirectory(const char* name) {
    UniqueFd sub = OpenForRemoval(top_.get(), name);
    if (!sub) return Error::FromErrno("open a directory to remove");
    struct stat info;
    if (::fstat(sub.get(), &info) != 0) return Error::FromErrno("stat a directory to remove");
    if (info.st_dev != device_)
      return Error(ErrorCode::kIo, "something is mounted inside the tree to remove");
    for (int pass = 0; pass < kMaxPasses; ++pass) {
      CAISSON_ASSIGN(const uint64_t seen, EmptyOnce(sub.get(), Level::kBelow));
      if (budget_ == 0) return {};
      if (seen == 0) break;
    }
    if (::unlinkat(top_.get(), name, AT_REMOVEDIR) != 0)
      return Error::FromErrno("remove a directory");
    return Spend();
  }

  Status MoveToTop(int dir_fd, const char* name) {
    for (int attempt = 0; attempt < 1 << 20; ++attempt) {
      char target[32];
      std::snprintf(target, sizeof target, ".removing-%llu", next_name_++);
      if (::syscall(SYS_renameat2, dir_fd, name, top_.get(), target, RENAME_NOREPLACE) == 0) {
        ++moved_;
        return {};
      }
      if (errno == EACCES && ::fchmodat(dir_fd, name, 0700, 0) == 0 && attempt == 0) continue;
      if (errno != EEXIST) return Error::FromErrno("move a directory to remove");
    }
    return Error(ErrorCode::kIo, "no free name for a directory to remove");
  }

  Status Spend() {
    if (budget_ > 0) --budget_;
    return {};
  }

  UniqueFd top_;
  dev_t device_;
  uint64_t budget_;
  uint64_t moved_ = 0;
  unsigned long long next_name_ = 0;
};

}  // namespace

Result<RemoveProgress> RemoveTree(int parent_fd, const char* name, uint64_t budget) {
  if (::unlinkat(parent_fd, name, 0) == 0 || errno == ENOENT) return RemoveProgress::kGone;
  UniqueFd top = OpenForRemoval(parent_fd, name);
  if (!top) return Error::FromErrno(std::string("remove ") + name);
  struct stat above;
  struct stat info;
  if (::fstat(parent_fd, &above) != 0 || ::fstat(top.get(), &info) != 0)
    return Error::FromErrno(std::string("remove ") + name);
  if (above.st_dev != info.st_dev)
    return Error(ErrorCode::kIo, std::string(name) + " is a mount point and is not removed");
  auto progress = Remover(std::move(top), info.st_dev, budget).EmptyTop();
  if (!progress) return std::move(progress).error().Because(std::string("remove ") + name);
  if (*progress == RemoveProgress::kUnfinished) return progress;
  if (::unlinkat(parent_fd, name, AT_REMOVEDIR) != 0 && errno != ENOENT)
    return Error::FromErrno(std::string("remove ") + name);
  return RemoveProgress::kGone;
}

}  // namespace caisson::sys
