// cp: files and directories between this host and a session.
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/output.h"
#include "cli/process_link.h"
#include "cli/transfer.h"
#include "cli/verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kOwn[] = {
    {.name = "user",
     .short_name = 'u',
     .placeholder = "USER",
     .help = "read and write inside as this user (default: the session's)"},
    {.name = "resume",
     .kind = ValueKind::kFlag,
     .help = "keep what a broken copy of a file has brought, and go on from there"},
    {.name = "quiet",
     .short_name = 'q',
     .kind = ValueKind::kFlag,
     .section = "Output",
     .help = "say nothing when it has worked"},
};
constexpr auto kOptions = Joined(kOwn, kJsonOption, kConnectionOptions);
constexpr Positional kWords[] = {
    {.name = "source", .kind = ValueKind::kPath, .help = "PATH, SESSION:PATH, or - for stdin"},
    {.name = "destination",
     .kind = ValueKind::kPath,
     .help = "PATH, SESSION:PATH, or - for stdout"}};
constexpr Example kExamples[] = {
    {"caisson cp data.csv web:/workspace/", "a file into a session"},
    {"caisson cp web:/workspace/out ./out", "a directory out of it"},
    {"caisson cp --resume big.img web:/workspace/big.img", "go on where it broke"},
    {"caisson cp web:/etc/os-release -", "to the terminal"},
};

// "web:/a", "web:a" (below /workspace); a path of ours has no colon before its first slash.
std::optional<RemotePath> RemoteOf(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0 || text.find('/') < colon) return std::nullopt;
  RemotePath remote{text.substr(0, colon), text.substr(colon + 1), ""};
  if (!remote.path.starts_with('/')) remote.path.insert(0, "/workspace/");
  return remote;
}

std::string LeafOf(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::string leaf = path.substr(path.rfind('/') + 1);
  return leaf == "." || leaf == ".." ? "" : leaf;
}

std::string Below(std::string directory, const std::string& leaf) {
  while (directory.size() > 1 && directory.back() == '/') directory.pop_back();
  if (leaf.empty()) return directory;
  return directory == "/" ? "/" + leaf : directory + "/" + leaf;
}

Error Wrong(std::string what, std::string remedy) {
  return Error(ErrorCode::kInvalidArgument, std::move(what)).WithRemedy(std::move(remedy));
}

Task<Result<Transferred>> Upload(ApiClient* api, std::string local, RemotePath remote,
                                 Attempt attempt) {
  struct stat info{};
  if (local != "-" && stat(local.c_str(), &info) != 0)
    co_return Error::FromErrno("finding " + local)
        .WithCode(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo);
  const bool tree = local != "-" && S_ISDIR(info.st_mode);
  if (tree && attempt == Attempt::kGoOn)
    co_return Wrong("--resume is for files, and " + local + " is a directory", "leave it out");
  CAISSON_CO_ASSIGN(const json::Value there, co_await StatRemote(api, remote));
  const bool into = TextAt(there, "type") == "directory";
  const bool named = !remote.path.ends_with('/');
  if (tree && !there.is_null() && !into)
    co_return Wrong(remote.path + " is a file, and " + local + " a directory",
                    "name a directory, or what is not there yet");
  if (into || !named) {
    if (local == "-") co_return Wrong("stdin has no name", "name a file to write it to");
    remote.path = Below(remote.path, LeafOf(local));
  }
  if (tree) co_return co_await UploadTree(api, local, std::move(remote));
  co_return co_await UploadFile(api, local, std::move(remote), attempt);
}

Task<Result<Transferred>> Download(ApiClient* api, RemotePath remote, std::string local,
                                   Attempt attempt) {
  CAISSON_CO_ASSIGN(json::Value there, co_await StatRemote(api, remote));
  if (there.is_null())
    co_return Error(ErrorCode::kNotFound,
                    "there is no " + Quoted(remote.path) + " in session " + Quoted(remote.session))
        .WithRemedy(Concat({"look: caisson exec ", remote.session, " -- ls"}));
  const bool tree = TextAt(there, "type") == "directory";
  if (tree && (local == "-" || attempt == Attempt::kGoOn))
    co_return Wrong(remote.path + " is a directory", "copy it to a directory, without --resume");
  struct stat info{};
  const bool exists = local != "-" && stat(local.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode))
    local = Below(local, LeafOf(remote.path));
  else if (tree && exists)
    co_return Wrong(local + " is a file, and " + remote.path + " a directory",
                    "name a directory, or what is not there yet");
  if (tree) co_return co_await DownloadTree(api, std::move(remote), local);
  co_return co_await DownloadFile(api, std::move(remote), std::move(there), local, attempt);
}

Task<Result<int>> Copy(ApiClient* api, const Parsed* parsed) {
  const std::string source = *parsed->Get<std::string>("source");
  const std::string destination = *parsed->Get<std::string>("destination");
  auto from = RemoteOf(source), to = RemoteOf(destination);
  if (from.has_value() == to.has_value())
    co_return Wrong(from ? "both are in sessions" : "neither is in a session",
                    "write one of the two as SESSION:PATH");
  (from ? from : to)->user = parsed->Get<std::string>("user").value_or("");
  const Attempt attempt = parsed->Flag("resume") ? Attempt::kGoOn : Attempt::kWhole;
  CAISSON_CO_ASSIGN(const Transferred done,
                    from ? co_await Download(api, *std::move(from), destination, attempt)
                         : co_await Upload(api, source, *std::move(to), attempt));
  if (parsed->Flag("json")) {
    CAISSON_CO_TRY(PrintJson(json::Object{{"source", source},
                                          {"destination", destination},
                                          {"bytes", done.bytes},
                                          {"resumed_bytes", done.resumed}}));
  } else if (!parsed->Flag("quiet") && isatty(STDERR_FILENO) != 0) {
    WriteTo(STDERR_FILENO, Concat({OneLine(source), " -> ", OneLine(destination), "  ",
                                   FormatSize(done.bytes), "\n"}));
  }
  co_return 0;
}

Result<int> Run(const Parsed& parsed) {
  // With "-", standard output is the file's.
  if (parsed.Flag("json") && *parsed.Get<std::string>("destination") == "-")
    return Wrong("--json and a copy to stdout contradict each other", "leave one out");
  return RunWithServer(parsed, Copy);
}

}  // namespace

Verb CpVerb() {
  return {.name = "cp",
          .summary = "copy files and directories between this host and a session",
          .details =
              "A destination that is a directory gets the source below it, under its name. "
              "A file appears whole or not at all. A path inside that is not absolute is "
              "below /workspace.",
          .options = kOptions,
          .positionals = kWords,
          .examples = kExamples,
          .run = Run};
}

}  // namespace caisson::cli
