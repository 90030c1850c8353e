#include "init/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <string_view>

namespace caisson::init {
namespace {

using namespace wire::init;  // NOLINT: the requests and replies of this protocol

constexpr unsigned kModeBits = 01777;  // set-id bits are not handed out
constexpr int kOpenFlags = O_NONBLOCK | O_NOCTTY;
constexpr size_t kFrameBudget = wire::kMaxFrame - 8 * 1024;
constexpr size_t kListBuffer = 32 * 1024;
// Files of /proc/self, which is init itself here, that say nothing of its memory.
constexpr std::string_view kPublicProcFiles[] = {"status",    "stat",    "statm",  "comm",
                                                 "cmdline",   "limits",  "cgroup", "mounts",
                                                 "mountinfo", "uid_map", "gid_map"};

const char* KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISLNK(mode)) return "a symbolic link";
  return "a device";
}

Error NotRegular(mode_t mode) {
  return Error::FromErrno(std::string("it is ") + KindOf(mode) + ", not a regular file", EINVAL);
}

uint64_t Nanos(const timespec& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

FileInfo InfoOf(std::string name, const struct stat& s) {
  return {.name = std::move(name),
          .mode = s.st_mode,
          .uid = s.st_uid,
          .gid = s.st_gid,
          .links = static_cast<uint32_t>(s.st_nlink),
          .size = static_cast<uint64_t>(s.st_size),
          .inode = s.st_ino,
          .mtime_ns = Nanos(s.st_mtim),
          .ctime_ns = Nanos(s.st_ctim),
          .atime_ns = Nanos(s.st_atim),
          .target = {}};
}

std::string LinkTarget(int directory, const char* name) {
  char buffer[kMaxPath];
  const ssize_t size = readlinkat(directory, name, buffer, sizeof buffer);
  return size > 0 ? std::string(buffer, static_cast<size_t>(size)) : std::string();
}

// What a descriptor of /proc may be used for: reading, and not init's own memory.
Status CheckProc(int fd, OpenMode mode) {
  struct statfs system;
  if (fstatfs(fd, &system) != 0) return Error::FromErrno("looking at its file system");
  if (system.f_type != PROC_SUPER_MAGIC) return {};
  if (mode != OpenMode::kRead)
    return Error::FromErrno("files of /proc cannot be written here", EACCES);
  const std::string path = LinkTarget(AT_FDCWD, DescriptorPath(fd).c_str());
  const std::string own = "/" + std::to_string(getpid()) + "/";
  if (!path.contains(own)) return {};
  const std::string_view leaf = std::string_view(path).substr(path.rfind('/') + 1);
  if (std::ranges::find(kPublicProcFiles, leaf) != std::end(kPublicProcFiles)) return {};
  return Error::FromErrno("/proc/self is init itself here", EACCES);
}

// The error for `path`, which could not be opened: a FIFO or socket says ENXIO, a directory EISDIR.
Error OpenError(const std::string& path, Error error) {
  if (error.sys_errno() != ENXIO && error.sys_errno() != EISDIR) return error;
  const auto fd = OpenPath(AT_FDCWD, path, O_PATH);
  struct stat info;
  if (!fd || fstat(fd->get(), &info) != 0 || S_ISREG(info.st_mode)) return error;
  return NotRegular(info.st_mode);
}

std::string TemporaryName() {
  uint64_t random = 0;
  while (getrandom(&random, sizeof random, 0) != sizeof random) {
  }
  char digits[17] = {};
  std::to_chars(digits, digits + 16, random, 16);
  return std::string(".caisson-") + digits;
}

}  // namespace

Result<User> Files::UserOf(const std::string& name) const {
  CAISSON_ASSIGN(User user, ResolveUser(name.empty() ? default_user_ : name));
  CAISSON_TRY(privileges_.CheckReach(user));
  return user;
}

