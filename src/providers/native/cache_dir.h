// The cache of prepared roots: a private directory, and drafts in it that become entries whole or
// not at all.
#pragma once

#include <string>

#include "base/result.h"
#include "sys/unique_fd.h"

namespace caisson::native {

// Opens `path`, making it (0700) and its parents if need be. kPermissionDenied unless it belongs to
// the effective user and nobody else can write to it: entries are trusted once they are there.
Result<sys::UniqueFd> OpenCacheDir(const std::string& path);

// A directory under construction, named .draft-… in `cache_fd`, which must outlive it. A draft
// that is neither committed nor alive is removed: by the destructor, or after a crash by the
// next Create.
class DraftDir {
 public:
  static Result<DraftDir> Create(int cache_fd);
  DraftDir(DraftDir&& other) noexcept;
  DraftDir& operator=(DraftDir&&) = delete;
  ~DraftDir();

  int fd() const { return fd_.get(); }
  const std::string& name() const { return name_; }

  // Makes the draft the entry `name`. When somebody else has made that entry meanwhile, theirs
  // stays and the draft is dropped.
  Status Commit(const std::string& name) &&;

 private:
  DraftDir(int cache_fd, std::string name, sys::UniqueFd fd);

  int cache_fd_;
  std::string name_;  // empty: nothing to remove
  sys::UniqueFd fd_;  // locked as long as the draft lives
};

// Writes a small file of the cache atomically (not durably: the cache can be made again).
Status WriteCacheFile(int cache_fd, const std::string& name, std::string_view content);
// Whether `name` is a directory of the effective user in the cache.
enum class CacheEntry { kPresent, kAbsent };
CacheEntry FindEntry(int cache_fd, const std::string& name);

}  // namespace caisson::native
