// The skeleton of the environment `host`, written into an empty directory of ours.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "providers/native/host_etc.h"

namespace caisson::native {

struct SkeletonLink {
  std::string name;    // "bin"
  std::string target;  // "usr/bin"
};

struct SkeletonPlan {
  std::vector<SkeletonLink> links;        // top-level links as on the host
  std::vector<std::string> mount_points;  // "usr", "var/lib/dpkg": where further overlays go
  std::vector<EtcItem> etc;
};

// Writes the skeleton into the empty directory `target`, reading contents from `host_root`.
Status WriteSkeleton(int target, int host_root, const SkeletonPlan& plan);

}  // namespace caisson::native
