// Archives into a sandbox and out of it, streamed: no file in between, memory bounded.
#pragma once

#include <functional>
#include <string>

#include "api/file_access.h"
#include "api/tar_stream.h"
#include "async/loop.h"

namespace caisson::api {

// Gives the next piece of an archive; empty at its end.
using ArchiveSource = std::function<Task<Result<std::string>>()>;
// Takes the next piece.
using ArchiveSink = std::function<Task<Status>(std::string)>;

struct UnpackResult {
  uint64_t entries = 0, skipped = 0, bytes = 0;
};
// Puts everything below the directory `path`, which is made when it is not there. Files replace
// what has their name, each whole; directories that are there stay as they are; a hard link becomes
// a copy of the file. Owner is the user, times are those of now. When it fails, what was put before
// stays. Errors: those of TarReader, of the source and of the sandbox. `at` outlives the task.
Task<Result<UnpackResult>> UnpackTar(async::Loop* loop, const SessionFiles* at, std::string path,
                                     TarLimits limits, ArchiveSource source);

// Files that the user may not read.
enum class Unreadable { kFail, kSkip };
// The directory `path` with all below it, or the one file. Sockets, FIFOs and devices are left out,
// as are files that go away meanwhile, and /proc, /sys and /dev below /. Links are kept as links.
// The first piece comes after `path` has been opened. `at` outlives the task.
Task<Status> PackTar(async::Loop* loop, const SessionFiles* at, std::string path,
                     Unreadable unreadable, ArchiveSink sink);

}  // namespace caisson::api