Result<StatReply> Files::Handle(Stat& request) {
  CAISSON_TRY(CheckPath(request.path));
  CAISSON_ASSIGN(const User user, UserOf(request.user));
  const ScopedIdentity identity(privileges_, user);
  CAISSON_ASSIGN(const sys::UniqueFd fd,
                 OpenPath(AT_FDCWD, request.path, O_PATH | (request.follow != 0 ? 0 : O_NOFOLLOW)));
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return Error::FromErrno("looking at it");
  StatReply reply{.info = InfoOf(request.path, info)};
  if (S_ISLNK(info.st_mode)) reply.info.target = LinkTarget(fd.get(), "");
  return reply;
}

Result<Entries> Files::Handle(ListDir& request) {
  CAISSON_TRY(CheckPath(request.path));
  CAISSON_ASSIGN(const User user, UserOf(request.user));
  const ScopedIdentity identity(privileges_, user);
  CAISSON_ASSIGN(const sys::UniqueFd fd,
                 OpenPath(AT_FDCWD, request.path, O_RDONLY | O_DIRECTORY | kOpenFlags));
  if (request.cursor > INT64_MAX ||
      lseek(fd.get(), static_cast<off_t>(request.cursor), SEEK_SET) < 0) {
    return Error::FromErrno("the cursor is not of this directory", EINVAL);
  }
  const size_t max = std::clamp<size_t>(request.max, 1, kMaxEntries);
  const size_t buffer_size = std::clamp<size_t>(max * 64, 1024, kListBuffer);
  const std::unique_ptr<char[]> buffer(new char[buffer_size]);
  Entries reply;
  size_t size = 0;
  while (true) {
    const long got = syscall(SYS_getdents64, fd.get(), buffer.get(), buffer_size);
    if (got < 0) return Error::FromErrno("reading the directory");
    if (got == 0) {
      reply.next = 0;
      return reply;
    }
    for (long at = 0; at < got;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer.get() + at);
      at += entry->d_reclen;
      const std::string name = entry->d_name;
      struct stat info{};
      const bool seen = fstatat(fd.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
      if (!seen)
        info.st_mode = DTTOIF(entry->d_type);  // a directory that may be read, not searched
      const bool gone = !seen && errno == ENOENT;
      if (name != "." && name != ".." && !gone) {
        FileInfo file = InfoOf(name, info);
        if (S_ISLNK(info.st_mode)) file.target = LinkTarget(fd.get(), name.c_str());
        size += 80 + file.name.size() + file.target.size();
        if (size > kFrameBudget) return reply;  // `next` is where this entry begins
        reply.entries.push_back(std::move(file));
      }
      reply.next = static_cast<uint64_t>(entry->d_off);
      if (reply.entries.size() == max) return reply;
    }
  }
}

// --- handles ------------------------------------------------------------------------------------

Result<Files::Handle_> Files::OpenInPlace(const Open& request) {
  int flags = kOpenFlags;
  switch (request.mode) {
    case OpenMode::kRead:
      flags |= O_RDONLY;
      break;
    case OpenMode::kCreateNew:
      flags |= O_WRONLY | O_CREAT | O_EXCL;
      break;
    default:
      flags |= O_WRONLY | O_CREAT;
      break;
  }
  const unsigned permissions = (flags & O_CREAT) != 0 ? request.permissions & kModeBits : 0;
  auto fd = OpenPath(AT_FDCWD, request.path, flags, permissions);
  if (!fd) return OpenError(request.path, std::move(fd).error());
  struct stat info;
  if (fstat(fd->get(), &info) != 0) return Error::FromErrno("looking at it");
  if (!S_ISREG(info.st_mode)) return NotRegular(info.st_mode);
  CAISSON_TRY(CheckProc(fd->get(), request.mode));
  if (request.mode == OpenMode::kWrite && ftruncate(fd->get(), 0) != 0) {
    return Error::FromErrno("emptying it");
  }
  return Handle_{.fd = *std::move(fd), .user = {}, .target = {}, .temporary = {}};
}

