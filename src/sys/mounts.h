// The mount API as plain functions for use between clone and exec: no heap, no locks; each gives
// a descriptor or 0 on success and a negative errno on failure. fsopen(2), move_mount(2),
// mount_setattr(2): Linux >= 5.12.
#pragma once

#include <cstddef>
#include <cstdint>

namespace caisson::sys {

struct FsOption {
  const char* key;
  const char* value;  // nullptr: a flag
};

// A new file system of `type` as a detached mount with `attributes` (MOUNT_ATTR_*).
int NewFs(const char* type, const FsOption* options, size_t count, unsigned attributes);

// A detached copy of the mount at `path` below `dir` ("" for dir itself); not of those below it.
int CloneTree(int dir, const char* path);

// Sets and clears attributes of a mount; `userns` >= 0 id-maps it through that namespace.
int SetMountAttributes(int mount, uint64_t set, uint64_t clear, int userns);

// Puts a detached mount on `path` below `dir` ("" for dir itself).
int AttachMount(int mount, int dir, const char* path);

// Opens `path` below `root` without following any link or leaving it (openat2(2)). O_CLOEXEC is
// added.
int OpenBeneath(int root, const char* path, int flags);

}  // namespace caisson::sys
