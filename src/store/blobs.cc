#include "store/blobs.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

#include "base/random.h"
#include "base/text.h"
#include "sys/remove_tree.h"

namespace caisson::store {
namespace {

constexpr std::string_view kTemporary = ".new-";
constexpr size_t kMaxParts = 16;
constexpr size_t kMaxPart = 200;
constexpr size_t kMaxId = 128;

std::string DirectoryOf(BlobArea area, std::string_view id) {
  return Concat({area == BlobArea::kSessions ? "storage/sessions/" : "storage/artifacts/", id});
}

// openat2(2) that neither leaves `dir` nor follows a link.
sys::UniqueFd OpenBeneath(int dir, const std::string& path, int flags, int mode) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.mode = static_cast<uint64_t>(mode);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return sys::UniqueFd(
      static_cast<int>(::syscall(SYS_openat2, dir, path.c_str(), &how, sizeof how)));
}

// The current errno as an Error: a full disk and a missing file have codes of their own.
Error BlobError(std::string_view attempt, std::string_view name) {
  const int error = errno;
  Error failure = Error::FromErrno(Concat({attempt, " the file ", Quoted(name)}), error);
  if (error == ENOENT || error == ENOTDIR) return std::move(failure).WithCode(ErrorCode::kNotFound);
  if (error == ENOSPC || error == EDQUOT) {
    return std::move(failure)
        .WithCode(ErrorCode::kResourceExhausted)
        .WithRemedy("free space on the file system that holds the data directory");
  }
  return failure;
}

struct Place {
  sys::UniqueFd dir;  // that the blob is in
  std::string leaf;
};

// Makes the directories that lead to a blob, each flushed into the one above.
Result<Place> MakePlace(int root, const std::string& base, std::string_view name) {
  const std::string path = Concat({base, "/", name});
  sys::UniqueFd dir = OpenBeneath(root, ".", O_RDONLY | O_DIRECTORY, 0);
  size_t begin = 0;
  for (size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', begin)) {
    const std::string part = path.substr(begin, slash - begin);
    if (!dir) return BlobError("opening the directory of", name);
    if (::mkdirat(dir.get(), part.c_str(), 0700) == 0) {
      CAISSON_TRY(SyncDirectory(dir.get(), part));
    } else if (errno != EEXIST) {
      return BlobError("making the directory of", name);
    }
    dir = OpenBeneath(dir.get(), part, O_RDONLY | O_DIRECTORY, 0);
    begin = slash + 1;
  }
  if (!dir) return BlobError("opening the directory of", name);
  return Place{std::move(dir), path.substr(begin)};
}

Status WriteAll(int fd, std::string_view bytes, std::string_view name) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return BlobError("writing", name);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};
using DirStream = std::unique_ptr<DIR, CloseDir>;

// The entries of a directory but "." and ".."; nothing when it cannot be read.
std::optional<std::vector<std::string>> NamesIn(sys::UniqueFd fd) {
  const DirStream stream(::fdopendir(fd.get()));
  if (!stream) return std::nullopt;
  (void)fd.Release();  // the stream's now
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

// Adds the files below `dir` to `list`, with their paths from the id's directory.
Status Collect(int dir, const std::string& prefix, std::vector<BlobInfo>& list) {
  const auto names = NamesIn(OpenBeneath(dir, ".", O_RDONLY | O_DIRECTORY, 0));
  if (!names) return BlobError("listing", prefix);
  for (const std::string& name : *names) {
    struct stat info{};
    if (::fstatat(dir, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;  // just removed
    if (S_ISDIR(info.st_mode)) {
      const sys::UniqueFd below = OpenBeneath(dir, name, O_RDONLY | O_DIRECTORY, 0);
      if (below) CAISSON_TRY(Collect(below.get(), Concat({prefix, name, "/"}), list));
    } else if (S_ISREG(info.st_mode) && !name.starts_with(kTemporary)) {
      list.push_back({Concat({prefix, name}), info.st_size,
                      info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1'000'000});
    }
  }
  return {};
}

Status CheckNames(std::string_view id, std::string_view name) {
  CAISSON_TRY(CheckBlobId(id));
  return CheckBlobName(name);
}

}  // namespace

Status CheckBlobId(std::string_view id) {
  const auto allowed = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_';
  };
  if (!id.empty() && id.size() <= kMaxId && std::ranges::all_of(id, allowed)) return {};
  return Error(ErrorCode::kInvalidArgument, Concat({Quoted(id), " is no id"}));
}

Status CheckBlobName(std::string_view name) {
  const auto refuse = [name] {
    return Error(ErrorCode::kInvalidArgument, Concat({Quoted(name), " is no name for a file"}))
        .WithRemedy("give a relative path without \"..\" and control characters");
  };
  size_t parts = 0;
  size_t begin = 0;
  while (begin <= name.size()) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    const auto is_control = [](char c) {
      return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    };
    if (part.empty() || part == "." || part == ".." || part.size() > kMaxPart ||
        part.starts_with(kTemporary) || std::ranges::any_of(part, is_control) ||
        ++parts > kMaxParts) {
      return refuse();
    }
    begin = end + 1;
  }
  return {};
}

