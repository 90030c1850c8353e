// Sessions that http_bench holds by their ids, made and ended eight at a time.
#pragma once

#include <string>
#include <vector>

#include "http_remote.h"

namespace caisson::bench {

using Ids = std::vector<std::string>;

// `count` more of them.
Task<Status> HoldMore(Remote* remote, Ids* held, size_t count);
// Destroys all of them and waits until the server is done with it.
Task<Status> EndAll(Remote* remote, Ids* held);

}  // namespace caisson::bench
