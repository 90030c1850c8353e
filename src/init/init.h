// The whole of caisson-init behind its command line.
#pragma once

#include <cstdint>

namespace caisson::init {

// Becomes the sandbox's init on the SOCK_SEQPACKET socket `control_fd`, holding the capabilities
// `caps` and running requests without a user as `default_user`. Returns the exit code when the
// sandbox has ended: 0, or 125 when init could not start. As PID 1 it never meets its orphans'
// parents; elsewhere (in tests) it becomes a child subreaper.
int RunInit(int control_fd, uint64_t caps, const char* default_user);

}  // namespace caisson::init