Result<Files::Handle_> Files::OpenReplacement(const Open& request) {
  Handle_ handle;
  CAISSON_ASSIGN(handle.target, FindPlace(request.path));
  CAISSON_TRY(CheckProc(handle.target.parent.get(), request.mode));
  struct stat info;
  if (fstatat(handle.target.parent.get(), handle.target.leaf.c_str(), &info, AT_SYMLINK_NOFOLLOW) ==
          0 &&
      !S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)) {
    return NotRegular(info.st_mode);
  }
  handle.temporary = TemporaryName();
  CAISSON_ASSIGN(handle.fd, OpenPath(handle.target.parent.get(), handle.temporary,
                                     kOpenFlags | O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                                     request.permissions & kModeBits));
  return handle;
}

Result<Opened> Files::Handle(Open& request) {
  CAISSON_TRY(CheckPath(request.path));
  if (request.mode > OpenMode::kResume)
    return Error::FromErrno("unknown way to open a file", EINVAL);
  if (handles_.size() >= kMaxHandles)
    return Error::FromErrno("too many open files of this sandbox's owner", EMFILE);
  CAISSON_ASSIGN(User user, UserOf(request.user));
  const ScopedIdentity identity(privileges_, user);
  if (request.parents != 0 && request.mode != OpenMode::kRead) {
    CAISSON_TRY(MakeDirectories(ParentPath(request.path), 0755));
  }
  auto opened =
      request.mode == OpenMode::kReplace ? OpenReplacement(request) : OpenInPlace(request);
  if (!opened) return std::move(opened).error();
  struct stat info;
  if (fstat(opened->fd.get(), &info) != 0) return Error::FromErrno("looking at it");
  opened->user = std::move(user);
  const uint32_t id = ++last_handle_;
  handles_.emplace(id, *std::move(opened));
  return Opened{.handle = id, .info = InfoOf(request.path, info)};
}

Result<Files::Handle_*> Files::Find(uint32_t id) {
  const auto found = handles_.find(id);
  if (found == handles_.end())
    return Error::FromErrno("there is no open file " + std::to_string(id), EBADF);
  return &found->second;
}

