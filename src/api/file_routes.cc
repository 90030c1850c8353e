// /api/sessions/{id}/files: list, look, move, make, remove. What is in files is in
// file_content_routes.cc, changes in file_watch_routes.cc, archives in tar_routes.cc.
//
// Everything is done inside the sandbox as one of its users; no path is ever touched here.
#include <charconv>
#include <deque>

#include "api/file_access.h"
#include "api/routes.h"

namespace caisson::api {
namespace {

using auth::Resource;
using auth::Verb;

constexpr uint32_t kPage = 256;

struct Listing {
  json::Array entries;
  uint64_t next = 0;     // cursor of the rest; 0: none
  bool complete = true;  // of a recursive one
};

// One directory from `cursor` on, up to `limit` entries.
Task<Result<Listing>> ListOne(SessionFiles* at, std::string path, uint64_t cursor, size_t limit) {
  Listing listing;
  for (;;) {
    const auto want =
        static_cast<uint32_t>(std::min<size_t>(limit - listing.entries.size(), kPage));
    CAISSON_CO_ASSIGN(const auto page, co_await at->files->List(path, at->user, cursor, want));
    for (const auto& info : page.entries)
      listing.entries.push_back(ToJson(JoinPath(path, info.name), info));
    cursor = page.next;
    if (cursor == 0 || listing.entries.size() >= limit) break;
  }
  listing.next = cursor;
  co_return listing;
}

// Several levels, directory after directory; links are not followed. What goes away, or may not be
// read, below the first directory is passed over.
Task<Result<Listing>> ListTree(SessionFiles* at, std::string path, int64_t depth, size_t limit) {
  struct Directory {
    std::string path;
    int64_t depth;
  };
  Listing listing;
  std::deque<Directory> waiting{{path, depth}};
  while (!waiting.empty()) {
    const Directory directory = std::move(waiting.front());
    waiting.pop_front();
    uint64_t cursor = 0;
    do {
      auto page = co_await at->files->List(directory.path, at->user, cursor, kPage);
      if (!page) {
        const ErrorCode code = page.error().code();
        if (directory.path != path &&
            (code == ErrorCode::kNotFound || code == ErrorCode::kPermissionDenied))
          break;
        co_return std::move(page).error();
      }
      for (const auto& info : page->entries) {
        if (listing.entries.size() == limit) {
          listing.complete = false;
          co_return listing;
        }
        std::string entry = JoinPath(directory.path, info.name);
        listing.entries.push_back(ToJson(entry, info));
        if (IsDirectory(info) && directory.depth > 1)
          waiting.push_back({std::move(entry), directory.depth - 1});
      }
      cursor = page->next;
    } while (cursor != 0);
  }
  co_return listing;
}

Result<uint64_t> CursorOf(const Call& call) {
  CAISSON_ASSIGN(const auto text, call.Query("cursor"));
  if (!text) return uint64_t{0};
  uint64_t cursor = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), cursor);
  if (error != std::errc() || end != text->data() + text->size() || cursor > INT64_MAX)
    return Error(ErrorCode::kInvalidArgument, "the cursor is not one that a list gave")
        .WithRemedy("give next_cursor of the page before, or none");
  return cursor;
}

