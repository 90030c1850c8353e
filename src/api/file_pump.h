// FileSource, FileSink: the bytes of a file in a sandbox, a few pieces ahead of whoever takes or
// gives them, so that the way to the sandbox and the way to the client are busy together. Memory
// is bounded by kAhead pieces. Both belong to the loop's thread and must not outlive the File.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "async/task_set.h"
#include "sandbox/files.h"

namespace caisson::api {

inline constexpr uint32_t kFilePiece = 64 * 1024;
inline constexpr size_t kFilesAhead = 8;

class FileSource {
 public:
  // The bytes from `begin` up to `end`, that one excluded.
  FileSource(async::Loop& loop, sandbox::File& file, uint64_t begin, uint64_t end);

  // The next piece; empty at the end. kConflict when the file has become shorter meanwhile.
  Task<Result<std::string>> Next();

 private:
  struct Piece {
    explicit Piece(async::Loop& loop) : come(loop) {}
    uint32_t size = 0;  // that was asked for
    async::Event come;
    std::optional<Result<std::string>> data;
  };
  static Task<void> Fetch(sandbox::File* file, uint64_t offset, std::shared_ptr<Piece> piece);

  async::Loop& loop_;
  sandbox::File& file_;
  uint64_t next_;
  const uint64_t end_;
  std::deque<std::shared_ptr<Piece>> pieces_;
  async::TaskSet tasks_;
};

class FileSink {
 public:
  FileSink(async::Loop& loop, sandbox::File& file, uint64_t offset);

  // Takes a piece, waiting while too many are on their way. Gives the error of an earlier one too.
  Task<Status> Put(std::string piece);
  // Completes when all of them are written.
  Task<Status> Drain();
  uint64_t offset() const { return next_; }

 private:
  static Task<void> Send(FileSink* sink, uint64_t offset, std::string piece);

  sandbox::File& file_;
  uint64_t next_;
  size_t under_way_ = 0;
  std::optional<Error> error_;
  async::Event changed_;
  async::TaskSet tasks_;
};

}  // namespace caisson::api
