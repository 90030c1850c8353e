// User namespaces for sandboxes, made ahead of use.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "sys/unique_fd.h"

namespace caisson::sys {

struct IdMap {
  uint32_t inside = 0, outside = 0, count = 0;
};
struct IdMaps {
  IdMap users, groups;
};

enum class Nesting : uint8_t { kForbidden, kAllowed };

// A new user namespace with these maps. With Nesting::kForbidden no further namespace of any kind
// can be made in it (user.max_*_namespaces = 0). Its creator in the parent namespace is
// `users.outside`, so per-user kernel budgets (inotify, keys, namespaces) are charged to the
// sandbox's own id and not to ours. Needs CAP_SETUID, CAP_SETGID and CAP_SYS_ADMIN over the current
// user namespace.
Result<UniqueFd> MakeUserNamespace(IdMaps maps, Nesting nesting);

}  // namespace caisson::sys
