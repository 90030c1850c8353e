#include <sys/stat.h>

#include "api/file_pump.h"
#include "api/tar_transfer.h"

namespace caisson::api {
namespace {

using sandbox::FileInfo;

constexpr uint32_t kPage = 256;
constexpr uint64_t kMaxEntries = 1'000'000;

class Packer {
 public:
  Packer(async::Loop& loop, const SessionFiles& at, Unreadable unreadable, ArchiveSink sink)
      : loop_(loop), at_(at), unreadable_(unreadable), sink_(std::move(sink)) {}

  // The file at `path` as `name`.
  Task<Status> PutFile(std::string path, std::string name);
  // Everything below the directory `path`.
  Task<Status> PutTree(std::string path);
  Task<Status> Finish();

 private:
  struct Directory {
    std::string path, name;
  };
  Task<Status> PutEntry(const Directory* in, const FileInfo* info);
  Task<Status> PutPage(const Directory* in, const std::vector<FileInfo>* entries);
  Task<Status> Put(std::string bytes);
  Status Count();
  // Whether what failed so is left out.
  bool Forgives(const Error& error) const {
    return error.code() == ErrorCode::kNotFound ||
           (error.code() == ErrorCode::kPermissionDenied && unreadable_ == Unreadable::kSkip);
  }

  async::Loop& loop_;
  const SessionFiles& at_;
  const Unreadable unreadable_;
  const ArchiveSink sink_;
  uint64_t entries_ = 0;
  std::string waiting_;  // small things go out together
  std::vector<Directory> directories_;
};

TarEntry EntryOf(std::string name, TarKind kind, const FileInfo& info) {
  TarEntry entry;
  entry.path = std::move(name);
  entry.kind = kind;
  entry.permissions = info.mode & 0777;
  if (kind == TarKind::kFile) entry.size = info.size;
  if (kind == TarKind::kSymlink) entry.target = info.target;
  return entry;
}

TarFacts FactsOf(const FileInfo& info) {
  return {info.uid, info.gid, info.mtime_ns / 1'000'000'000};
}

bool IsKernels(const std::string& path) {
  return path == "/proc" || path == "/sys" || path == "/dev";
}

Task<Status> Packer::Put(std::string bytes) {
  waiting_ += bytes;
  if (waiting_.size() < kFilePiece) co_return Status();
  co_return co_await sink_(std::exchange(waiting_, {}));
}

Status Packer::Count() {
  if (++entries_ <= kMaxEntries) return {};
  return Error(ErrorCode::kTooLarge, "there are more than 1000000 files")
      .WithRemedy("ask for the directories one by one");
}

Task<Status> Packer::PutFile(std::string path, std::string name) {
  auto file = co_await at_.files->OpenRead(std::move(path), at_.user);
  if (!file) co_return std::move(file).error();
  const FileInfo& info = (*file)->info();
  CAISSON_CO_TRY(Count());
  CAISSON_CO_TRY(
      co_await Put(TarHeader(EntryOf(std::move(name), TarKind::kFile, info), FactsOf(info))));
  FileSource source(loop_, **file, 0, info.size);
  for (;;) {
    CAISSON_CO_ASSIGN(std::string piece, co_await source.Next());
    if (piece.empty()) break;
    CAISSON_CO_TRY(co_await Put(std::move(piece)));
  }
  co_return co_await Put(TarPadding(info.size));
}

Task<Status> Packer::PutEntry(const Directory* in, const FileInfo* info) {
  std::string path = JoinPath(in->path, info->name);
  std::string name = in->name.empty() ? info->name : in->name + "/" + info->name;
  if (S_ISREG(info->mode)) {
    auto put = co_await PutFile(std::move(path), std::move(name));
    if (!put && Forgives(put.error())) co_return Status();
    co_return put;
  }
  if (!S_ISDIR(info->mode) && !S_ISLNK(info->mode)) co_return Status();
  if (IsKernels(path)) co_return Status();
  CAISSON_CO_TRY(Count());
  const TarKind kind = S_ISDIR(info->mode) ? TarKind::kDirectory : TarKind::kSymlink;
  std::string header = TarHeader(EntryOf(name, kind, *info), FactsOf(*info));
  if (kind == TarKind::kDirectory) directories_.push_back({std::move(path), std::move(name)});
  co_return co_await Put(std::move(header));
}

Task<Status> Packer::PutPage(const Directory* in, const std::vector<FileInfo>* entries) {
  for (const FileInfo& info : *entries) CAISSON_CO_TRY(co_await PutEntry(in, &info));
  co_return Status();
}

Task<Status> Packer::PutTree(std::string path) {
  directories_.push_back({path, ""});
  while (!directories_.empty()) {
    const Directory directory = std::move(directories_.back());
    directories_.pop_back();
    uint64_t cursor = 0;
    do {
      auto page = co_await at_.files->List(directory.path, at_.user, cursor, kPage);
      if (!page && !directory.name.empty() && Forgives(page.error())) break;
      if (!page) co_return std::move(page).error();
      if (entries_ == 0)
        CAISSON_CO_TRY(co_await Put(TarHeader({"", TarKind::kDirectory, 0755}, {})));
      CAISSON_CO_TRY(co_await PutPage(&directory, &page->entries));
      cursor = page->next;
    } while (cursor != 0);
  }
  co_return Status();
}

Task<Status> Packer::Finish() {
  waiting_ += TarEnd();
  co_return co_await sink_(std::exchange(waiting_, {}));
}

}  // namespace

Task<Status> PackTar(async::Loop* loop, const SessionFiles* at, std::string path,
                     Unreadable unreadable, ArchiveSink sink) {
  CAISSON_CO_ASSIGN(const FileInfo info,
                    co_await at->files->Stat(path, at->user, sandbox::Follow::kYes));
  Packer packer(*loop, *at, unreadable, std::move(sink));
  if (S_ISDIR(info.mode))
    CAISSON_CO_TRY(co_await packer.PutTree(path));
  else
    CAISSON_CO_TRY(co_await packer.PutFile(path, path.substr(path.rfind('/') + 1)));
  co_return co_await packer.Finish();
}

}  // namespace caisson::api