BlobWriter::BlobWriter(sys::UniqueFd dir, sys::UniqueFd file, std::string temporary,
                       std::string name, int64_t limit)
    : dir_(std::move(dir)),
      file_(std::move(file)),
      temporary_(std::move(temporary)),
      name_(std::move(name)),
      limit_(limit) {}

BlobWriter::BlobWriter(BlobWriter&& other) noexcept
    : dir_(std::move(other.dir_)),
      file_(std::move(other.file_)),
      temporary_(std::exchange(other.temporary_, {})),
      name_(std::move(other.name_)),
      limit_(other.limit_),
      size_(other.size_),
      hash_(other.hash_) {}

BlobWriter::~BlobWriter() {
  if (!temporary_.empty()) ::unlinkat(dir_.get(), temporary_.c_str(), 0);
}

Status BlobWriter::Append(std::string_view bytes) {
  if (static_cast<int64_t>(bytes.size()) > limit_ - size_) {
    return Error(ErrorCode::kResourceExhausted,
                 Concat({"the file ", Quoted(name_), " is larger than the ", std::to_string(limit_),
                         " bytes allowed"}))
        .WithRemedy("keep a smaller file, or ask for a greater quota");
  }
  CAISSON_TRY(WriteAll(file_.get(), bytes, name_));
  size_ += static_cast<int64_t>(bytes.size());
  hash_.Update(bytes);
  return {};
}

Result<BlobWriter::Committed> BlobWriter::Commit() {
  if (temporary_.empty()) return Error(ErrorCode::kInternal, "the blob is committed already");
  if (::fsync(file_.get()) != 0) return BlobError("flushing", name_);
  if (::renameat(dir_.get(), temporary_.c_str(), dir_.get(), name_.c_str()) != 0) {
    return BlobError("placing", name_);
  }
  temporary_.clear();
  CAISSON_TRY(SyncDirectory(dir_.get(), name_));
  return Committed{size_, hash_.HexDigest()};
}

