#include "cli/tar_pipe.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <fts.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/text.h"

namespace caisson::cli {
namespace {

constexpr size_t kPiece = 64 << 10;

struct FreeArchive {
  void operator()(archive* of) const { archive_free(of); }
};
struct FreeEntry {
  void operator()(archive_entry* of) const { archive_entry_free(of); }
};
struct CloseWalk {
  void operator()(FTS* of) const { fts_close(of); }
};
using ArchivePtr = std::unique_ptr<archive, FreeArchive>;
using EntryPtr = std::unique_ptr<archive_entry, FreeEntry>;

Error ArchiveError(archive* of, std::string_view attempt) {
  const char* said = archive_error_string(of);
  return Error(ErrorCode::kIo, Concat({attempt, ": ", said == nullptr ? "unknown error" : said}));
}

// Where an archive's bytes go. Once it is cut, the rest goes nowhere: the reader sees an archive
// without an end. libarchive is never told of a failure, since it then leaks its buffers.
struct PackSink {
  int fd;
  int error_number = 0;
  bool cut = false;

  static la_ssize_t Write(archive* /*of*/, void* data, const void* bytes, size_t size) {
    auto* sink = static_cast<PackSink*>(data);
    const char* at = static_cast<const char*>(bytes);
    for (size_t left = size; left > 0 && !sink->cut;) {
      const ssize_t wrote = write(sink->fd, at, left);
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0) {
        sink->error_number = errno;
        sink->cut = true;
        break;
      }
      at += wrote;
      left -= static_cast<size_t>(wrote);
    }
    return static_cast<la_ssize_t>(size);
  }
};

// The file's bytes, exactly as many as its header promised.
Status PackData(archive* to, const FTSENT& file) {
  const sys::UniqueFd fd(open(file.fts_accpath, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return Error::FromErrno(Concat({"opening ", file.fts_path}));
  std::string buffer(kPiece, '\0');
  for (auto left = static_cast<uint64_t>(file.fts_statp->st_size); left > 0;) {
    const size_t want = std::min<uint64_t>(left, buffer.size());
    const ssize_t got = read(fd.get(), buffer.data(), want);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::FromErrno(Concat({"reading ", file.fts_path}));
    if (got == 0)
      return Error(ErrorCode::kConflict, Concat({file.fts_path, " became shorter meanwhile"}))
          .WithRemedy("copy it when nobody writes to it");
    if (archive_write_data(to, buffer.data(), static_cast<size_t>(got)) < 0)
      return ArchiveError(to, "packing");
    left -= static_cast<uint64_t>(got);
  }
  return {};
}

Status PackOne(archive* to, const FTSENT& file, size_t root) {
  const EntryPtr entry(archive_entry_new());
  const struct stat& info = *file.fts_statp;
  archive_entry_set_pathname(entry.get(), file.fts_path + root);
  archive_entry_set_perm(entry.get(), info.st_mode & 0777);
  archive_entry_set_mtime(entry.get(), info.st_mtim.tv_sec, 0);
  if (S_ISLNK(info.st_mode)) {
    std::string target(4096, '\0');
    const ssize_t size = readlink(file.fts_accpath, target.data(), target.size() - 1);
    if (size < 0) return Error::FromErrno(Concat({"reading the link ", file.fts_path}));
    target.resize(static_cast<size_t>(size));
    archive_entry_set_filetype(entry.get(), AE_IFLNK);
    archive_entry_set_symlink(entry.get(), target.c_str());
  } else if (S_ISDIR(info.st_mode)) {
    archive_entry_set_filetype(entry.get(), AE_IFDIR);
  } else {
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_size(entry.get(), info.st_size);
  }
  if (archive_write_header(to, entry.get()) != ARCHIVE_OK)
    return ArchiveError(to, Concat({"packing ", file.fts_path}));
  return S_ISREG(info.st_mode) ? PackData(to, file) : Status();
}

Status PackInto(archive* out, std::string directory, PackSink* sink) {
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  archive_write_set_format_pax_restricted(out);
  archive_write_set_bytes_per_block(out, kPiece);
  archive_write_set_bytes_in_last_block(out, 1);
  if (archive_write_open(out, sink, nullptr, PackSink::Write, nullptr) != ARCHIVE_OK)
    return ArchiveError(out, "packing");
  char* const roots[] = {directory.data(), nullptr};
  const std::unique_ptr<FTS, CloseWalk> walk(fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, nullptr));
  if (!walk) return Error::FromErrno("walking " + directory);
  for (errno = 0; const FTSENT* file = fts_read(walk.get()); errno = 0) {
    const bool trouble =
        file->fts_info == FTS_DNR || file->fts_info == FTS_ERR || file->fts_info == FTS_NS;
    if (trouble) return Error::FromErrno(Concat({"reading ", file->fts_path}), file->fts_errno);
    const bool wanted = file->fts_info == FTS_D || file->fts_info == FTS_F ||
                        file->fts_info == FTS_SL || file->fts_info == FTS_SLNONE;
    if (!wanted || file->fts_level == FTS_ROOTLEVEL) continue;
    CAISSON_TRY(PackOne(out, *file, directory.size() + (directory == "/" ? 0 : 1)));
    if (sink->cut) return Error::FromErrno("packing", sink->error_number);
  }
  if (errno != 0) return Error::FromErrno("walking " + directory);
  if (archive_write_close(out) != ARCHIVE_OK) return ArchiveError(out, "packing");
  if (sink->cut) return Error::FromErrno("packing", sink->error_number);
  return {};
}

Status PackAll(std::string directory, int to) {
  PackSink sink{to};
  const ArchivePtr out(archive_write_new());
  auto packed = PackInto(out.get(), std::move(directory), &sink);
  if (!packed) sink.cut = true;  // cut short, it is seen to be
  return packed;
}

Status UnpackOne(archive* in, archive* disk, archive_entry* entry) {
  const char* name = archive_entry_pathname(entry);
  const std::string shown = Quoted(name == nullptr ? "" : name);
  const auto type = archive_entry_filetype(entry);
  if (archive_entry_hardlink(entry) != nullptr ||
      (type != AE_IFREG && type != AE_IFDIR && type != AE_IFLNK))
    return Error(ErrorCode::kUnsupported,
                 Concat({shown, " in the archive is no file, directory or symbolic link"}))
        .WithRemedy("remove it, or copy the files one by one");
  archive_entry_set_perm(entry, archive_entry_perm(entry) & 0777);
  if (archive_write_header(disk, entry) != ARCHIVE_OK)
    return ArchiveError(disk, Concat({"unpacking ", shown}));
  std::string buffer(kPiece, '\0');
  for (;;) {
    const la_ssize_t got = archive_read_data(in, buffer.data(), buffer.size());
    if (got < 0) return ArchiveError(in, "reading the archive");
    if (got == 0) break;
    if (archive_write_data(disk, buffer.data(), static_cast<size_t>(got)) < 0)
      return ArchiveError(disk, Concat({"unpacking ", shown}));
  }
  if (archive_write_finish_entry(disk) != ARCHIVE_OK)
    return ArchiveError(disk, Concat({"unpacking ", shown}));
  return {};
}

Status UnpackAll(const std::string& directory, int from) {
  // Names in the archive are relative to a working directory of this thread's own.
  if (unshare(CLONE_FS) != 0) return Error::FromErrno("leaving the shared working directory");
  if (chdir(directory.c_str()) != 0) return Error::FromErrno("entering " + directory);
  const ArchivePtr in(archive_read_new()), disk(archive_write_disk_new());
  archive_read_support_format_tar(in.get());
  archive_write_disk_set_options(
      disk.get(), ARCHIVE_EXTRACT_SECURE_NODOTDOT | ARCHIVE_EXTRACT_SECURE_SYMLINKS |
                      ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS | ARCHIVE_EXTRACT_UNLINK |
                      ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_TIME);
  if (archive_read_open_fd(in.get(), from, kPiece) != ARCHIVE_OK)
    return ArchiveError(in.get(), "reading the archive");
  for (;;) {
    archive_entry* entry = nullptr;
    const int got = archive_read_next_header(in.get(), &entry);
    if (got == ARCHIVE_EOF) break;
    if (got != ARCHIVE_OK) return ArchiveError(in.get(), "reading the archive");
    CAISSON_TRY(UnpackOne(in.get(), disk.get(), entry));
  }
  if (archive_write_close(disk.get()) != ARCHIVE_OK) return ArchiveError(disk.get(), "unpacking");
  return {};
}

struct Ends {
  sys::UniqueFd read, write;
};
Result<Ends> MakePipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return Error::FromErrno("making a pipe");
  return Ends{sys::UniqueFd(fds[0]), sys::UniqueFd(fds[1])};
}

}  // namespace

