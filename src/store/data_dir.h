// DataDir: the directory that holds all state of one server.
//
//   lock         held (flock) for as long as a server runs on it
//   caisson.db   the database, with caisson.db-wal and caisson.db-shm
//   reserve      16 MiB of nothing, given up when the disk is full
//   audit.anchor how far the audit log reaches
//   storage/     blobs: storage/sessions/ID, storage/artifacts/ID
//
// All of it is private to the user (0700, 0600). Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/unique_fd.h"

namespace caisson::store {

class DataDir {
 public:
  static constexpr int64_t kReserveBytes = 16 << 20;

  // Makes the directory when there is none, and takes its lock. kConflict, naming the other's pid,
  // when a server runs on it; kPermissionDenied when it belongs to another user.
  static Result<DataDir> Open(const std::string& path);

  const std::string& path() const { return path_; }
  std::string PathOf(std::string_view name) const;
  int fd() const { return dir_.get(); }

  // Allocates the reserve unless it is there. kResourceExhausted when the disk has no room.
  Status MakeReserve();
  // Gives the reserve's blocks back to the file system. False when there was none to give.
  bool GiveUpReserve();

 private:
  DataDir(std::string path, sys::UniqueFd dir, sys::UniqueFd lock)
      : path_(std::move(path)), dir_(std::move(dir)), lock_(std::move(lock)) {}

  std::string path_;
  sys::UniqueFd dir_;
  sys::UniqueFd lock_;
};

// fsync(2) of a directory: what was created, renamed or removed in it survives power loss.
Status SyncDirectory(int dir_fd, std::string_view name);

// Writes a small file so that after any crash it is either the old one or the new one.
Status WriteFileAtomically(int dir_fd, const std::string& name, std::string_view bytes);
// The whole file, at most `max` bytes. kNotFound when there is none.
Result<std::string> ReadSmallFile(int dir_fd, const std::string& name, size_t max);

}  // namespace caisson::store
