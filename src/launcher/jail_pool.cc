#include "launcher/jail_pool.h"

#include "launcher/cgroup_pool.h"

namespace caisson::launcher {
namespace {

bool Same(const JailKind& a, const JailKind& b) {
  return a.berth == b.berth && a.profile == b.profile &&
         SameLimits(a.limits.cgroup, b.limits.cgroup);
}

}  // namespace

std::unique_ptr<Box> JailPool::Take(const JailKind& kind) {
  last_ = kind;
  failed_ = false;
  while (!ready_.empty() && Same(ready_.back().kind, kind)) {
    std::unique_ptr<Box> box = std::move(ready_.back().box);
    ready_.pop_back();
    if (!box->init.TryReap()) return box;  // it waits
  }
  return nullptr;
}

bool JailPool::Refill(const Host& host, Pools pools) {
  if (failed_ || !last_ || last_->berth.disk_backend != DiskBackend::kTmpfs) return false;
  if (!ready_.empty() && !Same(ready_.back().kind, *last_)) {
    ready_.pop_back();  // demand has moved
    return true;
  }
  if (ready_.size() >= target_) return false;
  wire::launcher::Create spec;
  spec.root_key = last_->berth.root_key;
  spec.profile = last_->profile;
  auto made = PrepareJail(host, pools, *last_, std::move(spec), {});
  if (!made) {
    failed_ = true;
    return false;
  }
  ready_.push_back({*last_, *std::move(made)});
  return true;
}

void JailPool::Forget(const std::string& root_key) {
  std::erase_if(ready_, [&](const Ready& ready) { return ready.kind.berth.root_key == root_key; });
}

}  // namespace caisson::launcher
