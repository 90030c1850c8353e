#include "api/file_access.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <charconv>

#include "api/services.h"
#include "api/session_json.h"
#include "base/text.h"

namespace caisson::api {
namespace {

std::string_view TypeOf(uint32_t mode) {
  if (S_ISREG(mode)) return "file";
  if (S_ISDIR(mode)) return "directory";
  if (S_ISLNK(mode)) return "symlink";
  if (S_ISFIFO(mode)) return "fifo";
  if (S_ISSOCK(mode)) return "socket";
  if (S_ISCHR(mode)) return "character_device";
  if (S_ISBLK(mode)) return "block_device";
  return "other";
}

std::string TimeText(uint64_t nanoseconds) {
  return ToText(sandbox::WallTime(std::chrono::milliseconds(nanoseconds / 1'000'000)));
}

}  // namespace

Task<Result<SessionFiles>> FilesOf(Call* call, std::optional<std::string> user) {
  if (!user) {
    CAISSON_CO_ASSIGN(user, call->Query("user"));
  }
  SessionFiles found;
  CAISSON_CO_ASSIGN(found.session,
                    co_await call->services().sessions.Get(call->access(), call->Param("id")));
  CAISSON_CO_ASSIGN(found.files, found.session->files());
  found.user = user ? *std::move(user) : found.session->spec().user;
  co_return found;
}

Status CheckFilePath(std::string_view name, std::string_view path) {
  if (path.starts_with('/') && path.size() < 4096 && !path.contains('\0')) return {};
  return Error(ErrorCode::kInvalidArgument,
               std::string(name) + ": " + Quoted(path) + " is no absolute path of a file")
      .WithRemedy("give a path that begins with / and has less than 4096 bytes");
}

Result<std::string> QueryPath(const Call& call, std::string_view name) {
  CAISSON_ASSIGN(auto path, call.Query(name));
  if (!path)
    return Error(ErrorCode::kInvalidArgument,
                 "the query parameter \"" + std::string(name) + "\" is missing")
        .WithRemedy("give an absolute path inside the sandbox");
  CAISSON_TRY(CheckFilePath(name, *path));
  return *std::move(path);
}

Result<uint32_t> ParsePermissions(std::string_view name, std::string_view text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (text.empty() || text.size() > 5 || error != std::errc() || end != text.data() + text.size() ||
      value > 01777)
    return Error(ErrorCode::kInvalidArgument,
                 std::string(name) + ": " + Quoted(text) + " are no permissions")
        .WithRemedy("give octal digits such as 0644, at most 1777");
  return value;
}

json::Object ToJson(const std::string& path, const sandbox::FileInfo& info) {
  json::Object object{{"name", path.substr(path.rfind('/') + 1)},
                      {"path", path},
                      {"type", TypeOf(info.mode)},
                      {"size", info.size},
                      {"permissions", fmt::format("{:04o}", info.mode & 07777)},
                      {"uid", info.uid},
                      {"gid", info.gid},
                      {"links", info.links},
                      {"modified_at", TimeText(info.mtime_ns)},
                      {"changed_at", TimeText(info.ctime_ns)},
                      {"accessed_at", TimeText(info.atime_ns)}};
  if (S_ISREG(info.mode)) object["etag"] = EtagOf(info);
  if (S_ISLNK(info.mode)) object["target"] = info.target;
  return object;
}

std::string EtagOf(const sandbox::FileInfo& info) {
  return fmt::format("\"{:x}-{:x}-{:x}-{:x}\"", info.inode, info.mtime_ns, info.ctime_ns,
                     info.size);
}

bool IsDirectory(const sandbox::FileInfo& info) { return S_ISDIR(info.mode); }

std::string JoinPath(std::string_view path, std::string_view name) {
  std::string joined(path);
  if (!joined.ends_with('/')) joined += '/';
  joined += name;
  return joined;
}

}  // namespace caisson::api
