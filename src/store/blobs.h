// Blobs: files that are kept for sessions and artifacts, below storage/ of the data directory.
//
// A blob is named by an area, an id and a relative path: storage/artifacts/ID/out/plot.png. Names
// come from outside, so each is checked and then opened without following any link and without
// leaving its id's directory (openat2, Linux 5.6). A blob is whole or absent: it is written beside
// its place, flushed, renamed, and its directory flushed. Blocking: for a thread pool. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "store/data_dir.h"
#include "sys/unique_fd.h"

namespace caisson::store {

enum class BlobArea { kSessions, kArtifacts };

struct BlobInfo {
  std::string name;
  int64_t size = 0;
  int64_t modified_ms = 0;
};

// A blob in the making. Destroying it before Commit() leaves nothing behind.
class BlobWriter {
 public:
  BlobWriter(BlobWriter&& other) noexcept;
  BlobWriter& operator=(BlobWriter&&) = delete;
  ~BlobWriter();

  // kResourceExhausted when it would grow beyond its limit or the disk is full.
  Status Append(std::string_view bytes);
  struct Committed {
    int64_t size = 0;
    std::string sha256;  // hex
  };
  // Puts the blob in its place, in that of an older one of the same name if there is one. On the
  // disk when this returns.
  Result<Committed> Commit();

 private:
  friend class Blobs;
  BlobWriter(sys::UniqueFd dir, sys::UniqueFd file, std::string temporary, std::string name,
             int64_t limit);

  sys::UniqueFd dir_;
  sys::UniqueFd file_;
  std::string temporary_;
  std::string name_;
  int64_t limit_;
  int64_t size_ = 0;
  Sha256 hash_;
};

class BlobReader {
 public:
  int64_t size() const { return size_; }
  // At most `max` bytes from `offset`; fewer only at the end.
  Result<std::string> ReadAt(int64_t offset, size_t max) const;

 private:
  friend class Blobs;
  BlobReader(sys::UniqueFd file, int64_t size) : file_(std::move(file)), size_(size) {}
  sys::UniqueFd file_;
  int64_t size_;
};

class Blobs {
 public:
  // `dir` outlives the Blobs.
  explicit Blobs(DataDir& dir) : dir_(&dir) {}

  // Begins a blob of at most `limit` bytes. kInvalidArgument for a name or id that is none.
  Result<BlobWriter> Create(BlobArea area, std::string_view id, std::string_view name,
                            int64_t limit);
  // Adds to a blob in place, as logs need it. When it would pass `rotate_at` bytes it becomes
  // NAME.1 first, in place of an older one. Not flushed.
  Status AppendLog(BlobArea area, std::string_view id, std::string_view name,
                   std::string_view bytes, int64_t rotate_at);
  // kNotFound when there is none.
  Result<BlobReader> Open(BlobArea area, std::string_view id, std::string_view name);
  // Everything of an id, by name; empty when there is nothing.
  Result<std::vector<BlobInfo>> List(BlobArea area, std::string_view id);
  // kNotFound when there is none.
  Status Remove(BlobArea area, std::string_view id, std::string_view name);
  // Everything of an id. No error when there is nothing.
  Status RemoveAll(BlobArea area, std::string_view id);
  // When something of an id was last added or removed. kNotFound when there is nothing.
  Result<int64_t> ModifiedMs(BlobArea area, std::string_view id);
  // The ids that have something.
  Result<std::vector<std::string>> Ids(BlobArea area);

 private:
  DataDir* dir_;
};

// kInvalidArgument unless `id` is 1 to 128 letters, digits, '-' and '_'.
Status CheckBlobId(std::string_view id);
// kInvalidArgument unless `name` is a relative path of 1 to 16 parts of 1 to 200 bytes, none of
// them
// "." or "..", without control characters, and not one of a blob in the making.
Status CheckBlobName(std::string_view name);

}  // namespace caisson::store
