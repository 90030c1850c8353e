// A pool of network namespaces, made by a process of its own.
//
// Making one takes most of a millisecond, and so does the kernel's work when it goes, so a forked
// helper makes them ahead of need and sends the descriptors over a socket. A namespace whose
// sandbox has ended is used again only when nothing has ever happened in it: the helper compares
// its footprint (sys::NetNsFootprint) with that of a new one. Most sandboxes never touch the
// network.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <vector>

#include "base/result.h"
#include "sys/process.h"
#include "sys/unique_fd.h"

namespace caisson::launcher {

class NetPool {
 public:
  // Forks the helper. The caller is single-threaded. The helper exits when the pool goes.
  static Result<NetPool> Start(size_t target);

  // A namespace from the pool, or, when it is empty, one that the helper makes now.
  Result<sys::UniqueFd> Take();

  // The namespace of a live process of ours, for Return. Empty when it cannot be had.
  static sys::UniqueFd OpenOf(pid_t pid);
  // A namespace whose processes are all gone. It comes back into the pool if it is as new.
  void Return(sys::UniqueFd used);

  int socket() const { return socket_.get(); }  // readable: call Collect
  void Collect();                               // takes in what the helper has made
  void Order();                                 // asks for as many as are missing; call when idle
  size_t ready() const { return ready_.size(); }

 private:
  NetPool(sys::Child helper, sys::UniqueFd socket, size_t target)
      : helper_(std::move(helper)), socket_(std::move(socket)), target_(target) {}
  sys::Child helper_;
  sys::UniqueFd socket_;
  size_t target_;
  size_t ordered_ = 0;
  std::vector<sys::UniqueFd> ready_;
};

}  // namespace caisson::launcher