Result<std::string> BlobReader::ReadAt(int64_t offset, size_t max) const {
  if (offset < 0) return Error(ErrorCode::kInvalidArgument, "an offset is not negative");
  const auto left = static_cast<uint64_t>(std::max<int64_t>(0, size_ - offset));
  std::string bytes(static_cast<size_t>(std::min<uint64_t>(max, left)), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::pread(file_.get(), bytes.data() + done, bytes.size() - done,
                                offset + static_cast<int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::FromErrno("reading a kept file");
    if (got == 0) break;  // it was cut meanwhile
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

Result<BlobWriter> Blobs::Create(BlobArea area, std::string_view id, std::string_view name,
                                 int64_t limit) {
  CAISSON_TRY(CheckNames(id, name));
  CAISSON_ASSIGN(Place place, MakePlace(dir_->fd(), DirectoryOf(area, id), name));
  const std::string temporary = Concat({kTemporary, RandomBase62(16)});
  sys::UniqueFd file = OpenBeneath(place.dir.get(), temporary, O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (!file) return BlobError("creating", name);
  return BlobWriter(std::move(place.dir), std::move(file), temporary, std::move(place.leaf), limit);
}

Status Blobs::AppendLog(BlobArea area, std::string_view id, std::string_view name,
                        std::string_view bytes, int64_t rotate_at) {
  CAISSON_TRY(CheckNames(id, name));
  CAISSON_ASSIGN(const Place place, MakePlace(dir_->fd(), DirectoryOf(area, id), name));
  struct stat info{};
  const bool exists =
      ::fstatat(place.dir.get(), place.leaf.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
  if (exists && info.st_size > 0 && info.st_size + static_cast<int64_t>(bytes.size()) > rotate_at) {
    const std::string older = place.leaf + ".1";
    if (::renameat(place.dir.get(), place.leaf.c_str(), place.dir.get(), older.c_str()) != 0) {
      return BlobError("rotating", name);
    }
  }
  const sys::UniqueFd file =
      OpenBeneath(place.dir.get(), place.leaf, O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (!file) return BlobError("opening", name);
  return WriteAll(file.get(), bytes, name);
}

Result<BlobReader> Blobs::Open(BlobArea area, std::string_view id, std::string_view name) {
  CAISSON_TRY(CheckNames(id, name));
  const std::string path = Concat({DirectoryOf(area, id), "/", name});
  sys::UniqueFd file = OpenBeneath(dir_->fd(), path, O_RDONLY | O_NONBLOCK, 0);
  if (!file) return BlobError("opening", name);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return BlobError("opening", name);
  if (!S_ISREG(info.st_mode)) {
    return Error(ErrorCode::kNotFound, Concat({Quoted(name), " is no file"}));
  }
  return BlobReader(std::move(file), info.st_size);
}

Result<std::vector<BlobInfo>> Blobs::List(BlobArea area, std::string_view id) {
  CAISSON_TRY(CheckBlobId(id));
  std::vector<BlobInfo> list;
  const sys::UniqueFd dir =
      OpenBeneath(dir_->fd(), DirectoryOf(area, id), O_RDONLY | O_DIRECTORY, 0);
  if (!dir && errno == ENOENT) return list;
  if (!dir) return BlobError("listing", id);
  CAISSON_TRY(Collect(dir.get(), "", list));
  std::ranges::sort(list, {}, &BlobInfo::name);
  return list;
}

Status Blobs::Remove(BlobArea area, std::string_view id, std::string_view name) {
  CAISSON_TRY(CheckNames(id, name));
  const std::string path = Concat({DirectoryOf(area, id), "/", name});
  const size_t slash = path.rfind('/');
  const sys::UniqueFd dir =
      OpenBeneath(dir_->fd(), path.substr(0, slash), O_RDONLY | O_DIRECTORY, 0);
  if (!dir) return BlobError("removing", name);
  if (::unlinkat(dir.get(), path.c_str() + slash + 1, 0) != 0) return BlobError("removing", name);
  return {};
}

Status Blobs::RemoveAll(BlobArea area, std::string_view id) {
  CAISSON_TRY(CheckBlobId(id));
  const sys::UniqueFd above =
      OpenBeneath(dir_->fd(), DirectoryOf(area, ""), O_RDONLY | O_DIRECTORY, 0);
  if (!above) return BlobError("removing", id);
  CAISSON_TRY(sys::RemoveTree(above.get(), std::string(id).c_str()));
  return {};
}

Result<int64_t> Blobs::ModifiedMs(BlobArea area, std::string_view id) {
  CAISSON_TRY(CheckBlobId(id));
  const sys::UniqueFd dir =
      OpenBeneath(dir_->fd(), DirectoryOf(area, id), O_RDONLY | O_DIRECTORY, 0);
  struct stat info{};
  if (!dir || ::fstat(dir.get(), &info) != 0) return BlobError("looking at", id);
  return info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1'000'000;
}

Result<std::vector<std::string>> Blobs::Ids(BlobArea area) {
  auto names = NamesIn(OpenBeneath(dir_->fd(), DirectoryOf(area, ""), O_RDONLY | O_DIRECTORY, 0));
  if (!names) return BlobError("listing", "storage");
  std::ranges::sort(*names);
  return *std::move(names);
}

}  // namespace caisson::store
