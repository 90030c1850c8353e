#include "store/data_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/text.h"

namespace caisson::store {
namespace {

constexpr const char* kReserve = "reserve";

// mkdir -p, each new directory 0700.
Status MakeDirectories(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST) {
      return Error::FromErrno(Concat({"making the directory ", part}));
    }
    if (slash == std::string::npos) return {};
  }
}

Status MakePrivate(int dir, const std::string& path) {
  struct stat info{};
  if (::fstat(dir, &info) != 0) return Error::FromErrno(Concat({"looking at ", path}));
  if (info.st_uid != ::geteuid()) {
    return Error(ErrorCode::kPermissionDenied, Concat({path, " belongs to another user"}))
        .WithRemedy("choose a data directory of your own with --data-dir");
  }
  if ((info.st_mode & 077) != 0 && ::fchmod(dir, 0700) != 0) {
    return Error::FromErrno(Concat({"making ", path, " private"}));
  }
  return {};
}

Result<sys::UniqueFd> TakeLock(int dir, const std::string& path) {
  sys::UniqueFd lock(::openat(dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return Error::FromErrno(Concat({"opening ", path, "/lock"}));
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Error::FromErrno(Concat({"locking ", path}));
    std::array<char, 32> owner{};
    const ssize_t size = ::pread(lock.get(), owner.data(), owner.size() - 1, 0);
    std::string_view pid(owner.data(), size > 0 ? static_cast<size_t>(size) : 0);
    if (pid.ends_with('\n')) pid.remove_suffix(1);
    return Error(ErrorCode::kConflict,
                 Concat({"another server (pid ", pid, ") runs on the data directory ", path}))
        .WithRemedy("stop it, or give this one a directory of its own with --data-dir");
  }
  const std::string pid = Concat({std::to_string(::getpid()), "\n"});
  // The pid is a courtesy for the message above; a full disk must not keep the server from
  // starting.
  if (::ftruncate(lock.get(), 0) == 0) {
    [[maybe_unused]] const ssize_t written = ::pwrite(lock.get(), pid.data(), pid.size(), 0);
  }
  return lock;
}

Status WriteAll(int fd, std::string_view bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Error::FromErrno(Concat({"writing ", name}));
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

}  // namespace

Result<DataDir> DataDir::Open(const std::string& path) {
  if (path.empty()) return Error(ErrorCode::kInvalidArgument, "the data directory has no name");
  CAISSON_TRY(MakeDirectories(path));
  sys::UniqueFd dir(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir) return Error::FromErrno(Concat({"opening the data directory ", path}));
  CAISSON_TRY(MakePrivate(dir.get(), path));
  CAISSON_ASSIGN(sys::UniqueFd lock, TakeLock(dir.get(), path));
  for (const char* name : {"storage", "storage/sessions", "storage/artifacts"}) {
    if (::mkdirat(dir.get(), name, 0700) != 0 && errno != EEXIST) {
      return Error::FromErrno(Concat({"making ", path, "/", name}));
    }
  }
  return DataDir(path, std::move(dir), std::move(lock));
}

std::string DataDir::PathOf(std::string_view name) const { return Concat({path_, "/", name}); }

Status DataDir::MakeReserve() {
  const sys::UniqueFd file(
      ::openat(dir_.get(), kReserve, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return Error::FromErrno(Concat({"opening ", PathOf(kReserve)}));
  const int error = ::posix_fallocate(file.get(), 0, kReserveBytes);
  if (error == 0) return {};
  GiveUpReserve();  // a part of it helps nobody
  Error failure = Error::FromErrno(Concat({"reserving 16 MiB in ", path_}), error);
  if (error != ENOSPC && error != EDQUOT && error != EFBIG) return failure;
  return std::move(failure)
      .WithCode(ErrorCode::kResourceExhausted)
      .WithRemedy("free space on the file system that holds the data directory");
}

bool DataDir::GiveUpReserve() { return ::unlinkat(dir_.get(), kReserve, 0) == 0; }

Status SyncDirectory(int dir_fd, std::string_view name) {
  if (::fsync(dir_fd) != 0) return Error::FromErrno(Concat({"flushing the directory ", name}));
  return {};
}

Status WriteFileAtomically(int dir_fd, const std::string& name, std::string_view bytes) {
  const std::string temporary = name + ".new";
  {
    const sys::UniqueFd file(::openat(dir_fd, temporary.c_str(),
                                      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) return Error::FromErrno(Concat({"creating ", temporary}));
    CAISSON_TRY(WriteAll(file.get(), bytes, temporary));
    if (::fsync(file.get()) != 0) return Error::FromErrno(Concat({"flushing ", temporary}));
  }
  if (::renameat(dir_fd, temporary.c_str(), dir_fd, name.c_str()) != 0) {
    return Error::FromErrno(Concat({"renaming ", temporary}));
  }
  return SyncDirectory(dir_fd, ".");
}

Result<std::string> ReadSmallFile(int dir_fd, const std::string& name, size_t max) {
  const sys::UniqueFd file(::openat(dir_fd, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) {
    const int error = errno;
    Error failure = Error::FromErrno(Concat({"opening ", name}), error);
    if (error == ENOENT) return std::move(failure).WithCode(ErrorCode::kNotFound);
    return failure;
  }
  std::string bytes(max + 1, '\0');
  size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = ::read(file.get(), bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::FromErrno(Concat({"reading ", name}));
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (size > max) {
    return Error(ErrorCode::kIo, Concat({name, " is longer than ", std::to_string(max), " bytes"}));
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace caisson::store
