// What every route on a session's files begins with: the session, its file system, as whom, and
// which path; and files as JSON.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/call.h"
#include "json/json.h"
#include "sandbox/session.h"

namespace caisson::api {

// Valid while the session is held.
struct SessionFiles {
  std::shared_ptr<sandbox::Session> session;
  sandbox::Files* files = nullptr;
  std::string user;  // the query's, or the session's own; empty: the sandbox's default
};
// kNotFound, kGone, kConflict (paused) as the session says. `user` overrides the query's.
Task<Result<SessionFiles>> FilesOf(Call* call, std::optional<std::string> user = std::nullopt);

// An absolute path inside the sandbox. kInvalidArgument, naming the parameter, when it is none.
Result<std::string> QueryPath(const Call& call, std::string_view name = "path");
Status CheckFilePath(std::string_view name, std::string_view path);

// "0644": one to four octal digits, 01777 at most: set-id bits are not handed out.
Result<uint32_t> ParsePermissions(std::string_view name, std::string_view text);

// `path` is where it stands; the name is its last part.
json::Object ToJson(const std::string& path, const sandbox::FileInfo& info);
// "\"…\"", another one whenever the file's content is another.
std::string EtagOf(const sandbox::FileInfo& info);
bool IsDirectory(const sandbox::FileInfo& info);
// `name` in the directory `path`.
std::string JoinPath(std::string_view path, std::string_view name);

}  // namespace caisson::api
