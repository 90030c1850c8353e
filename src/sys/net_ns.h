// Network namespaces with nothing but loopback.
#pragma once

#include <string>

#include "base/result.h"
#include "sys/unique_fd.h"

namespace caisson::sys {

// Moves the calling process into a new network namespace, brings its loopback up, lets any user
// bind low ports and ping, and gives a descriptor of the namespace. The caller stays in it.
Result<UniqueFd> EnterNewNetNs();

// Everything that a process without capabilities can leave in the calling process's network
// namespace, as one text: the counters of its interfaces and protocols, sockets, connections that
// linger, group memberships, flow labels, routes. Equal texts of two namespaces that EnterNewNetNs
// made mean that nothing has happened in either since.
Result<std::string> NetNsFootprint();

}  // namespace caisson::sys
