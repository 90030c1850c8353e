#include "providers/native/cache_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>

#include "sys/remove_tree.h"

namespace caisson::native {
namespace {

using sys::UniqueFd;

constexpr std::string_view kDraftPrefix = ".draft-";
constexpr time_t kYoung = 60;  // seconds; a younger draft may not have its lock yet

Result<std::string> RandomName(std::string_view prefix) {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) return Error::FromErrno("getrandom");
  return fmt::format("{}{:016x}", prefix, number);
}

// Removes drafts whose makers are dead.
void SweepDrafts(int cache_fd) {
  const int copy = ::openat(cache_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::unique_ptr<DIR, int (*)(DIR*)> dir(copy < 0 ? nullptr : ::fdopendir(copy), ::closedir);
  if (!dir) return;
  while (const dirent* entry = ::readdir(dir.get())) {
    if (!std::string_view(entry->d_name).starts_with(kDraftPrefix)) continue;
    UniqueFd draft(
        ::openat(cache_fd, entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat info;
    if (!draft || ::fstat(draft.get(), &info) != 0 || info.st_ctime > ::time(nullptr) - kYoung)
      continue;
    if (::flock(draft.get(), LOCK_EX | LOCK_NB) == 0)
      (void)sys::RemoveTree(cache_fd, entry->d_name);
  }
}

Status MakeParents(const std::string& path) {
  for (size_t slash = path.find('/', 1); slash != std::string::npos;
       slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    if (::mkdir(parent.c_str(), 0755) != 0 && errno != EEXIST)
      return Error::FromErrno("mkdir " + parent);
  }
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return Error::FromErrno("mkdir " + path);
  return {};
}

}  // namespace

Result<UniqueFd> OpenCacheDir(const std::string& path) {
  if (path.empty() || path[0] != '/')
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("the cache directory '{}' is not an absolute path", path));
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd && errno == ENOENT) {
    CAISSON_TRY(MakeParents(path));
    fd.Reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  if (!fd) return Error::FromErrno("open the cache directory " + path);
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) return Error::FromErrno("stat the cache directory " + path);
  if (info.st_uid != ::geteuid() || (info.st_mode & 022) != 0) {
    return Error(ErrorCode::kPermissionDenied,
                 fmt::format("the cache directory {} can be written by others", path))
        .WithRemedy(fmt::format("chown it to uid {} and chmod it to 0700, or name another one",
                                ::geteuid()));
  }
  return fd;
}

DraftDir::DraftDir(int cache_fd, std::string name, UniqueFd fd)
    : cache_fd_(cache_fd), name_(std::move(name)), fd_(std::move(fd)) {}

DraftDir::DraftDir(DraftDir&& other) noexcept
    : cache_fd_(other.cache_fd_),
      name_(std::exchange(other.name_, {})),
      fd_(std::move(other.fd_)) {}

DraftDir::~DraftDir() {
  if (!name_.empty())
    (void)sys::RemoveTree(cache_fd_, name_.c_str());  // else the next sweep does it
}

Result<DraftDir> DraftDir::Create(int cache_fd) {
  SweepDrafts(cache_fd);
  CAISSON_ASSIGN(std::string name, RandomName(kDraftPrefix));
  if (::mkdirat(cache_fd, name.c_str(), 0700) != 0) return Error::FromErrno("mkdir in the cache");
  UniqueFd fd(::openat(cache_fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  DraftDir draft(cache_fd, std::move(name), std::move(fd));
  if (!draft.fd_ || ::flock(draft.fd(), LOCK_EX | LOCK_NB) != 0)
    return Error::FromErrno("open a new cache entry");
  if (::fchmod(draft.fd(), 0755) != 0) return Error::FromErrno("chmod a new cache entry");
  return draft;
}

Status DraftDir::Commit(const std::string& name) && {
  if (::renameat(cache_fd_, name_.c_str(), cache_fd_, name.c_str()) == 0) {
    name_.clear();
    return {};
  }
  if (errno == ENOTEMPTY || errno == EEXIST) return {};
  return Error::FromErrno("name the new cache entry " + name);
}

Status WriteCacheFile(int cache_fd, const std::string& name, std::string_view content) {
  CAISSON_ASSIGN(const std::string draft, RandomName(kDraftPrefix));
  UniqueFd file(::openat(cache_fd, draft.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return Error::FromErrno("create " + name);
  while (!content.empty()) {
    const ssize_t rc = ::write(file.get(), content.data(), content.size());
    if (rc < 0 && errno == EINTR) continue;
    if (rc <= 0) {
      const Error error = Error::FromErrno("write " + name);
      ::unlinkat(cache_fd, draft.c_str(), 0);
      return error;
    }
    content.remove_prefix(static_cast<size_t>(rc));
  }
  if (::renameat(cache_fd, draft.c_str(), cache_fd, name.c_str()) == 0) return {};
  const Error error = Error::FromErrno("rename to " + name);
  ::unlinkat(cache_fd, draft.c_str(), 0);
  return error;
}

CacheEntry FindEntry(int cache_fd, const std::string& name) {
  struct stat info;
  const bool ours = ::fstatat(cache_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
  return ours ? CacheEntry::kPresent : CacheEntry::kAbsent;
}

}  // namespace caisson::native
