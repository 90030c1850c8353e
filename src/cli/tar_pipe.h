// A directory as a tar archive, read from or written to a pipe while a thread of its own does the
// packing or unpacking.
//
// What is unpacked comes from a sandbox and is not trusted: names cannot lead out of the directory,
// nor through symbolic links; set-id bits and owners are dropped; what is neither a file, a
// directory nor a symbolic link is refused.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "base/result.h"
#include "sys/unique_fd.h"

namespace caisson::cli {

class TarPipe {
 public:
  // fd() gives the archive of what is below `directory`; it does not block. Sockets, FIFOs and
  // devices are left out.
  static Result<std::unique_ptr<TarPipe>> Pack(std::string directory);
  // fd() takes an archive, which is unpacked below `directory`, which exists.
  static Result<std::unique_ptr<TarPipe>> Unpack(std::string directory);
  ~TarPipe();
  TarPipe(const TarPipe&) = delete;
  TarPipe& operator=(const TarPipe&) = delete;

  int fd() const { return fd_.get(); }
  // Closes fd() and waits; how it went. Of a packing that was not read to its end, an error.
  Status Finish();

 private:
  explicit TarPipe(sys::UniqueFd fd) : fd_(std::move(fd)) {}

  sys::UniqueFd fd_;
  Status status_;  // written by the thread, read after it has ended
  std::thread thread_;
};

}  // namespace caisson::cli
