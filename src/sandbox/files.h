// Files: the file system of a sandbox, seen and changed from inside it as one of its users.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "async/task.h"
#include "base/result.h"

namespace caisson::sandbox {

struct FileInfo {
  std::string name;  // bytes, not necessarily UTF-8
  uint32_t mode = 0, uid = 0, gid = 0, links = 0;
  uint64_t size = 0, inode = 0, mtime_ns = 0, ctime_ns = 0, atime_ns = 0;
  std::string target;  // of a symbolic link
};
struct FilePage {
  std::vector<FileInfo> entries;
  uint64_t next = 0;  // cursor of the next page; 0: the end
};

enum class Follow { kNo, kYes };
enum class Existing { kKeep, kReplace };
enum class Parents { kMustExist, kMake };
enum class Recursion { kNo, kYes };

enum class WriteMode {
  kInPlace,    // create or truncate
  kReplace,    // appears under its name when committed, whole or not at all
  kCreateNew,  // must not exist
  kResume,     // not truncated; write at any offset
};

// An open file. Closes (discarding a kReplace that was not committed) when it goes.
class File {
 public:
  virtual ~File() = default;
  virtual const FileInfo& info() const = 0;
  // At most 64 KiB from `offset`; empty at the end.
  virtual Task<Result<std::string>> Read(uint64_t offset, uint32_t size) = 0;
  virtual Task<Status> Write(uint64_t offset, std::string data) = 0;
  virtual Task<Status> Commit() = 0;
};

enum class FileChange : uint8_t { kCreated, kWritten, kRemoved, kRenamed, kAttributes, kOverflow };
struct FileEvent {
  FileChange change;
  std::string path;  // relative to what is watched
};
class FileWatch {
 public:
  virtual ~FileWatch() = default;
  virtual Task<Result<FileEvent>> Next() = 0;
};

class Files {
 public:
  virtual ~Files() = default;
  virtual Task<Result<FileInfo>> Stat(std::string path, std::string user, Follow follow) = 0;
  virtual Task<Result<FilePage>> List(std::string path, std::string user, uint64_t cursor,
                                      uint32_t max) = 0;
  virtual Task<Result<std::unique_ptr<File>>> OpenRead(std::string path, std::string user) = 0;
  virtual Task<Result<std::unique_ptr<File>>> OpenWrite(std::string path, std::string user,
                                                        WriteMode mode, uint32_t permissions,
                                                        Parents parents) = 0;
  virtual Task<Status> Mkdir(std::string path, std::string user, uint32_t permissions,
                             Parents parents) = 0;
  virtual Task<Status> Move(std::string from, std::string to, std::string user,
                            Existing existing) = 0;
  virtual Task<Status> Remove(std::string path, std::string user, Recursion recursion) = 0;
  virtual Task<Status> SetMode(std::string path, std::string user, uint32_t permissions) = 0;
  virtual Task<Status> Symlink(std::string target, std::string path, std::string user) = 0;
  virtual Task<Result<std::unique_ptr<FileWatch>>> Watch(std::string path, std::string user,
                                                         Recursion recursion) = 0;
};

}  // namespace caisson::sandbox