Task<Result<Reply>> ListFiles(Call* call) {
  CAISSON_CO_ASSIGN(const auto asked, call->Query("path"));
  const std::string path = asked.value_or("/");
  CAISSON_CO_TRY(CheckFilePath("path", path));
  CAISSON_CO_ASSIGN(const uint64_t cursor, CursorOf(*call));
  CAISSON_CO_ASSIGN(const auto depth, call->QueryInteger("depth", 1, 32));
  const bool tree = depth.value_or(1) > 1;
  CAISSON_CO_ASSIGN(const auto limit, call->QueryInteger("limit", 1, tree ? 10'000 : 1000));
  if (tree && cursor != 0)
    co_return Error(ErrorCode::kInvalidArgument, "a list of several levels has no cursor")
        .WithRemedy("list the directories one by one, or with a higher limit");
  CAISSON_CO_ASSIGN(SessionFiles at, co_await FilesOf(call));
  const auto most = static_cast<size_t>(limit.value_or(tree ? 10'000 : 1000));
  CAISSON_CO_ASSIGN(Listing listing, tree ? co_await ListTree(&at, path, *depth, most)
                                          : co_await ListOne(&at, path, cursor, most));
  json::Object answer{{"path", path}, {"entries", std::move(listing.entries)}};
  answer["next_cursor"] =
      listing.next == 0 ? json::Value() : json::Value(std::to_string(listing.next));
  answer["truncated"] = !listing.complete;
  co_return Reply::Json(200, answer);
}

Task<Result<Reply>> StatFile(Call* call) {
  CAISSON_CO_ASSIGN(const std::string path, QueryPath(*call));
  CAISSON_CO_ASSIGN(const bool follow, call->QueryFlag("follow"));
  CAISSON_CO_ASSIGN(const SessionFiles at, co_await FilesOf(call));
  CAISSON_CO_ASSIGN(const auto info,
                    co_await at.files->Stat(path, at.user,
                                            follow ? sandbox::Follow::kYes : sandbox::Follow::kNo));
  co_return Reply::Json(200, ToJson(path, info));
}

// The file as it is now, for the answer to a change.
Task<Result<Reply>> Shown(const SessionFiles* at, int status, std::string path) {
  CAISSON_CO_ASSIGN(const auto info,
                    co_await at->files->Stat(path, at->user, sandbox::Follow::kNo));
  co_return Reply::Json(status, ToJson(path, info));
}

Task<Result<Reply>> MoveFile(Call* call) {
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  json::Reader in(body);
  const auto from = in.Required<std::string>("from");
  const auto to = in.Required<std::string>("to");
  const bool overwrite = in.Optional<bool>("overwrite").value_or(false);
  auto user = in.Optional<std::string>("user", {.max = 64});
  CAISSON_CO_TRY(in.Finish());
  CAISSON_CO_TRY(CheckFilePath("from", from));
  CAISSON_CO_TRY(CheckFilePath("to", to));
  CAISSON_CO_ASSIGN(const SessionFiles at, co_await FilesOf(call, std::move(user)));
  CAISSON_CO_TRY(co_await at.files->Move(
      from, to, at.user, overwrite ? sandbox::Existing::kReplace : sandbox::Existing::kKeep));
  co_return co_await Shown(&at, 200, to);
}

Task<Result<Reply>> MakeDirectory(Call* call) {
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  json::Reader in(body);
  const auto path = in.Required<std::string>("path");
  const bool parents = in.Optional<bool>("parents").value_or(false);
  const auto text = in.Optional<std::string>("permissions").value_or("0755");
  auto user = in.Optional<std::string>("user", {.max = 64});
  CAISSON_CO_TRY(in.Finish());
  CAISSON_CO_TRY(CheckFilePath("path", path));
  CAISSON_CO_ASSIGN(const uint32_t permissions, ParsePermissions("permissions", text));
  CAISSON_CO_ASSIGN(const SessionFiles at, co_await FilesOf(call, std::move(user)));
  CAISSON_CO_TRY(
      co_await at.files->Mkdir(path, at.user, permissions,
                               parents ? sandbox::Parents::kMake : sandbox::Parents::kMustExist));
  co_return co_await Shown(&at, 201, path);
}

Task<Result<Reply>> MakeSymlink(Call* call) {
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  json::Reader in(body);
  const auto path = in.Required<std::string>("path");
  const auto target = in.Required<std::string>("target", {.min = 1, .max = 4095});
  auto user = in.Optional<std::string>("user", {.max = 64});
  CAISSON_CO_TRY(in.Finish());
  CAISSON_CO_TRY(CheckFilePath("path", path));
  CAISSON_CO_ASSIGN(const SessionFiles at, co_await FilesOf(call, std::move(user)));
  CAISSON_CO_TRY(co_await at.files->Symlink(target, path, at.user));
  co_return co_await Shown(&at, 201, path);
}

Task<Result<Reply>> SetPermissions(Call* call) {
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  json::Reader in(body);
  const auto path = in.Required<std::string>("path");
  const auto text = in.Required<std::string>("permissions");
  auto user = in.Optional<std::string>("user", {.max = 64});
  CAISSON_CO_TRY(in.Finish());
  CAISSON_CO_TRY(CheckFilePath("path", path));
  CAISSON_CO_ASSIGN(const uint32_t permissions, ParsePermissions("permissions", text));
  CAISSON_CO_ASSIGN(const SessionFiles at, co_await FilesOf(call, std::move(user)));
  CAISSON_CO_TRY(co_await at.files->SetMode(path, at.user, permissions));
  co_return co_await Shown(&at, 200, path);
}

Task<Result<Reply>> RemoveFile(Call* call) {
  CAISSON_CO_ASSIGN(const std::string path, QueryPath(*call));
  CAISSON_CO_ASSIGN(const bool recursive, call->QueryFlag("recursive"));
  CAISSON_CO_ASSIGN(const SessionFiles at, co_await FilesOf(call));
  CAISSON_CO_TRY(co_await at.files->Remove(
      path, at.user, recursive ? sandbox::Recursion::kYes : sandbox::Recursion::kNo));
  co_return Reply::Nothing();
}

constexpr Parameter kPath{"path", "FilePath", "Absolute, inside the sandbox", Parameter::In::kQuery,
                          Parameter::Need::kRequired};
constexpr Parameter kUser{"user", "string", "As whom; default: the session's user"};

Route Change(std::string_view pattern, RouteHandler handler, std::string_view id,
             std::string_view summary, std::string_view request, int status) {
  return {.method = "POST",
          .pattern = pattern,
          .permission = {Verb::kUpdate, Resource::kFiles},
          .handler = handler,
          .id = id,
          .group = "files",
          .summary = summary,
          .request = request,
          .outcomes = {{status, "File"}},
          .audited = Audited::kAlways};
}

}  // namespace

void AddFileRoutes(std::vector<Route>& routes) {
  const auto add = [&](Route route) { routes.push_back(std::move(route)); };
  add({.method = "GET",
       .pattern = "/api/sessions/{id}/files",
       .permission = {Verb::kRead, Resource::kFiles},
       .handler = ListFiles,
       .id = "listFiles",
       .group = "files",
       .summary = "List a directory, one level page by page or several up to a limit",
       .outcomes = {{200, "FileList"}},
       .parameters = {{"path", "FilePath", "Absolute, inside the sandbox; default /"},
                      kUser,
                      {"depth", "TreeDepth", "Levels, 1 to 32; default 1"},
                      {"limit", "TreeSize", "Entries: 1 to 1000, with depth up to 10000"},
                      {"cursor", "string", "next_cursor of the page before"}}});
  add({.method = "GET",
       .pattern = "/api/sessions/{id}/files/stat",
       .permission = {Verb::kRead, Resource::kFiles},
       .handler = StatFile,
       .id = "statFile",
       .group = "files",
       .summary = "What is known of a file, directory or link",
       .outcomes = {{200, "File"}},
       .parameters = {kPath, kUser, {"follow", "boolean", "Of a link: what it points to"}}});
  add({.method = "DELETE",
       .pattern = "/api/sessions/{id}/files/content",
       .permission = {Verb::kDelete, Resource::kFiles},
       .handler = RemoveFile,
       .id = "removeFile",
       .group = "files",
       .summary = "Remove a file, a link, an empty directory, or a whole tree",
       .outcomes = {{204, ""}},
       .parameters = {kPath, kUser, {"recursive", "boolean", "A directory with all below it"}},
       .audited = Audited::kAlways});
  add(Change("/api/sessions/{id}/files/move", MoveFile, "moveFile",
             "Move or rename; refuses what exists unless told to overwrite", "FileMove", 200));
  add(Change("/api/sessions/{id}/files/mkdir", MakeDirectory, "makeDirectory", "Make a directory",
             "DirectoryCreate", 201));
  add(Change("/api/sessions/{id}/files/symlink", MakeSymlink, "makeSymlink", "Make a symbolic link",
             "SymlinkCreate", 201));
  add(Change("/api/sessions/{id}/files/permissions", SetPermissions, "setPermissions",
             "Set the permission bits of a file or directory", "FilePermissions", 200));
}

}  // namespace caisson::api
