// /api/sessions/{id}/files/content: what is in a file, streamed both ways in bounded memory.
#include "api/content.h"
#include "api/file_access.h"
#include "api/file_content.h"
#include "api/file_pump.h"
#include "api/routes.h"
#include "api/services.h"
#include "base/crash_point.h"
#include "base/text.h"

namespace caisson::api {
namespace {

using auth::Resource;
using auth::Verb;

constexpr uint64_t kMaxUpload = uint64_t{1} << 40;  // the sandbox's disk is the real bound

Content ContentOf(const std::string& path, const sandbox::FileInfo& info) {
  return {.path = path,
          .size = info.size,
          .etag = EtagOf(info),
          .media_type = {},
          .modified_s = info.mtime_ns / 1'000'000'000};
}

// The head is out when the first piece is there: a file that cannot be read is an error with a
// status, one that fails later cuts the connection.
Task<Status> SendPieces(Call* call, sandbox::File* file, ContentPlan plan) {
  FileSource source(call->services().loop, *file, plan.begin, plan.end);
  CAISSON_CO_ASSIGN(std::string piece, co_await source.Next());
  CAISSON_CO_TRY(co_await call->exchange().Begin(std::move(plan.head)));
  while (!piece.empty()) {
    CAISSON_CO_TRY(co_await call->exchange().Write(std::move(piece)));
    CAISSON_CO_ASSIGN(piece, co_await source.Next());
  }
  co_return co_await call->exchange().Finish();
}

// How a PUT writes.
struct Upload {
  std::string path;
  sandbox::WriteMode mode = sandbox::WriteMode::kReplace;
  uint64_t offset = 0;
  std::optional<uint64_t> length;  // of the part, when Content-Range tells
  uint32_t permissions = 0644;
  sandbox::Parents parents = sandbox::Parents::kMustExist;
};

Error Malformed(const std::string& what, std::string remedy) {
  return Error(ErrorCode::kInvalidArgument, what).WithRemedy(std::move(remedy));
}

// Where the part goes, from `offset` or Content-Range; both must agree.
Status ReadPart(const Call& call, Upload& upload) {
  CAISSON_ASSIGN(const auto offset, call.QueryInteger("offset", 0, INT64_MAX));
  const std::string* header = call.request().headers.Find("content-range");
  if (!offset && header == nullptr) return {};
  if (upload.mode == sandbox::WriteMode::kCreateNew)
    return Malformed("mode=create and a part of a file contradict each other",
                     "leave out mode, or offset and Content-Range");
  upload.mode = sandbox::WriteMode::kResume;
  upload.offset = static_cast<uint64_t>(offset.value_or(0));
  if (header == nullptr) return {};
  const auto part = ParseContentRange(*header);
  if (!part || part->last > INT64_MAX)
    return Malformed("Content-Range: " + Quoted(*header) + " is no range of bytes",
                     "write it as \"bytes FIRST-LAST/TOTAL\"");
  if (offset && upload.offset != part->first)
    return Malformed("offset and Content-Range name different places", "give one of them");
  upload.offset = part->first;
  upload.length = part->last - part->first + 1;
  return {};
}

Result<Upload> ReadUpload(const Call& call) {
  Upload upload;
  CAISSON_ASSIGN(upload.path, QueryPath(call));
  CAISSON_ASSIGN(const auto mode, call.Query("mode"));
  if (mode == "create")
    upload.mode = sandbox::WriteMode::kCreateNew;
  else if (mode && *mode != "replace")
    return Malformed("mode: there is no " + Quoted(*mode), "use replace or create");
  CAISSON_ASSIGN(const auto permissions, call.Query("permissions"));
  if (permissions) {
    CAISSON_ASSIGN(upload.permissions, ParsePermissions("permissions", *permissions));
  }
  CAISSON_ASSIGN(const bool parents, call.QueryFlag("parents"));
  if (parents) upload.parents = sandbox::Parents::kMake;
  CAISSON_TRY(ReadPart(call, upload));
  return upload;
}

// The body to the file, as fast as both go. Gives where it ended.
Task<Result<uint64_t>> TakePieces(Call* call, sandbox::File* file, uint64_t offset) {
  FileSink sink(call->services().loop, *file, offset);
  for (;;) {
    CAISSON_CO_ASSIGN(std::string piece, co_await call->exchange().body().Next(kFilePiece));
    if (piece.empty()) break;
    CAISSON_CO_TRY(co_await sink.Put(std::move(piece)));
  }
  CAISSON_CO_TRY(co_await sink.Drain());
  co_return sink.offset();
}

constexpr Parameter kPath{"path", "FilePath", "Absolute, inside the sandbox", Parameter::In::kQuery,
                          Parameter::Need::kRequired};
constexpr Parameter kUser{"user", "string", "As whom; default: the session's user"};

}  // namespace

Task<Result<Reply>> ReadFileContent(Call* call) {
  CAISSON_CO_ASSIGN(const std::string path, QueryPath(*call));
  CAISSON_CO_ASSIGN(const SessionFiles at, co_await FilesOf(call));
  CAISSON_CO_ASSIGN(const auto file, co_await at.files->OpenRead(path, at.user));
  ContentPlan plan = PlanContent(call->request(), ContentOf(path, file->info()));
  if (plan.head.status == 416 || plan.head.status == 412)
    co_return ContentRefusal(call->request_id(), plan, path);
  if (plan.head.status == 304) co_return net::Response{304, std::move(plan.head.headers), ""};
  if (call->request().method == "HEAD") {
    CAISSON_CO_TRY(co_await call->exchange().Begin(std::move(plan.head)));
    CAISSON_CO_TRY(co_await call->exchange().Finish());
    co_return Reply::Streamed();
  }
  CAISSON_CO_TRY(co_await SendPieces(call, file.get(), std::move(plan)));
  co_return Reply::Streamed();
}

Task<Result<Reply>> WriteFileContent(Call* call) {
  CAISSON_CO_ASSIGN(const Upload upload, ReadUpload(*call));
  net::Exchange& exchange = call->exchange();
  exchange.SetBodyLimit(kMaxUpload);
  if (const auto length = exchange.body().content_length();
      length && upload.length && *length != *upload.length)
    co_return Malformed("the body is not as long as Content-Range says", "correct one of them");
  CAISSON_CO_ASSIGN(const SessionFiles at, co_await FilesOf(call));
  CAISSON_CO_ASSIGN(const auto file,
                    co_await at.files->OpenWrite(upload.path, at.user, upload.mode,
                                                 upload.permissions, upload.parents));
  if (upload.offset > file->info().size)
    co_return Error(ErrorCode::kConflict, Quoted(upload.path) + " has " +
                                              std::to_string(file->info().size) +
                                              " bytes; writing at " +
                                              std::to_string(upload.offset) + " would leave a hole")
        .WithRemedy("go on at its size");
  CAISSON_CO_ASSIGN(const uint64_t end, co_await TakePieces(call, file.get(), upload.offset));
  if (upload.length && end != upload.offset + *upload.length)
    co_return Malformed("the body is not as long as Content-Range says", "correct one of them");
  CrashPoint("write.received");
  CAISSON_CO_TRY(co_await file->Commit());
  CrashPoint("write.committed");
  CAISSON_CO_ASSIGN(const auto info,
                    co_await at.files->Stat(upload.path, at.user, sandbox::Follow::kYes));
  const int status = upload.mode == sandbox::WriteMode::kCreateNew ? 201 : 200;
  co_return net::Response::Json(status, json::Write(ToJson(upload.path, info)))
      .WithHeader("ETag", EtagOf(info));
}

void AddFileContentRoutes(std::vector<Route>& routes) {
  const auto add = [&](Route route) { routes.push_back(std::move(route)); };
  add({.method = "GET",
       .pattern = "/api/sessions/{id}/files/content",
       .permission = {Verb::kRead, Resource::kFiles},
       .handler = ReadFileContent,
       .id = "readFile",
       .group = "files",
       .summary = "Download a file, or a range of it",
       .outcomes = {{200, "", "*/*"}, {206, "", "*/*"}, {304, ""}},
       .parameters = {
           kPath,
           kUser,
           {"Range", "string", "bytes=FIRST-LAST, bytes=FIRST- or bytes=-COUNT",
            Parameter::In::kHeader},
           {"If-None-Match", "string", "ETag of what the client has", Parameter::In::kHeader}}});
  add({.method = "PUT",
       .pattern = "/api/sessions/{id}/files/content",
       .permission = {Verb::kUpdate, Resource::kFiles},
       .handler = WriteFileContent,
       .id = "writeFile",
       .group = "files",
       .summary = "Upload a file: it appears whole under its name, or a part is written in place",
       .request_media = "application/octet-stream",
       .outcomes = {{200, "File"}, {201, "File"}},
       .parameters = {kPath,
                      kUser,
                      {"mode", "WriteMode", "replace (default), or create: refuse what exists"},
                      {"offset", "Offset", "Go on with an upload at this byte"},
                      {"permissions", "Permissions", "Octal; default 0644"},
                      {"parents", "boolean", "Make the directories that are missing"},
                      {"Content-Range", "string", "bytes FIRST-LAST/TOTAL of a part",
                       Parameter::In::kHeader}},
       .audited = Audited::kAlways});
}

}  // namespace caisson::api
