// Prepared jails: children that have built their root and joined their cgroup, and wait to become a
// sandbox.
//
// Nothing runs in one: its init has not been executed, and it holds no descriptor but its own. It
// can become any sandbox of its kind (root, profile, default user, limits) that asks for no mounts.
// The pool keeps a few of the kind that was asked for last, made when the launcher has nothing else
// to do.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/birth.h"

namespace caisson::launcher {

class JailPool {
 public:
  explicit JailPool(size_t target) : target_(target) {}

  // A live jail of this kind, or null. Remembers what was asked for.
  std::unique_ptr<Box> Take(const JailKind& kind);

  // One step towards a full pool of the kind asked for last. False when there is nothing to do.
  bool Refill(const Host& host, Pools pools);

  // Drops those of a root that has changed.
  void Forget(const std::string& root_key);

 private:
  struct Ready {
    JailKind kind;
    std::unique_ptr<Box> box;
  };
  size_t target_;
  std::optional<JailKind> last_;
  std::vector<Ready> ready_;
  bool failed_ = false;  // refilling failed; the next create says why
};

}  // namespace caisson::launcher
