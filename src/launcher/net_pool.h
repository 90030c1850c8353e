// A pool of network namespaces, made by a process of its own.
//
// Making one takes most of a millisecond, so a forked helper does it ahead of need and sends the
// descriptors over a socket. Namespaces are used once: a new sandbox must not see the old one's
// counters.
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
