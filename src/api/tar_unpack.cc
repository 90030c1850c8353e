#include "api/file_pump.h"
#include "api/tar_transfer.h"

namespace caisson::api {
namespace {

using sandbox::Parents;

class Unpacker {
 public:
  Unpacker(async::Loop& loop, const SessionFiles& at, std::string root)
      : loop_(loop), at_(at), root_(std::move(root)) {}

  Task<Status> MakeRoot() { return MakeDirectory(root_, 0755); }
  Task<Status> Begin(TarEntry entry);
  Task<Status> Put(std::string data) {
    bytes_ += data.size();
    return sink_->Put(std::move(data));
  }
  // Completes the file that is being written, if there is one.
  Task<Status> EndFile();
  // Gives directories the permissions that would have kept us out of them.
  Task<Status> Close();
  uint64_t bytes() const { return bytes_; }

 private:
  Task<Status> BeginDirectory(std::string path, uint32_t permissions);
  Task<Status> MakeDirectory(std::string path, uint32_t permissions);
  Task<Status> OpenFile(std::string path, uint32_t permissions);
  Task<Status> MakeLink(std::string target, std::string path);
  Task<Status> Copy(std::string from, std::string to, uint32_t permissions);

  async::Loop& loop_;
  const SessionFiles& at_;
  const std::string root_;
  uint64_t bytes_ = 0;
  std::vector<std::pair<std::string, uint32_t>> closed_;  // directories, and what they are to have
  std::unique_ptr<sandbox::File> file_;
  std::optional<FileSink> sink_;
};

Task<Status> Unpacker::Begin(TarEntry entry) {
  std::string path = entry.path.empty() ? root_ : JoinPath(root_, entry.path);
  switch (entry.kind) {
    case TarKind::kDirectory:
      if (entry.path.empty()) co_return Status();
      co_return co_await BeginDirectory(std::move(path), entry.permissions);
    case TarKind::kSymlink:
      co_return co_await MakeLink(std::move(entry.target), std::move(path));
    case TarKind::kHardLink:
      co_return co_await Copy(JoinPath(root_, entry.target), std::move(path), entry.permissions);
    case TarKind::kFile:
      break;
  }
  co_return co_await OpenFile(std::move(path), entry.permissions);
}

Task<Status> Unpacker::MakeDirectory(std::string path, uint32_t permissions) {
  auto made = co_await at_.files->Mkdir(path, at_.user, permissions, Parents::kMustExist);
  if (!made && made.error().code() == ErrorCode::kConflict) co_return Status();
  if (!made && made.error().code() == ErrorCode::kNotFound)
    co_return co_await at_.files->Mkdir(path, at_.user, permissions, Parents::kMake);
  co_return made;
}

Task<Status> Unpacker::BeginDirectory(std::string path, uint32_t permissions) {
  constexpr uint32_t kEnter = 0700;
  auto made = co_await MakeDirectory(path, permissions | kEnter);
  if (made && (permissions & kEnter) != kEnter) closed_.emplace_back(std::move(path), permissions);
  co_return made;
}

Task<Status> Unpacker::OpenFile(std::string path, uint32_t permissions) {
  CAISSON_CO_ASSIGN(
      file_, co_await at_.files->OpenWrite(std::move(path), at_.user, sandbox::WriteMode::kReplace,
                                           permissions, Parents::kMake));
  sink_.emplace(loop_, *file_, 0);
  co_return Status();
}

Task<Status> Unpacker::EndFile() {
  if (!sink_) co_return Status();
  CAISSON_CO_TRY(co_await sink_->Drain());
  sink_.reset();
  const auto file = std::move(file_);
  co_return co_await file->Commit();
}

Task<Status> Unpacker::MakeLink(std::string target, std::string path) {
  auto made = co_await at_.files->Symlink(target, path, at_.user);
  if (!made && made.error().code() == ErrorCode::kNotFound) {
    CAISSON_CO_TRY(co_await MakeDirectory(path.substr(0, path.rfind('/')), 0755));
    made = co_await at_.files->Symlink(target, path, at_.user);
  }
  if (made || made.error().code() != ErrorCode::kConflict) co_return made;
  CAISSON_CO_TRY(co_await at_.files->Remove(path, at_.user, sandbox::Recursion::kNo));
  co_return co_await at_.files->Symlink(std::move(target), std::move(path), at_.user);
}

Task<Status> Unpacker::Copy(std::string from, std::string to, uint32_t permissions) {
  CAISSON_CO_ASSIGN(const auto file, co_await at_.files->OpenRead(std::move(from), at_.user));
  CAISSON_CO_TRY(co_await OpenFile(std::move(to), permissions));
  FileSource source(loop_, *file, 0, file->info().size);
  for (;;) {
    CAISSON_CO_ASSIGN(std::string piece, co_await source.Next());
    if (piece.empty()) co_return co_await EndFile();
    CAISSON_CO_TRY(co_await Put(std::move(piece)));
  }
}

Task<Status> Unpacker::Close() {
  while (!closed_.empty()) {
    const auto [path, permissions] = std::move(closed_.back());
    closed_.pop_back();
    CAISSON_CO_TRY(co_await at_.files->SetMode(path, at_.user, permissions));
  }
  co_return Status();
}

}  // namespace

Task<Result<UnpackResult>> UnpackTar(async::Loop* loop, const SessionFiles* at, std::string path,
                                     TarLimits limits, ArchiveSource source) {
  TarReader reader(limits);
  Unpacker unpacker(*loop, *at, std::move(path));
  CAISSON_CO_TRY(co_await unpacker.MakeRoot());
  for (;;) {
    CAISSON_CO_ASSIGN(auto item, reader.Next());
    if (auto* entry = std::get_if<TarEntry>(&item)) {
      CAISSON_CO_TRY(co_await unpacker.EndFile());
      CAISSON_CO_TRY(co_await unpacker.Begin(std::move(*entry)));
    } else if (auto* bytes = std::get_if<TarReader::Bytes>(&item)) {
      CAISSON_CO_TRY(co_await unpacker.Put(std::move(bytes->data)));
    } else {
      CAISSON_CO_ASSIGN(const std::string piece, co_await source());
      if (piece.empty()) break;
      reader.Feed(piece);
    }
  }
  CAISSON_CO_TRY(reader.Finish());
  CAISSON_CO_TRY(co_await unpacker.EndFile());
  CAISSON_CO_TRY(co_await unpacker.Close());
  co_return UnpackResult{reader.entries(), reader.skipped(), unpacker.bytes()};
}

}  // namespace caisson::api
