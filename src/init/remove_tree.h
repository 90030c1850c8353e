// Removing a directory tree of any depth and size, while its owner may be changing it.
#pragma once

#include <string>

#include "base/result.h"
#include "init/paths.h"

namespace caisson::init {

// Removes `place` and everything below. Works on descriptors only: never follows a link, never
// enters another file system (EXDEV), and stops (ESTALE) when a directory was moved away under
// it. The depth is bounded by memory alone, open descriptors by a constant. Stops at the first
// error; what was removed stays removed.
Status RemoveTree(const Place& place);

}  // namespace caisson::init
