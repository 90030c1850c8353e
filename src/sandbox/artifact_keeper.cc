#include "sandbox/artifact_keeper.h"

#include <algorithm>

#include "base/utf8.h"

namespace caisson::sandbox {
namespace {

constexpr uint32_t kPiece = 64 * 1024;

}  // namespace

Task<Result<std::vector<KeptArtifact>>> ArtifactKeeper::Keep(Session* session,
                                                             std::vector<std::string> globs) {
  Sandbox* sandbox = session->sandbox();
  if (sandbox == nullptr)
    co_return Error(ErrorCode::kConflict, "session " + session->id() + " has no sandbox");
  CAISSON_CO_ASSIGN(auto found, co_await FindFiles(&sandbox->files(), std::move(globs),
                                                   session->spec().user, options_.bounds));
  std::vector<KeptArtifact> kept;
  uint64_t room = options_.total_bytes;
  size_t left_out = 0;
  for (auto& file : found.files) {
    if (file.size > std::min(room, options_.file_bytes)) {
      ++left_out;
      continue;
    }
    CAISSON_CO_ASSIGN(auto one, co_await KeepOne(session, std::move(file.path), room));
    if (!one) {
      ++left_out;
      continue;
    }
    room -= one->size;
    session->Publish(
        EventKind::kArtifactKept,
        {{"path", ToUtf8(one->path)}, {"name", one->name}, {"size", std::to_string(one->size)}});
    kept.push_back(*std::move(one));
  }
  if (left_out != 0 || !found.complete)
    session->Publish(EventKind::kAlert, {{"what", "not all artifacts were kept"},
                                         {"left_out", std::to_string(left_out)},
                                         {"reason", "too many, too large, or not readable"}});
  co_return kept;
}

// Nothing when the file cannot be read, or grows beyond its bound while it is.
Task<Result<std::optional<KeptArtifact>>> ArtifactKeeper::KeepOne(Session* session,
                                                                  std::string path, uint64_t room) {
  using Kept = std::optional<KeptArtifact>;
  auto file = co_await session->sandbox()->files().OpenRead(path, session->spec().user);
  if (!file) co_return Kept();
  CAISSON_CO_ASSIGN(auto writer, co_await store_.Open(&session->record(), path));
  const uint64_t most = std::min(room, options_.file_bytes);
  for (uint64_t at = 0;;) {
    auto data = co_await (*file)->Read(at, kPiece);
    if (!data) co_return Kept();
    if (data->empty()) {
      CAISSON_CO_ASSIGN(auto name, co_await writer->Commit());
      co_return Kept(KeptArtifact{std::move(path), std::move(name), at});
    }
    at += data->size();
    if (at > most) co_return Kept();
    CAISSON_CO_TRY(co_await writer->Write(*std::move(data)));
  }
}

}  // namespace caisson::sandbox
