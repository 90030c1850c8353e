#include "providers/native/tar_extract.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <ranges>
#include <utility>

#include "sys/mounts.h"
#include "sys/unique_fd.h"

namespace caisson::native {
namespace {

using sys::UniqueFd;
using Why = TarReport::Status;

constexpr mode_t kModeBits = 01777;  // no set-id bits
constexpr uint64_t kMiB = 1 << 20;
constexpr int64_t kLastId = 65535;
constexpr unsigned kNobody = 65534;
constexpr size_t kMaxName = 4095;
constexpr size_t kMaxPart = 255;

struct Failure {
  Why why;
  std::string text;
};
using Outcome = std::optional<Failure>;  // empty: go on

Failure Invalid(std::string text) { return {Why::kInvalid, std::move(text)}; }

Failure FromErrno(std::string_view attempt, std::string_view name) {
  const int number = errno;
  const Why why = number == ENOSPC || number == EDQUOT ? Why::kNoSpace
                  : number == EFBIG                    ? Why::kInvalid
                                                       : Why::kIo;
  return {why, fmt::format("{} '{}': {}", attempt, name, strerror(number))};
}

// What an entry sets on the file that it made.
struct Attributes {
  mode_t mode;
  unsigned uid;
  unsigned gid;
  timespec mtime;
};

Attributes AttributesOf(archive_entry* entry) {
  const auto id = [](int64_t value) {
    return value < 0 || value > kLastId ? kNobody : static_cast<unsigned>(value);
  };
  return {.mode = archive_entry_perm(entry) & kModeBits,
          .uid = id(archive_entry_uid(entry)),
          .gid = id(archive_entry_gid(entry)),
          .mtime = {archive_entry_mtime(entry),
                    std::clamp<long>(archive_entry_mtime_nsec(entry), 0, 999'999'999)}};
}

struct Source {
  int fd;
  uint64_t max_window;
  bool first = true;
  alignas(64) char buffer[128 * 1024];
};

la_ssize_t ReadInput(archive* reader, void* context, const void** data) {
  auto* source = static_cast<Source*>(context);
  size_t size = 0;
  // The first block is filled whole, since its head is judged.
  do {
    const ssize_t rc = ::read(source->fd, source->buffer + size, sizeof source->buffer - size);
    if (rc < 0 && errno == EINTR) continue;
    if (rc < 0) return archive_set_error(reader, errno, "cannot read the archive"), -1;
    if (rc == 0) break;
    size += static_cast<size_t>(rc);
  } while (source->first && size < sizeof source->buffer);
  if (source->first) {
    const uint64_t window =
        DeclaredWindow({reinterpret_cast<unsigned char*>(source->buffer), size});
    if (window > source->max_window) {
      const std::string why =
          fmt::format("it is compressed with a window of {} MiB, more than {} MiB", window / kMiB,
                      source->max_window / kMiB);
      return archive_set_error(reader, EINVAL, "%s", why.c_str()), -1;
    }
  }
  source->first = false;
  *data = source->buffer;
  return static_cast<la_ssize_t>(size);
}

class Extractor {
 public:
  Extractor(int root_fd, TarOwners owners, const ImportLimits& limits)
      : root_(root_fd), owners_(owners), limits_(limits) {}

  Outcome Run(archive* reader) {
    if (archive_filter_count(reader) > 2) return Invalid("it is compressed more than once");
    for (;;) {
      archive_entry* entry = nullptr;
      const int rc = archive_read_next_header(reader, &entry);
      if (rc == ARCHIVE_EOF) break;
      if (rc != ARCHIVE_OK && rc != ARCHIVE_WARN) return Invalid(archive_error_string(reader));
      if (++entries_ > limits_.max_entries)
        return Invalid(fmt::format("it has more than {} entries", limits_.max_entries));
      if (auto failed = One(reader, entry)) return failed;
      if (auto failed = CheckRatio(reader)) return failed;
    }
    if (entries_ == 0) return Invalid("it is empty");
    return FinishDirectories();
  }

  uint64_t entries() const { return entries_; }
  uint64_t bytes() const { return bytes_; }

 private:
  Outcome One(archive* reader, archive_entry* entry) {
    const char* raw = archive_entry_pathname(entry);
    if (raw == nullptr) return Invalid("an entry has no readable name");
    auto name = NormalEntryName(raw);
    if (!name) return Invalid(name.error().message());
    if (name->empty()) return {};  // the root itself keeps the rights we gave it
    if (const char* link = archive_entry_hardlink(entry); link != nullptr)
      return HardLink(*name, link);
    switch (archive_entry_filetype(entry)) {
      case AE_IFDIR:
        return Directory(*name, AttributesOf(entry));
      case AE_IFREG:
        return File(reader, entry, *name);
      case AE_IFLNK:
        return SymbolicLink(*name, archive_entry_symlink(entry), AttributesOf(entry));
      default:
        return {};  // devices, FIFOs, sockets
    }
  }

