// Network namespaces with nothing but loopback.
#pragma once

#include "base/result.h"
#include "sys/unique_fd.h"

namespace caisson::sys {

// Moves the calling process into a new network namespace, brings its loopback up, lets any user
// bind low ports and ping, and gives a descriptor of the namespace. The caller stays in it.
Result<UniqueFd> EnterNewNetNs();

}  // namespace caisson::sys
