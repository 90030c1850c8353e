// /api/sessions/{id}/artifacts: files that were kept, also of sessions that have ended.
#include "api/call.h"
#include "api/content.h"
#include "api/routes.h"
#include "api/services.h"
#include "api/session_json.h"
#include "base/text.h"
#include "store/artifact_records.h"

namespace caisson::api {
namespace {

using auth::Resource;
using auth::Verb;
using store::ArtifactRecord;

constexpr size_t kPiece = 256 * 1024;
constexpr const char* kBlobName = "content";

json::Object ToJson(const std::string& session_id, const ArtifactRecord& record) {
  const sandbox::WallTime created{std::chrono::milliseconds(record.created_ms)};
  return {{"name", record.id},
          {"path", record.path},
          {"size", record.size},
          {"sha256", record.sha256},
          {"created_at", ToText(created)},
          {"url", "/api/sessions/" + session_id + "/artifacts/" + record.id}};
}

// kUnsupported when the server keeps nothing.
Result<const Keepings*> KeptOf(Call& call) {
  if (call.services().kept != nullptr) return call.services().kept;
  return Error(ErrorCode::kUnsupported, "this server keeps nothing of its sessions")
      .WithRemedy("start it with a data directory");
}

// Whether the caller may see what a session left behind that is itself no longer known.
bool SeesLeft(const sandbox::Access& access, const ArtifactRecord& record) {
  return !access.key_id && (!access.tenant || *access.tenant == record.tenant) &&
         (!access.session || *access.session == record.session_id);
}

// The session's, oldest first. They outlive the session's record; then its id alone finds them.
Task<Result<std::vector<ArtifactRecord>>> ArtifactsOf(Call* call) {
  auto& services = call->services();
  auto session = co_await services.sessions.Describe(call->access(), call->Param("id"));
  if (!session && session.error().code() != ErrorCode::kNotFound)
    co_return std::move(session).error();
  const std::string id = session ? session->id : call->Param("id");
  CAISSON_CO_ASSIGN(auto records, co_await services.store.Read<std::vector<ArtifactRecord>>(
                                      [id](store::Database& db) { return ListArtifacts(db, id); }));
  if (session) co_return records;
  const sandbox::Access access = call->access();
  std::erase_if(records, [&](const auto& record) { return !SeesLeft(access, record); });
  if (records.empty()) co_return std::move(session).error();
  co_return records;
}

// By its name, or by the path it had: then the newest.
Task<Result<ArtifactRecord>> ArtifactOf(Call* call) {
  CAISSON_CO_ASSIGN(const auto records, co_await ArtifactsOf(call));
  const std::string& name = call->Param("name");
  for (auto record = records.rbegin(); record != records.rend(); ++record)
    if (record->id == name || record->path == "/" + name) co_return *record;
  co_return Error(ErrorCode::kNotFound,
                  "session " + call->Param("id") + " has kept no artifact " + Quoted(name))
      .WithRemedy("list its artifacts; names and paths are there");
}

Task<Result<Reply>> ListSessionArtifacts(Call* call) {
  CAISSON_CO_ASSIGN(const auto records, co_await ArtifactsOf(call));
  json::Array artifacts;
  for (const auto& record : records) artifacts.push_back(ToJson(record.session_id, record));
  co_return Reply::Json(200, json::Object{{"artifacts", std::move(artifacts)}});
}

Task<Result<Reply>> KeepArtifacts(Call* call) {
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  json::Reader in(body);
  auto patterns = in.RequiredList<std::string>("patterns", {.min = 1, .max = 64});
  CAISSON_CO_TRY(in.Finish());
  CAISSON_CO_TRY(sandbox::CheckGlobs(patterns));
  CAISSON_CO_ASSIGN(const Keepings* kept_by, KeptOf(*call));
  auto& services = call->services();
  CAISSON_CO_ASSIGN(const auto session,
                    co_await services.sessions.Get(call->access(), call->Param("id")));
  CAISSON_CO_TRY(session->MustBeRunning());
  CAISSON_CO_ASSIGN(const auto kept,
                    co_await kept_by->keeper.Keep(session.get(), std::move(patterns)));
  json::Array artifacts;
  for (const auto& artifact : kept) artifacts.push_back(api::ToJson(artifact));
  co_return Reply::Json(201, json::Object{{"artifacts", std::move(artifacts)}});
}

using SharedBlob = std::shared_ptr<const store::BlobReader>;

Task<Result<SharedBlob>> OpenBlob(Call* call, std::string id) {
  CAISSON_CO_ASSIGN(const Keepings* kept, KeptOf(*call));
  auto blob = co_await async::Offload(&call->services().loop, &kept->disk, [kept, id] {
    return kept->blobs.Open(store::BlobArea::kArtifacts, id, kBlobName);
  });
  if (!blob) co_return std::move(blob).error();
  co_return std::make_shared<const store::BlobReader>(*std::move(blob));
}

Task<Status> SendBlob(Call* call, SharedBlob blob, uint64_t begin, uint64_t end) {
  CAISSON_CO_ASSIGN(const Keepings* kept, KeptOf(*call));
  while (begin < end) {
    const auto want = static_cast<size_t>(std::min<uint64_t>(end - begin, kPiece));
    CAISSON_CO_ASSIGN(
        std::string piece,
        co_await async::Offload(&call->services().loop, &kept->disk, [blob, begin, want] {
          return blob->ReadAt(static_cast<int64_t>(begin), want);
        }));
    if (piece.size() != want)
      co_return Error(ErrorCode::kIo, "a kept file is shorter than its record says")
          .WithRemedy("look at the disk of the data directory");
    begin += want;
    CAISSON_CO_TRY(co_await call->exchange().Write(std::move(piece)));
  }
  co_return co_await call->exchange().Finish();
}

Task<Result<Reply>> DownloadArtifact(Call* call) {
  CAISSON_CO_ASSIGN(const ArtifactRecord record, co_await ArtifactOf(call));
  CAISSON_CO_ASSIGN(const SharedBlob blob, co_await OpenBlob(call, record.id));
  ContentPlan plan =
      PlanContent(call->request(), {.path = record.path,
                                    .size = static_cast<uint64_t>(blob->size()),
                                    .etag = "\"" + record.sha256 + "\"",
                                    .media_type = record.media_type,
                                    .modified_s = static_cast<uint64_t>(record.created_ms) / 1000});
  if (plan.head.status == 416 || plan.head.status == 412)
    co_return ContentRefusal(call->request_id(), plan, record.path);
  if (plan.head.status == 304) co_return net::Response{304, std::move(plan.head.headers), ""};
  const bool whole = call->request().method != "HEAD";
  CAISSON_CO_TRY(co_await call->exchange().Begin(std::move(plan.head)));
  CAISSON_CO_TRY(co_await SendBlob(call, blob, plan.begin, whole ? plan.end : plan.begin));
  co_return Reply::Streamed();
}

// First the record, then the bytes: what is listed can be had.
Task<Result<Reply>> RemoveSessionArtifact(Call* call) {
  CAISSON_CO_ASSIGN(const Keepings* kept, KeptOf(*call));
  CAISSON_CO_ASSIGN(const ArtifactRecord record, co_await ArtifactOf(call));
  auto& services = call->services();
  CAISSON_CO_TRY(co_await services.store.Write(
      store::Durability::kDurable,
      [id = record.id](store::Database& db) { return RemoveArtifact(db, id); },
      store::Purpose::kShrink));
  CAISSON_CO_TRY(co_await async::Offload(&services.loop, &kept->disk, [kept, id = record.id] {
    return kept->blobs.RemoveAll(store::BlobArea::kArtifacts, id);
  }));
  co_return Reply::Nothing();
}

}  // namespace

void AddArtifactRoutes(std::vector<Route>& routes) {
  const auto add = [&](Route route) { routes.push_back(std::move(route)); };
  add({.method = "GET",
       .pattern = "/api/sessions/{id}/artifacts",
       .permission = {Verb::kRead, Resource::kArtifacts},
       .handler = ListSessionArtifacts,
       .id = "listArtifacts",
       .group = "artifacts",
       .summary = "Files that were kept of a session, also after its end",
       .outcomes = {{200, "ArtifactList"}}});
  add({.method = "POST",
       .pattern = "/api/sessions/{id}/artifacts",
       .permission = {Verb::kCreate, Resource::kArtifacts},
       .handler = KeepArtifacts,
       .id = "keepArtifacts",
       .group = "artifacts",
       .summary = "Keep the files that match, as they are now",
       .request = "ArtifactKeep",
       .outcomes = {{201, "ArtifactsKept"}},
       .audited = Audited::kAlways});
  add({.method = "GET",
       .pattern = "/api/sessions/{id}/artifacts/{name...}",
       .permission = {Verb::kRead, Resource::kArtifacts},
       .handler = DownloadArtifact,
       .id = "downloadArtifact",
       .group = "artifacts",
       .summary = "A kept file by its name, or the newest by its path; all of it or a range",
       .outcomes = {{200, "", "*/*"}, {206, "", "*/*"}, {304, ""}},
       .parameters = {
           {"Range", "string", "bytes=FIRST-LAST, bytes=FIRST- or bytes=-COUNT",
            Parameter::In::kHeader},
           {"If-None-Match", "string", "ETag of what the client has", Parameter::In::kHeader}}});
  add({.method = "DELETE",
       .pattern = "/api/sessions/{id}/artifacts/{name...}",
       .permission = {Verb::kDelete, Resource::kArtifacts},
       .handler = RemoveSessionArtifact,
       .id = "removeArtifact",
       .group = "artifacts",
       .summary = "Remove a kept file",
       .outcomes = {{204, ""}},
       .audited = Audited::kAlways});
}

}  // namespace caisson::api
