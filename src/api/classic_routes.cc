// The original APIs: small shapes that existing clients rely on, over the same sessions.
#include <sys/stat.h>

#include "api/call.h"
#include "api/file_access.h"
#include "api/process_stream.h"
#include "api/routes.h"
#include "api/services.h"
#include "api/session_input.h"
#include "api/session_json.h"
#include "async/race.h"
#include "base/encoding.h"
#include "base/utf8.h"

namespace caisson::api {
namespace {

using auth::Resource;
using auth::Verb;

constexpr uint64_t kMaxFileBytes = 768 * 1024;

Task<Result<Reply>> CreateSession(Call* call) {
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  CAISSON_CO_ASSIGN(sandbox::SessionSpec spec, ReadSessionSpec(body));
  CAISSON_CO_ASSIGN(const auto session,
                    co_await call->services().sessions.Create(call->owner(), std::move(spec)));
  co_return Reply::Json(200, json::Object{{"session_id", session->id()}});
}

Error NoAgentYet() {
  return Error(ErrorCode::kUnsupported, "this server has no agent layer to give a task to")
      .WithRemedy("send {\"session_id\", \"command\"} to run a command in a session");
}

// Everything that the command writes, in the order in which it came.
struct Transcript {
  int exit_code = -1;
  std::string output;
};
Task<Result<Transcript>> RunToEnd(std::shared_ptr<sandbox::Session> session,
                                  sandbox::ExecRequest request) {
  const size_t cap = request.output_cap;
  CAISSON_CO_ASSIGN(auto exec, co_await session->StartForeground(std::move(request)));
  Transcript transcript;
  while (auto item = co_await exec->Next()) {
    if (const auto* chunk = std::get_if<sandbox::OutputChunk>(&*item))
      transcript.output.append(chunk->data, 0, cap - std::min(cap, transcript.output.size()));
    else if (const auto* outcome = std::get_if<sandbox::ExecOutcome>(&*item))
      transcript.exit_code = ShellCode(*outcome);
  }
  co_return transcript;
}

Task<Result<Reply>> Execute(Call* call) {
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  json::Reader in(body);
  if (in.Any("task") != nullptr) co_return NoAgentYet();
  const auto id = in.Required<std::string>("session_id");
  const auto command = in.Required<std::string>("command", {.min = 1});
  const auto timeout = in.OptionalDuration("timeout", {.min = std::chrono::nanoseconds(1)});
  CAISSON_CO_TRY(in.Finish());
  call->set_object("sessions/" + id);
  CAISSON_CO_ASSIGN(auto session, co_await call->services().sessions.Get(call->access(), id));
  sandbox::ExecRequest request;
  request.spec.argv = {"/bin/sh", "-c", command};
  if (timeout) request.spec.timeout = std::chrono::ceil<std::chrono::milliseconds>(*timeout);
  auto first =
      co_await async::FirstOf(&call->services().loop, RunToEnd(session, std::move(request)),
                              async::WaitFor(&call->exchange().closed()));
  if (first.index() == 1) co_return Reply::Streamed();
  CAISSON_CO_ASSIGN(const auto transcript, std::get<0>(std::move(first)));
  co_return Reply::Json(200, json::Object{{"exit_code", transcript.exit_code},
                                          {"output", ToUtf8(transcript.output)}});
}

Task<Result<Reply>> Cleanup(Call* call) {
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  json::Reader in(body);
  const auto id = in.Required<std::string>("session_id");
  CAISSON_CO_TRY(in.Finish());
  call->set_object("sessions/" + id);
  CAISSON_CO_TRY(co_await call->services().sessions.Destroy(call->access(), id, "cleanup"));
  co_return Reply::Json(200, json::Object{{"status", "cleaned"}, {"session_id", id}});
}

Task<Result<Reply>> ExecuteCode(Call* call) {
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  json::Reader in(body);
  const auto id = in.Required<std::string>("session_id");
  const auto code = in.Required<std::string>("code");
  CAISSON_CO_TRY(in.Finish());
  call->set_object("sessions/" + id);
  CAISSON_CO_ASSIGN(auto session, co_await call->services().sessions.Get(call->access(), id));
  sandbox::ExecRequest request;
  request.spec.argv = {"python3", "-"};
  request.input = code;
  auto first = co_await async::FirstOf(&call->services().loop, session->Exec(std::move(request)),
                                       async::WaitFor(&call->exchange().closed()));
  if (first.index() == 1) co_return Reply::Streamed();
  CAISSON_CO_ASSIGN(const auto report, std::get<0>(std::move(first)));
  co_return Reply::Json(200, json::Object{{"stdout", ToUtf8(report.out)},
                                          {"stderr", ToUtf8(report.err)},
                                          {"results", json::Array()},
                                          {"artifacts", json::Array()}});
}

Task<Result<Reply>> ListFiles(Call* call) {
  CAISSON_CO_ASSIGN(const auto path, call->Query("path"));
  if (path) CAISSON_CO_TRY(CheckFilePath("path", *path));
  CAISSON_CO_ASSIGN(auto session, co_await call->services().sessions.Get(
                                      call->access(), call->Param("session_id")));
  CAISSON_CO_ASSIGN(sandbox::Files* const files, session->files());
  const std::string folder = path.value_or("/workspace");
  json::Array list;
  uint64_t cursor = 0;
  do {
    CAISSON_CO_ASSIGN(const auto page,
                      co_await files->List(folder, session->spec().user, cursor, 256));
    for (const auto& entry : page.entries)
      list.push_back(
          json::Object{{"name", ToUtf8(entry.name)},
                       {"path", ToUtf8(folder + (folder.ends_with('/') ? "" : "/") + entry.name)},
                       {"type", S_ISDIR(entry.mode)   ? "directory"
                                : S_ISLNK(entry.mode) ? "symlink"
                                                      : "file"},
                       {"size", entry.size}});
    cursor = page.next;
  } while (cursor != 0 && list.size() < 10'000);
  co_return Reply::Json(200, json::Object{{"files", std::move(list)}});
}

Task<Result<Reply>> WriteFile(Call* call) {
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  json::Reader in(body);
  const auto id = in.Required<std::string>("session_id");
  const auto path = in.Required<std::string>("path", {.min = 1, .max = 4096});
  const auto text = in.Optional<std::string>("content", {.max = kMaxFileBytes});
  const auto encoded = in.Optional<std::string>("content_base64");
  if (text.has_value() == encoded.has_value())
    in.Refuse("content", text ? "is given together with \"content_base64\"" : "is missing",
              "give \"content\" (text) or \"content_base64\"");
  CAISSON_CO_TRY(in.Finish());
  std::optional<std::string> bytes = encoded ? FromBase64(*encoded) : text;
  if (!bytes)
    co_return Error(ErrorCode::kInvalidArgument, "content_base64: is not base64")
        .WithRemedy("give the file's bytes in base64, or text as \"content\"");
  call->set_object("sessions/" + id);
  CAISSON_CO_ASSIGN(auto session, co_await call->services().sessions.Get(call->access(), id));
  CAISSON_CO_ASSIGN(sandbox::Files* const files, session->files());
  const std::string target = path.starts_with('/') ? path : "/workspace/" + path;
  CAISSON_CO_ASSIGN(auto file, co_await files->OpenWrite(target, session->spec().user,
                                                         sandbox::WriteMode::kReplace, 0644,
                                                         sandbox::Parents::kMake));
  const size_t size = bytes->size();
  CAISSON_CO_TRY(co_await file->Write(0, *std::move(bytes)));
  CAISSON_CO_TRY(co_await file->Commit());
  co_return Reply::Json(200, json::Object{{"path", target}, {"size", size}});
}

}  // namespace

void AddClassicRoutes(std::vector<Route>& routes) {
  const auto add = [&](Route route) {
    route.group = "original";
    route.errors = ErrorShape::kClassic;
    routes.push_back(std::move(route));
  };
  add({.method = "POST",
       .pattern = "/create_session",
       .permission = {Verb::kCreate, Resource::kSessions},
       .handler = CreateSession,
       .id = "classicCreateSession",
       .summary = "Create a session",
       .request = "SessionCreate",
       .outcomes = {{200, "ClassicSession"}},
       .cost = Cost::kCreate,
       .audited = Audited::kAlways});
  add({.method = "POST",
       .pattern = "/execute",
       .permission = {Verb::kExecute, Resource::kProcesses},
       .handler = Execute,
       .id = "classicExecute",
       .summary = "Run a shell command in a session",
       .request = "ClassicExecute",
       .outcomes = {{200, "ClassicOutput"}},
       .cost = Cost::kExec,
       .audited = Audited::kAlways});
  add({.method = "POST",
       .pattern = "/cleanup",
       .permission = {Verb::kDelete, Resource::kSessions},
       .handler = Cleanup,
       .id = "classicCleanup",
       .summary = "Destroy a session",
       .request = "ClassicCleanup",
       .outcomes = {{200, "ClassicCleaned"}},
       .audited = Audited::kAlways});
  add({.method = "POST",
       .pattern = "/api/e2b/execute",
       .permission = {Verb::kExecute, Resource::kProcesses},
       .handler = ExecuteCode,
       .id = "classicExecuteCode",
       .summary = "Run Python code in a session",
       .request = "ClassicCode",
       .outcomes = {{200, "ClassicCodeResult"}},
       .cost = Cost::kExec,
       .audited = Audited::kAlways});
  add({.method = "GET",
       .pattern = "/api/e2b/files/{session_id}",
       .permission = {Verb::kRead, Resource::kFiles},
       .handler = ListFiles,
       .id = "classicListFiles",
       .summary = "The files of a session's /workspace, or of another directory",
       .outcomes = {{200, "ClassicFiles"}},
       .parameters = {{"path", "FilePath", "Default /workspace"}}});
  add({.method = "POST",
       .pattern = "/api/e2b/files",
       .permission = {Verb::kCreate, Resource::kFiles},
       .handler = WriteFile,
       .id = "classicWriteFile",
       .summary = "Write a file into a session",
       .request = "ClassicFile",
       .outcomes = {{200, "ClassicFileWritten"}},
       .audited = Audited::kAlways});
}

}  // namespace caisson::api