  // The directory that holds `name`, made if it is missing, never through a link.
  Outcome OpenParent(const std::string& name) {
    const size_t slash = name.rfind('/');
    const std::string parent = slash == std::string::npos ? std::string() : name.substr(0, slash);
    if (parent_ && parent == parent_name_) return {};
    parent_name_ = parent;
    parent_.Reset(sys::OpenBeneath(root_, parent.c_str(), O_PATH | O_DIRECTORY));
    if (parent_) return {};
    UniqueFd at(::openat(root_, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (size_t start = 0; start <= parent.size();) {
      const size_t end = std::min(parent.find('/', start), parent.size());
      const std::string part = parent.substr(start, end - start);
      if (::mkdirat(at.get(), part.c_str(), 0700) == 0) {
        directories_.try_emplace(parent.substr(0, end), Attributes{0755, 0, 0, {}});
      } else if (errno != EEXIST) {
        return FromErrno("mkdir", parent);
      }
      at.Reset(::openat(at.get(), part.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!at) return Invalid(fmt::format("the entry '{}' goes through a link or a file", name));
      start = end + 1;
    }
    parent_ = std::move(at);
    return {};
  }

  static const char* BaseOf(const std::string& name) {
    return name.c_str() + (name.rfind('/') + 1);
  }

  // Makes room for a new `name` in the open parent: a later entry replaces an earlier one.
  Outcome Clear(const std::string& name) {
    if (::unlinkat(parent_.get(), BaseOf(name), 0) == 0 || errno == ENOENT) return {};
    if (errno == EISDIR || errno == EPERM)
      return Invalid(fmt::format("the entry '{}' replaces a directory", name));
    return FromErrno("replace", name);
  }

  Outcome Directory(const std::string& name, const Attributes& attributes) {
    if (auto failed = OpenParent(name)) return failed;
    if (::mkdirat(parent_.get(), BaseOf(name), 0700) != 0) {
      struct stat info;
      if (errno != EEXIST ||
          ::fstatat(parent_.get(), BaseOf(name), &info, AT_SYMLINK_NOFOLLOW) != 0)
        return FromErrno("mkdir", name);
      if (!S_ISDIR(info.st_mode)) {
        if (auto failed = Clear(name)) return failed;
        if (::mkdirat(parent_.get(), BaseOf(name), 0700) != 0) return FromErrno("mkdir", name);
      }
    }
    directories_.insert_or_assign(name, attributes);
    return {};
  }

  Outcome File(archive* reader, archive_entry* entry, const std::string& name) {
    if (auto failed = OpenParent(name)) return failed;
    if (auto failed = Clear(name)) return failed;
    const int64_t declared = archive_entry_size_is_set(entry) ? archive_entry_size(entry) : 0;
    if (declared < 0 || static_cast<uint64_t>(declared) > limits_.max_file_bytes)
      return Invalid(
          fmt::format("the file '{}' is larger than {} bytes", name, limits_.max_file_bytes));
    bytes_ += static_cast<uint64_t>(declared);
    if (bytes_ > limits_.max_bytes)
      return Invalid(fmt::format("it unpacks to more than {} bytes", limits_.max_bytes));
    UniqueFd file(::openat(parent_.get(), BaseOf(name),
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return FromErrno("create", name);
    if (auto failed = CopyData(reader, file.get(), name, static_cast<uint64_t>(declared)))
      return failed;
    if (declared > 0 && ::ftruncate(file.get(), declared) != 0) return FromErrno("size", name);
    const Attributes attributes = AttributesOf(entry);
    if (owners_ == TarOwners::kKeep && ::fchown(file.get(), attributes.uid, attributes.gid) != 0)
      return FromErrno("chown", name);
    if (::fchmod(file.get(), attributes.mode) != 0) return FromErrno("chmod", name);
    const timespec times[2] = {attributes.mtime, attributes.mtime};
    ::futimens(file.get(), times);  // a date that the file system cannot hold is no reason to fail
    return {};
  }

  Outcome CopyData(archive* reader, int file, const std::string& name, uint64_t declared) {
    for (;;) {
      const void* data = nullptr;
      size_t size = 0;
      la_int64_t offset = 0;
      const int rc = archive_read_data_block(reader, &data, &size, &offset);
      if (rc == ARCHIVE_EOF) return {};
      if (rc != ARCHIVE_OK && rc != ARCHIVE_WARN)
        return Invalid(fmt::format("the file '{}': {}", name, archive_error_string(reader)));
      if (offset < 0 || static_cast<uint64_t>(offset) > declared ||
          size > declared - static_cast<uint64_t>(offset))
        return Invalid(fmt::format("the file '{}' holds more than it says", name));
      for (size_t done = 0; done < size;) {
        const ssize_t wrote = ::pwrite(file, static_cast<const char*>(data) + done, size - done,
                                       offset + static_cast<off_t>(done));
        if (wrote <= 0) return FromErrno("write", name);
        done += static_cast<size_t>(wrote);
      }
      if (auto failed = CheckRatio(reader)) return failed;
    }
  }

  Outcome SymbolicLink(const std::string& name, const char* target, const Attributes& attributes) {
    if (target == nullptr || *target == 0 || std::strlen(target) > kMaxName)
      return Invalid(fmt::format("the link '{}' has no usable target", name));
    if (auto failed = OpenParent(name)) return failed;
    if (auto failed = Clear(name)) return failed;
    if (::symlinkat(target, parent_.get(), BaseOf(name)) != 0) return FromErrno("symlink", name);
    if (owners_ == TarOwners::kKeep && ::fchownat(parent_.get(), BaseOf(name), attributes.uid,
                                                  attributes.gid, AT_SYMLINK_NOFOLLOW) != 0) {
      return FromErrno("chown", name);
    }
    return {};
  }

  // The tree was empty at first, so a regular file that is there came from this archive.
  Outcome HardLink(const std::string& name, const char* raw_target) {
    auto target = NormalEntryName(raw_target);
    if (!target || target->empty())
      return Invalid(fmt::format("the hard link '{}' leads outside", name));
    if (*target == name) return {};
    const size_t slash = target->rfind('/');
    UniqueFd from(
        sys::OpenBeneath(root_, slash == std::string::npos ? "" : target->substr(0, slash).c_str(),
                         O_PATH | O_DIRECTORY));
    struct stat info;
    if (!from || ::fstatat(from.get(), BaseOf(*target), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(info.st_mode))
      return Invalid(fmt::format(
          "the hard link '{}' leads to '{}', which is no file of this archive", name, *target));
    if (auto failed = OpenParent(name)) return failed;
    if (auto failed = Clear(name)) return failed;
    if (::linkat(from.get(), BaseOf(*target), parent_.get(), BaseOf(name), 0) != 0)
      return FromErrno("link", name);
    return {};
  }

  Outcome CheckRatio(archive* reader) {
    const auto packed =
        static_cast<uint64_t>(std::max<la_int64_t>(archive_filter_bytes(reader, -1), 0));
    const auto unpacked =
        static_cast<uint64_t>(std::max<la_int64_t>(archive_filter_bytes(reader, 0), 0));
    if (unpacked > limits_.max_bytes + limits_.max_entries * 1024)
      return Invalid(fmt::format("it unpacks to more than {} bytes", limits_.max_bytes));
    if (unpacked > kMiB && unpacked / limits_.max_ratio > packed)
      return Invalid(fmt::format("it unpacks to more than {} times its size", limits_.max_ratio));
    return {};
  }

  // Rights come last, children before parents, since they may forbid what the entries needed.
  Outcome FinishDirectories() {
    parent_.Reset();
    for (const auto& [name, attributes] : directories_ | std::views::reverse) {
      UniqueFd dir(sys::OpenBeneath(root_, name.c_str(), O_RDONLY | O_DIRECTORY));
      if (!dir) continue;  // a later entry put something else in its place
      if (owners_ == TarOwners::kKeep && ::fchown(dir.get(), attributes.uid, attributes.gid) != 0)
        return FromErrno("chown", name);
      const timespec times[2] = {attributes.mtime, attributes.mtime};
      ::futimens(dir.get(), times);
      if (::fchmod(dir.get(), attributes.mode) != 0) return FromErrno("chmod", name);
    }
    return {};
  }

  int root_;
  TarOwners owners_;
  const ImportLimits& limits_;
  uint64_t entries_ = 0;
  uint64_t bytes_ = 0;
  std::string parent_name_;
  UniqueFd parent_;
  std::map<std::string, Attributes> directories_;
};

}  // namespace

void TarReport::Fail(Status why, std::string_view text) {
  status = why;
  message_size = static_cast<uint32_t>(std::min(text.size(), sizeof message));
  std::memcpy(message, text.data(), message_size);
}

TarReport ExtractTar(int input_fd, int root_fd, TarOwners owners, const ImportLimits& limits) {
  TarReport report;
  try {
    std::unique_ptr<archive, int (*)(archive*)> reader(archive_read_new(), archive_read_free);
    const auto source = std::make_unique<Source>(Source{input_fd, limits.max_window});
    Extractor extractor(root_fd, owners, limits);
    const void* rest = nullptr;
    archive_read_support_filter_gzip(reader.get());
    archive_read_support_filter_xz(reader.get());
    archive_read_support_filter_zstd(reader.get());
    archive_read_support_format_tar(reader.get());
    if (archive_read_open(reader.get(), source.get(), nullptr, ReadInput, nullptr) != ARCHIVE_OK) {
      const char* text = archive_error_string(reader.get());
      report.Fail(Why::kInvalid, text != nullptr ? text : "it is not a tar archive");
    } else if (const auto failed = extractor.Run(reader.get())) {
      report.Fail(failed->why, failed->text);
    } else {
      // What follows the end of the archive counts for its digest, so it is heard to the end.
      while (ReadInput(reader.get(), source.get(), &rest) > 0) {
      }
      report.status = Why::kDone;
    }
    report.entries = extractor.entries();
    report.bytes = extractor.bytes();
  } catch (const std::bad_alloc&) {
    report.Fail(Why::kInvalid, "it needs more memory than an import may use");
  }
  return report;
}

Result<std::string> NormalEntryName(std::string_view name) {
  const auto bad = [&](const char* rule) {
    return Error(ErrorCode::kImageInvalid,
                 fmt::format("the entry '{}' {}", name.substr(0, 200), rule));
  };
  if (name.size() > kMaxName) return bad("has too long a name");
  if (name.starts_with('/')) return bad("has an absolute name");
  std::string normal;
  while (!name.empty()) {
    const size_t end = std::min(name.find('/'), name.size());
    const std::string_view part = name.substr(0, end);
    if (part == "..") return bad("leaves the archive with '..'");
    if (part.size() > kMaxPart) return bad("has too long a name");
    if (!part.empty() && part != ".") normal.append(normal.empty() ? "" : "/").append(part);
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return normal;
}

uint64_t DeclaredWindow(std::span<const unsigned char> head) {
  const auto byte = [&](size_t at) -> uint64_t { return at < head.size() ? head[at] : 0; };
  const auto begins = [&](std::span<const unsigned char> magic) {
    return head.size() > magic.size() && std::equal(magic.begin(), magic.end(), head.begin());
  };
  // RFC 8878 §3.1.1.1: frame header.
  if (constexpr unsigned char kZstd[] = {0x28, 0xb5, 0x2f, 0xfd}; begins(kZstd)) {
    const uint64_t descriptor = byte(4);
    if ((descriptor & 0x20) == 0) {
      const uint64_t base = uint64_t{1} << (10 + (byte(5) >> 3));
      return base + base / 8 * (byte(5) & 7);
    }
    constexpr size_t kIdSize[] = {0, 1, 2, 4};
    constexpr size_t kContentSize[] = {1, 2, 4, 8};
    const size_t at = 5 + kIdSize[descriptor & 3];
    uint64_t content = 0;
    for (size_t i = 0; i < kContentSize[descriptor >> 6]; ++i) content |= byte(at + i) << (8 * i);
    return content;
  }
  // The .xz file format 3.1: the first block's header follows the 12 bytes of the stream's.
  if (constexpr unsigned char kXz[] = {0xfd, '7', 'z', 'X', 'Z', 0}; begins(kXz)) {
    const size_t end = std::min<size_t>(12 + (byte(12) + 1) * 4, head.size());
    size_t at = 14;
    for (const uint64_t flag : {0x40, 0x80}) {
      if ((byte(13) & flag) == 0) continue;
      while (at < end && (byte(at) & 0x80) != 0) ++at;
      ++at;
    }
    for (uint64_t filter = 0; filter <= (byte(13) & 3) && at + 2 < end; ++filter) {
      const uint64_t id = byte(at);
      const uint64_t size = byte(at + 1);
      if (id == 0x21) {
        const uint64_t bits = byte(at + 2) & 0x3f;
        return bits >= 40 ? UINT32_MAX : (2 | (bits & 1)) << (bits / 2 + 11);
      }
      at += 2 + size;
    }
  }
  return 0;
}

}  // namespace caisson::native
