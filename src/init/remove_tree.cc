#include "init/remove_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <vector>

namespace caisson::init {
namespace {

constexpr size_t kOpenLevels = 32;  // ancestors kept open; higher ones are reopened by ".."
constexpr size_t kListSize = 32 * 1024;
constexpr int kMaxRestarts = 16;  // of a directory in which others keep making entries

struct Level {
  sys::UniqueFd fd;
  std::string name;  // in the level above
  dev_t device = 0;
  ino_t inode = 0;
  off_t cursor = 0;
  int restarts = 0;
};

class Remover {
 public:
  explicit Remover(const Place& place) : place_(place), list_(new char[kListSize]) {}

  Status Run() {
    if (unlinkat(place_.parent.get(), place_.leaf.c_str(), 0) == 0) return {};
    if (errno != EISDIR && errno != EPERM) return Error::FromErrno("removing " + place_.leaf);
    CAISSON_TRY(Enter(place_.parent.get(), place_.leaf));
    while (!levels_.empty()) {
      CAISSON_ASSIGN(const bool emptied, Clear());
      if (emptied) CAISSON_TRY(Leave());
    }
    return {};
  }

 private:
  Error Failure(const std::string& name, int error_number) const {
    return Error::FromErrno("removing " + name + " at depth " + std::to_string(levels_.size()),
                            error_number);
  }

  Status Enter(int parent, const std::string& name) {
    Level level;
    level.name = name;
    level.fd.Reset(
        openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    struct stat info;
    if (!level.fd || fstat(level.fd.get(), &info) != 0) return Failure(name, errno);
    level.device = info.st_dev;
    level.inode = info.st_ino;
    if (!levels_.empty() && level.device != levels_.front().device) return Failure(name, EXDEV);
    if (levels_.size() >= kOpenLevels) levels_[levels_.size() - kOpenLevels].fd.Reset();
    levels_.push_back(std::move(level));
    return {};
  }

  // Goes on in the innermost directory. True when it is empty; false when it entered another.
  Result<bool> Clear() {
    Level& level = levels_.back();
    if (lseek(level.fd.get(), level.cursor, SEEK_SET) < 0) return Failure(level.name, errno);
    while (true) {
      const long got = syscall(SYS_getdents64, level.fd.get(), list_.get(), kListSize);
      if (got < 0) return Failure(level.name, errno);
      if (got == 0) return true;
      for (long at = 0; at < got;) {
        const auto* entry = reinterpret_cast<const dirent64*>(list_.get() + at);
        at += entry->d_reclen;
        level.cursor = entry->d_off;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (entry->d_type != DT_DIR) {
          if (unlinkat(level.fd.get(), entry->d_name, 0) == 0 || errno == ENOENT) continue;
          if (errno != EISDIR && errno != EPERM) return Failure(entry->d_name, errno);
        }
        const std::string name = entry->d_name;
        const Status entered = Enter(level.fd.get(), name);
        if (entered) return false;
        if (entered.error().sys_errno() != ENOENT) return entered.error();
      }
    }
  }

  // Removes the innermost directory, which was seen empty, from the one above.
  Status Leave() {
    const bool outermost = levels_.size() == 1;
    if (!outermost) CAISSON_TRY(Reopen(levels_[levels_.size() - 2], levels_.back()));
    Level& level = levels_.back();
    const int above = outermost ? place_.parent.get() : levels_[levels_.size() - 2].fd.get();
    if (unlinkat(above, level.name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
      if (errno != ENOTEMPTY || ++level.restarts > kMaxRestarts) return Failure(level.name, errno);
      level.cursor = 0;
      return {};
    }
    levels_.pop_back();
    return {};
  }

  Status Reopen(Level& above, const Level& below) {
    if (above.fd) return {};
    above.fd.Reset(openat(below.fd.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
    struct stat info;
    if (!above.fd || fstat(above.fd.get(), &info) != 0) return Failure(above.name, errno);
    if (info.st_dev != above.device || info.st_ino != above.inode)
      return Failure(below.name, ESTALE);
    return {};
  }

  const Place& place_;
  const std::unique_ptr<char[]> list_;
  std::vector<Level> levels_;
};

}  // namespace

Status RemoveTree(const Place& place) { return Remover(place).Run(); }

}  // namespace caisson::init
