// The dock: a mount namespace that is nearly empty, in which sandboxes are born.
//
// A child cloned with CLONE_NEWNS copies every mount its parent sees; on a busy host that costs
// milliseconds (a thousand mounts: two). So the launcher steps into the dock for the moment of the
// clone and back. The dock holds one small tmpfs with the directories on which a child builds its
// root.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "sys/unique_fd.h"

namespace caisson::launcher {

class Dock {
 public:
  // Names inside the dock, relative to its root (which is the child's cwd).
  static constexpr const char* kDisk = "disk";
  static constexpr const char* kRoot = "root";
  static constexpr const char* kLowerPrefix = "l";  // l0 … l11

  // An ordinary user may mount a new /proc only where one is visible already (mount_too_revealing
  // in the kernel), so a rootless dock keeps the host's at `p`.
  enum class Proc : uint8_t { kAbsent, kVisible };

  // Builds the dock. The calling process is single-threaded and ends up where it was.
  static Result<Dock> Build(Proc proc);

  Status Enter() const;  // into the dock; cwd and root are the dock's
  Status Leave() const;  // back to the host's mounts

 private:
  Dock(sys::UniqueFd host, sys::UniqueFd dock) : host_(std::move(host)), dock_(std::move(dock)) {}
  sys::UniqueFd host_, dock_;
};

}  // namespace caisson::launcher