Result<Data> Files::Handle(Read& request) {
  CAISSON_ASSIGN(const Handle_* handle, Find(request.handle));
  if (request.offset > INT64_MAX) return Error::FromErrno("the offset is out of range", EINVAL);
  Data reply;
  const size_t want = std::min<size_t>(request.size, wire::kMaxData);
  reply.data.resize(want);
  size_t have = 0;
  while (have < want) {
    const ssize_t got = pread(handle->fd.get(), reply.data.data() + have, want - have,
                              static_cast<off_t>(request.offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && have == 0) return Error::FromErrno("reading it");
    if (got == 0) reply.eof = 1;
    if (got <= 0) break;
    have += static_cast<size_t>(got);
  }
  reply.data.resize(have);
  return reply;
}

Result<Written> Files::Handle(Write& request) {
  CAISSON_ASSIGN(const Handle_* handle, Find(request.handle));
  if (request.offset > INT64_MAX) return Error::FromErrno("the offset is out of range", EINVAL);
  size_t done = 0;
  while (done < request.data.size()) {
    const ssize_t wrote =
        pwrite(handle->fd.get(), request.data.data() + done, request.data.size() - done,
               static_cast<off_t>(request.offset + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0 && done == 0) return Error::FromErrno("writing it");
    if (wrote <= 0) break;
    done += static_cast<size_t>(wrote);
  }
  return Written{.size = static_cast<uint32_t>(done)};
}

Status Files::Discard(Handle_& handle) {
  if (handle.temporary.empty()) return {};
  const ScopedIdentity identity(privileges_, handle.user);
  const int removed = unlinkat(handle.target.parent.get(), handle.temporary.c_str(), 0);
  handle.temporary.clear();
  if (removed != 0 && errno != ENOENT) return Error::FromErrno("removing the temporary file");
  return {};
}

Result<Done> Files::Handle(Close& request) {
  CAISSON_ASSIGN(Handle_ * found, Find(request.handle));
  if (request.mode > CloseMode::kDiscard)
    return Error::FromErrno("unknown way to close a file", EINVAL);
  if (!found->temporary.empty() && request.mode == CloseMode::kKeep) {
    return Error::FromErrno("a replacement is either committed or discarded", EINVAL);
  }
  Handle_ handle = std::move(*found);
  handles_.erase(request.handle);
  if (handle.temporary.empty()) return Done{};
  if (request.mode == CloseMode::kCommit) {
    const ScopedIdentity identity(privileges_, handle.user);
    const int directory = handle.target.parent.get();
    if (renameat(directory, handle.temporary.c_str(), directory, handle.target.leaf.c_str()) == 0) {
      return Done{};
    }
    const Error error = Error::FromErrno("putting the new file in place");
    unlinkat(directory, handle.temporary.c_str(), 0);
    return error;
  }
  CAISSON_TRY(Discard(handle));
  return Done{};
}

void Files::CloseAll() {
  // Errors have nobody to be told to; the temporaries are the sandbox's own files.
  for (auto& [id, handle] : handles_) (void)Discard(handle);
  handles_.clear();
}

// --- names --------------------------------------------------------------------------------------

Result<Done> Files::Handle(Mkdir& request) {
  CAISSON_TRY(CheckPath(request.path));
  CAISSON_ASSIGN(const User user, UserOf(request.user));
  const ScopedIdentity identity(privileges_, user);
  const unsigned mode = request.permissions & kModeBits;
  if (request.parents != 0) {
    CAISSON_TRY(MakeDirectories(request.path, mode));
    return Done{};
  }
  CAISSON_ASSIGN(const Place place, FindPlace(request.path));
  if (mkdirat(place.parent.get(), place.leaf.c_str(), mode) != 0)
    return Error::FromErrno("making the directory");
  return Done{};
}

Result<Done> Files::Handle(Move& request) {
  CAISSON_ASSIGN(const User user, UserOf(request.user));
  const ScopedIdentity identity(privileges_, user);
  CAISSON_ASSIGN(const Place from, FindPlace(request.from));
  CAISSON_ASSIGN(const Place to, FindPlace(request.to));
  const unsigned flags = request.replace != 0 ? 0 : RENAME_NOREPLACE;
  if (renameat2(from.parent.get(), from.leaf.c_str(), to.parent.get(), to.leaf.c_str(), flags) !=
      0) {
    return Error::FromErrno("moving it");
  }
  return Done{};
}

Result<Done> Files::Handle(SetMode& request) {
  CAISSON_TRY(CheckPath(request.path));
  CAISSON_ASSIGN(const User user, UserOf(request.user));
  const ScopedIdentity identity(privileges_, user);
  CAISSON_ASSIGN(const sys::UniqueFd fd, OpenPath(AT_FDCWD, request.path, O_PATH));
  CAISSON_TRY(CheckProc(fd.get(), OpenMode::kWrite));
  if (chmod(DescriptorPath(fd.get()).c_str(), request.permissions & kModeBits) != 0) {
    return Error::FromErrno("changing its mode");
  }
  return Done{};
}

Result<Done> Files::Handle(Symlink& request) {
  if (request.target.empty() || request.target.contains('\0')) {
    return Error::FromErrno("the target is empty or contains a NUL byte", EINVAL);
  }
  CAISSON_ASSIGN(const User user, UserOf(request.user));
  const ScopedIdentity identity(privileges_, user);
  CAISSON_ASSIGN(const Place place, FindPlace(request.path));
  if (symlinkat(request.target.c_str(), place.parent.get(), place.leaf.c_str()) != 0) {
    return Error::FromErrno("making the link");
  }
  return Done{};
}

Result<Done> Files::RemoveOne(const Remove& request) {
  CAISSON_ASSIGN(const User user, UserOf(request.user));
  const ScopedIdentity identity(privileges_, user);
  CAISSON_ASSIGN(const Place place, FindPlace(request.path));
  if (unlinkat(place.parent.get(), place.leaf.c_str(), 0) == 0) return Done{};
  if (errno != EISDIR && errno != EPERM) return Error::FromErrno("removing it");
  if (unlinkat(place.parent.get(), place.leaf.c_str(), AT_REMOVEDIR) != 0)
    return Error::FromErrno("removing it");
  return Done{};
}

}  // namespace caisson::init
