// The gangway: how a child gets its descriptors without a copy of all of the launcher's.
//
// Theory of operation. A fork copies the parent's descriptor table, and the child then closes what
// is not its own; with the descriptors of a thousand sandboxes that is a quarter of a birth. So a
// child shares the launcher's table (CLONE_FILES) for its first moments. What it needs lies in a
// block of numbers that nothing else uses, and its first act is to close everything above the block
// in a table of its own, for which the kernel copies the block alone (CLOSE_RANGE_UNSHARE,
// close_range(2), Linux 5.9). Then it writes a byte: the block is free again.
//
// Until that byte comes the launcher leaves the block as it is. Descriptors that it opens or closes
// meanwhile lie outside, because numbers of the block that no child uses are held by placeholders.
#pragma once

#include "base/result.h"
#include "launcher/jail.h"
#include "sys/process.h"
#include "sys/unique_fd.h"

namespace caisson::launcher {

class Gangway {
 public:
  // Takes a block of free numbers for as long as the process lives.
  static Result<Gangway> Reserve();

  // Puts copies of the plan's descriptors into the block and their numbers into the plan. Waits
  // until the child before has left.
  Status Load(JailPlan& plan);
  // Clones with CLONE_FILES and `flags`. In the child, EnterJail comes next and nothing else.
  sys::CloneResult Clone(uint64_t flags, int cgroup_fd);

  int left() const { return left_read_.get(); }  // readable: a child has left; call Collect
  // Clears the block if the child has left it, by its own act or by its death.
  void Collect();

 private:
  Gangway(int first, sys::UniqueFd placeholder, sys::UniqueFd left_read, sys::UniqueFd left_write)
      : first_(first),
        placeholder_(std::move(placeholder)),
        left_read_(std::move(left_read)),
        left_write_(std::move(left_write)) {}
  bool HasLeft(int timeout_ms);
  void Clear();

  int first_;  // of the block
  sys::UniqueFd placeholder_;
  sys::UniqueFd left_read_, left_write_;
  sys::UniqueFd child_;  // pidfd of the child that shares the table
  int loaded_ = 0;
};

}  // namespace caisson::launcher
