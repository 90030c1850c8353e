// RootPlan: what a sandbox's root file system is made of.
#pragma once

#include <string>
#include <vector>

namespace caisson::native {

// One overlay of the root: the lower directory `outside` on the host appears at `inside`.
struct OverlaySource {
  std::string inside;   // "/", "/usr", "/var/lib/dpkg"
  std::string outside;  // an absolute host path, no link on its last component

  bool operator==(const OverlaySource&) const = default;
};

struct RootPlan {
  std::string key;  // names the content; a directory brought by a person goes by its inode
  std::vector<OverlaySource> overlays;  // "/" first, then by depth

  bool operator==(const RootPlan&) const = default;
};

}  // namespace caisson::native
