// Roots that a person brings: a tar file, or a directory.
//
// Theory of operation. The bytes of an archive are hostile until proven otherwise, so the process
// that parses them can do nothing with them but fill one empty directory: it is a child in
// namespaces of its own (mount, pid, network, ipc, uts; user as well without root), pivoted into
// that directory, with capabilities only over files, no_new_privs, the strict seccomp filter,
// limits on memory, CPU and file size, and a wall deadline. The parent opens the archive, hashes
// it, and feeds it to the child, so that the name of the result is the digest of exactly what the
// child read. Only a child that ended well, with a tree that can serve as a root, makes a cache
// entry.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "providers/native/root_plan.h"

namespace caisson::native {

struct ImportLimits {
  uint64_t max_bytes = uint64_t{32} << 30;  // sum of the sizes of all files, holes included
  uint64_t max_file_bytes = uint64_t{8} << 30;
  uint64_t max_entries = 2'000'000;
  uint64_t max_ratio = 1000;                  // unpacked to packed, beyond the first MiB
  uint64_t max_window = uint64_t{64} << 20;   // of zstd and xz; `xz -9` needs 64 MiB
  uint64_t max_memory = uint64_t{320} << 20;  // of the child, on top of what it inherits
  int deadline_seconds = 900;
};

// Unpacks a tar file (plain, gzip, xz or zstd) into the cache and gives it as a root. The same
// content is unpacked once; the same unchanged file is not even read again. Blocks for as long as
// it takes; safe to call from several processes at once.
//
// Set-id bits, extended attributes, ACLs, devices, FIFOs and sockets are dropped. Owners are kept
// as root (ids above 65535 become nobody), otherwise everything belongs to the user.
//
// kImageInvalid, with a remedy, when the file is no such archive, names paths outside itself, goes
// through a link, exceeds a limit, or cannot serve as a root; kResourceExhausted when the disk is
// full; kDeadlineExceeded; kIsolationFailed when the child could not be confined; kConflict when
// the file changed meanwhile; kIo. Nothing is left behind then.
Result<RootPlan> ImportTar(const std::string& path, const std::string& cache_dir,
                           const ImportLimits& limits = {});

// Gives a directory as a root as it is. kImageInvalid, naming the thing, unless it is a readable
// directory other than the host's own root whose proc, dev, tmp, workspace and etc are absent or
// real directories.
Result<RootPlan> DirectoryRoot(const std::string& path);

}  // namespace caisson::native
