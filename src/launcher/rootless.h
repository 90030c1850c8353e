// Rootless mode: an ordinary user's launcher becomes root in a user namespace of its own.
#pragma once

#include "base/result.h"
#include "launcher/host.h"

namespace caisson::launcher {

// Enters a new user and mount namespace in which the caller is root. With newuidmap(1) and ranges
// of 65 536 ids in /etc/subuid and /etc/subgid the sandboxes get those ids; otherwise the user's
// own id is all there is. kUnsupported with a remedy where the host forbids it.
Result<IdPlan> EnterRootless();

}  // namespace caisson::launcher
