// RemoveTree: deletes a directory tree that somebody hostile may have filled.
//
// No path is ever looked up twice and no link is followed: every step is relative to a directory
// that is held open. Depth does not matter, since a sub-directory that is not empty is first moved
// up to the top of the tree, so two descriptors and no recursion are enough. A directory on which
// something is mounted is never entered.
#pragma once

#include <cstdint>
#include <limits>

#include "base/result.h"

namespace caisson::sys {

enum class RemoveProgress {
  kGone,        // nothing of the tree is left
  kUnfinished,  // the budget ran out; call again
};

// Removes `name` (a directory with all that it holds, or a single file or link) from the directory
// `parent_fd`. Stops with kUnfinished after about `budget` removed entries. A name that does not
// exist counts as gone. Nobody else may be changing the tree: one that keeps growing ends in kIo.
Result<RemoveProgress> RemoveTree(int parent_fd, const char* name,
                                  uint64_t budget = std::numeric_limits<uint64_t>::max());

}  // namespace caisson::sys
