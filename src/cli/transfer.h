// Files and directories to and from a session.
#pragma once

#include <string>

#include "cli/api_client.h"

namespace caisson::cli {

// A path inside a session.
struct RemotePath {
  std::string session;
  std::string path;  // absolute
  std::string user;  // as whom; empty: the session's
};

// kGoOn: what is there of an earlier attempt at the same version of the file is kept and gone on
// from; an attempt that breaks leaves it there.
enum class Attempt { kWhole, kGoOn };

struct Transferred {
  uint64_t bytes = 0;    // that were sent or received
  uint64_t resumed = 0;  // that were there already
};

// What the session says about a path, links followed: null when there is nothing.
Task<Result<json::Value>> StatRemote(ApiClient* api, RemotePath remote);

// A file of ours ("-": stdin) to the session, where it appears whole under its name.
Task<Result<Transferred>> UploadFile(ApiClient* api, std::string local, RemotePath remote,
                                     Attempt attempt);
// A file of the session's to ours ("-": stdout), which appears whole under its name. `stat` is
// what StatRemote gave.
Task<Result<Transferred>> DownloadFile(ApiClient* api, RemotePath remote, json::Value stat,
                                       std::string local, Attempt attempt);
// What is below a directory, into another that exists or is made.
Task<Result<Transferred>> UploadTree(ApiClient* api, std::string local, RemotePath remote);
Task<Result<Transferred>> DownloadTree(ApiClient* api, RemotePath remote, std::string local);

}  // namespace caisson::cli
