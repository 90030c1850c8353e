// Opening paths that belong to the sandbox.
//
// Everything is resolved once, by the kernel, inside the sandbox's root and with the identity in
// force; magic links of /proc (root, cwd, exe, fd/N) are not followed (openat2, Linux 5.6). What
// follows works on the descriptors.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/unique_fd.h"

namespace caisson::init {

// A directory entry: an O_PATH descriptor of the directory and the entry's name in it.
struct Place {
  sys::UniqueFd parent;
  std::string leaf;
};

// EINVAL unless `path` is absolute and free of NUL bytes.
Status CheckPath(std::string_view path);

// openat2(2) without magic links. O_CLOEXEC is added.
Result<sys::UniqueFd> OpenPath(int directory, const std::string& path, int flags,
                               unsigned mode = 0);

// The place of `path`, whose last component need not exist. EINVAL for "/" and for a path that
// ends in "." or "..".
Result<Place> FindPlace(const std::string& path);

// Makes the directories of `path` that are missing; the last one with `mode`, the others with 0755.
Status MakeDirectories(const std::string& path, unsigned mode);
// The directory part of `path`; "/" at the top.
std::string ParentPath(const std::string& path);

// "/proc/self/fd/N", by which calls that only take a path reach a descriptor.
std::string DescriptorPath(int fd);

}  // namespace caisson::init
