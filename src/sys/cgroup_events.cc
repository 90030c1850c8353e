#include <fcntl.h>

#include "sys/cgroup_internal.h"

namespace caisson::sys {

UniqueFd Cgroup::OpenEvents(Controller controller) const {
  if (tree_ == nullptr) return UniqueFd();
  const internal::Hierarchy* hierarchy = tree_->Serving(controller);
  if (hierarchy == nullptr) return UniqueFd();
  const char* file = controller == Controller::kPids               ? "pids.events"
                     : hierarchy->version == internal::Version::k1 ? "memory.oom_control"
                                                                   : "memory.events";
  const internal::GroupDir group = hierarchy->Group(name_);
  return UniqueFd(openat(group.parent, group.Path(file).c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace caisson::sys
