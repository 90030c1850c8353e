#include "providers/native/import_tar.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "providers/native/cache_dir.h"
#include "providers/native/tar_extract.h"
#include "providers/native/tar_jail.h"
#include "sys/process.h"
#include "sys/unique_fd.h"

namespace caisson::native {
namespace {

using sys::UniqueFd;

// Counts up when the same archive must give a different tree.
constexpr int kFormat = 1;
constexpr size_t kChunk = 256 * 1024;
constexpr time_t kSettled = 1;  // seconds; a file younger than that could change without a trace

Error InvalidImage(std::string_view path, std::string_view why, std::string remedy) {
  return Error(ErrorCode::kImageInvalid, fmt::format("the root {}: {}", path, why))
      .WithRemedy(std::move(remedy));
}

// --- checks of a tree ---------------------------------------------------------------------------

Status CheckTree(int root_fd, const std::string& path) {
  for (const char* name : {"proc", "dev", "tmp", "workspace", "etc"}) {
    struct stat info;
    if (::fstatat(root_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;
      return InvalidImage(path,
                          Error::FromErrno(fmt::format("cannot look at its /{}", name)).message(),
                          "make it readable");
    }
    if (S_ISDIR(info.st_mode)) continue;
    const char* kind = S_ISLNK(info.st_mode)   ? "a symbolic link"
                       : S_ISREG(info.st_mode) ? "a file"
                                               : "a special file";
    return InvalidImage(path, fmt::format("its /{} is {}", name, kind),
                        fmt::format("make /{} a directory, or leave it out", name));
  }
  return {};
}

// Whether what was unpacked looks like a root, or like something else in a tar.
Status CheckUnpacked(int root_fd, const std::string& path) {
  const auto has = [root_fd](const char* name) {
    struct stat info;
    return ::fstatat(root_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
  };
  if (has("manifest.json") || has("oci-layout") || has("index.json")) {
    return InvalidImage(path, "it is an image archive, not a root",
                        "make a root of it, for example with `docker create` and `docker export`");
  }
  if (!has("usr") && !has("bin") && !has("sbin") && !has("lib") && !has("nix")) {
    return InvalidImage(
        path, "it has none of /usr, /bin, /sbin and /lib",
        "pack the root itself, not the directory that holds it: tar -C ROOT -cf FILE .");
  }
  return CheckTree(root_fd, path);
}

// --- reading the archive ------------------------------------------------------------------------

struct Archive {
  UniqueFd fd;
  struct stat info;
};

Result<Archive> OpenArchive(const std::string& path) {
  Archive archive{UniqueFd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)), {}};
  if (!archive.fd)
    return InvalidImage(path, strerror(errno), "name a tar file that exists and is readable");
  if (::fstat(archive.fd.get(), &archive.info) != 0) return Error::FromErrno("stat " + path);
  if (!S_ISREG(archive.info.st_mode))
    return InvalidImage(path, "it is not a regular file", "name a tar file or a directory");
  if (archive.info.st_size == 0)
    return InvalidImage(path, "it is empty", "name a tar file that holds a root");
  return archive;
}

bool SameFile(const struct stat& a, const struct stat& b) {
  const auto stamp = [](const struct stat& s) {
    return std::tuple(s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec,
                      s.st_ctim.tv_sec, s.st_ctim.tv_nsec);
  };
  return stamp(a) == stamp(b);
}

// The name of the file that remembers the digest of an unchanged archive.
std::string IndexName(const struct stat& info) {
  return fmt::format("index-{}-{:x}-{:x}-{:x}-{:x}.{:09}-{:x}.{:09}", kFormat, info.st_dev,
                     info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec,
                     info.st_ctim.tv_sec, info.st_ctim.tv_nsec);
}

std::string ReadIndex(int roots_fd, const struct stat& info) {
  UniqueFd file(::openat(roots_fd, IndexName(info).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  char text[128];
  const ssize_t size = file ? ::read(file.get(), text, sizeof text) : 0;
  std::string name(text, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return name.starts_with("tar-") && !name.contains('/') ? name : std::string();
}

std::string EntryName(std::string_view digest) { return fmt::format("tar-{}-{}", kFormat, digest); }

Result<size_t> ReadChunk(int fd, std::vector<char>& buffer, uint64_t offset) {
  for (;;) {
    const ssize_t rc = ::pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (rc >= 0) return static_cast<size_t>(rc);
    if (errno != EINTR) return Error::FromErrno("read the archive");
  }
}

Result<std::string> DigestOfArchive(int fd) {
  Sha256 sha;
  std::vector<char> buffer(kChunk);
  for (uint64_t offset = 0;;) {
    CAISSON_ASSIGN(const size_t size, ReadChunk(fd, buffer, offset));
    if (size == 0) return sha.HexDigest();
    sha.Update({buffer.data(), size});
    offset += size;
  }
}

// --- driving the child
// ------------------------------------------------------------------------------

class Deadline {
 public:
  explicit Deadline(int seconds)
      : end_(sys::MonotonicNs() + static_cast<uint64_t>(seconds) * 1'000'000'000) {}
  // Waits until `fd` is ready for `events`. kDeadlineExceeded when that takes too long.
  Status Wait(int fd, short events) const {
    for (;;) {
      const uint64_t now = sys::MonotonicNs();
      if (now >= end_)
        return Error(ErrorCode::kDeadlineExceeded, "unpacking the archive takes too long");
      pollfd one{fd, events, 0};
      const int rc = ::poll(
          &one, 1, static_cast<int>(std::min<uint64_t>((end_ - now) / 1'000'000 + 1, 60'000)));
      if (rc > 0) return {};
      if (rc < 0 && errno != EINTR) return Error::FromErrno("poll");
    }
  }

 private:
  uint64_t end_;
};

enum class Listener { kThere, kGone };  // gone: it has given up, and its report says why

Result<Listener> Feed(int socket, std::string_view bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t rc = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (rc > 0) {
      bytes.remove_prefix(static_cast<size_t>(rc));
    } else if (errno == EAGAIN) {
      CAISSON_TRY(deadline.Wait(socket, POLLOUT));
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return Listener::kGone;
    } else if (errno != EINTR) {
      return Error::FromErrno("feed the archive to the importer");
    }
  }
  return Listener::kThere;
}

// Feeds the archive to its end, or until nobody listens, and returns the digest of what was fed.
Result<std::string> FeedAll(int archive, const TarJail& jail, const Deadline& deadline) {
  Sha256 sha;
  std::vector<char> buffer(kChunk);
  for (uint64_t offset = 0;;) {
    CAISSON_ASSIGN(const size_t size, ReadChunk(archive, buffer, offset));
    if (size == 0) break;
    sha.Update({buffer.data(), size});
    CAISSON_ASSIGN(const Listener listener,
                   Feed(jail.input.get(), {buffer.data(), size}, deadline));
    if (listener == Listener::kGone) break;
    offset += size;
  }
  ::shutdown(jail.input.get(), SHUT_WR);
  return sha.HexDigest();
}

Result<TarReport> ReadReport(const TarJail& jail, const Deadline& deadline) {
  TarReport report;
  size_t size = 0;
  while (size < sizeof report) {
    CAISSON_TRY(deadline.Wait(jail.report.get(), POLLIN));
    const ssize_t rc =
        ::read(jail.report.get(), reinterpret_cast<char*>(&report) + size, sizeof report - size);
    if (rc < 0 && errno == EINTR) continue;
    if (rc <= 0) break;
    size += static_cast<size_t>(rc);
  }
  if (size != sizeof report)
    report.Fail(TarReport::Status::kInvalid, "the process that unpacks it died of it");
  return report;
}

Status CheckReport(const TarReport& report, const std::string& path) {
  if (report.status == TarReport::Status::kDone) return {};
  std::string why(report.message, std::min<size_t>(report.message_size, sizeof report.message));
  for (char& c : why)
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) >= 127) c = '?';
  switch (report.status) {
    case TarReport::Status::kNoSpace:
      return Error(ErrorCode::kResourceExhausted, fmt::format("import {}: {}", path, why))
          .WithRemedy("free disk space or inodes");
    case TarReport::Status::kIo:
      return Error(ErrorCode::kIo, fmt::format("import {}: {}", path, why));
    case TarReport::Status::kNotConfined:
      return Error(ErrorCode::kIsolationFailed,
                   fmt::format("confine the import of {}: {}", path, why))
          .WithRemedy(
              "run as root, or allow unprivileged user namespaces; `caisson doctor` says more");
    default:
      return InvalidImage(
          path, why,
          "give a tar of a root (plain, gzip, xz or zstd) made by a tool that can be trusted");
  }
}

}  // namespace

Result<RootPlan> ImportTar(const std::string& path, const std::string& cache_dir,
                           const ImportLimits& limits) {
  CAISSON_TRY(OpenCacheDir(cache_dir));
  const std::string roots_dir = cache_dir + "/roots";
  CAISSON_ASSIGN(const UniqueFd roots, OpenCacheDir(roots_dir));
  const auto plan_of = [&](const std::string& name) {
    return RootPlan{name, {{"/", roots_dir + "/" + name}}};
  };
  CAISSON_ASSIGN(const Archive archive, OpenArchive(path));
  if (const std::string known = ReadIndex(roots.get(), archive.info);
      !known.empty() && FindEntry(roots.get(), known) == CacheEntry::kPresent) {
    return plan_of(known);
  }
  CAISSON_ASSIGN(const std::string digest, DigestOfArchive(archive.fd.get()));
  const std::string name = EntryName(digest);
  if (FindEntry(roots.get(), name) == CacheEntry::kAbsent) {
    const Deadline deadline(limits.deadline_seconds);
    CAISSON_ASSIGN(DraftDir draft, DraftDir::Create(roots.get()));
    CAISSON_ASSIGN(const TarJail jail, StartTarJail(roots_dir + "/" + draft.name(), limits));
    CAISSON_ASSIGN(const std::string fed, FeedAll(archive.fd.get(), jail, deadline));
    CAISSON_ASSIGN(const TarReport report, ReadReport(jail, deadline));
    CAISSON_TRY(CheckReport(report, path));
    if (fed != digest) {
      return Error(ErrorCode::kConflict, fmt::format("{} changed while it was imported", path))
          .WithRemedy("try again when it is complete");
    }
    CAISSON_TRY(CheckUnpacked(draft.fd(), path));
    // The cache trusts what it finds after a power loss, so content comes before name.
    if (::syncfs(draft.fd()) != 0) return Error::FromErrno("flush the imported root");
    CAISSON_TRY(std::move(draft).Commit(name));
  }
  struct stat now;
  if (::fstat(archive.fd.get(), &now) == 0 && SameFile(now, archive.info) &&
      ::time(nullptr) - now.st_ctime > kSettled)
    CAISSON_TRY(WriteCacheFile(roots.get(), IndexName(now), name));
  return plan_of(name);
}

Result<RootPlan> DirectoryRoot(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(::realpath(path.c_str(), nullptr),
                                                         &std::free);
  UniqueFd fd(real ? ::open(real.get(), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1);
  if (!fd) {
    return InvalidImage(path, errno == ENOTDIR ? "it is not a directory" : strerror(errno),
                        "name a directory that holds a root and is readable");
  }
  struct stat info;
  struct stat host;
  if (::fstat(fd.get(), &info) != 0 || ::stat("/", &host) != 0)
    return Error::FromErrno("stat " + path);
  if (info.st_dev == host.st_dev && info.st_ino == host.st_ino)
    return InvalidImage(path, "it is the host's own root, with everything in it",
                        "use the environment 'host'");
  if (::faccessat(fd.get(), ".", R_OK | X_OK, AT_EACCESS) != 0)
    return InvalidImage(path, "it is not readable", "chmod it to 0755");
  CAISSON_TRY(CheckTree(fd.get(), path));
  return RootPlan{fmt::format("dir-{:x}-{:x}", info.st_dev, info.st_ino), {{"/", real.get()}}};
}

}  // namespace caisson::native