Result<std::unique_ptr<TarPipe>> TarPipe::Pack(std::string directory) {
  CAISSON_ASSIGN(Ends ends, MakePipe());
  if (fcntl(ends.read.get(), F_SETFL, O_NONBLOCK) != 0) return Error::FromErrno("using a pipe");
  std::unique_ptr<TarPipe> pipe(new TarPipe(std::move(ends.read)));
  pipe->thread_ = std::thread(
      [self = pipe.get(), directory = std::move(directory), to = std::move(ends.write)]() mutable {
        self->status_ = PackAll(std::move(directory), to.get());
        to.Reset();
      });
  return pipe;
}

Result<std::unique_ptr<TarPipe>> TarPipe::Unpack(std::string directory) {
  CAISSON_ASSIGN(Ends ends, MakePipe());
  std::unique_ptr<TarPipe> pipe(new TarPipe(std::move(ends.write)));
  pipe->thread_ = std::thread(
      [self = pipe.get(), directory = std::move(directory), from = std::move(ends.read)]() mutable {
        self->status_ = UnpackAll(directory, from.get());
        // What follows the end of an archive is padding; whoever writes it is not to be stopped.
        char rest[4096];
        while (self->status_ && read(from.get(), rest, sizeof rest) > 0) {
        }
        from.Reset();
      });
  return pipe;
}

TarPipe::~TarPipe() { (void)Finish(); }

Status TarPipe::Finish() {
  fd_.Reset();
  if (thread_.joinable()) thread_.join();
  return status_;
}

}  // namespace caisson::cli
