// Berths: the parts of a sandbox that can be made before anybody asks for it.
//
// A berth is an id range with its user namespace, a furnished disk owned by it, and the lower
// layers of one root mapped to it. Making one costs several hundred microseconds, so the launcher
// keeps a few ready for the root that was asked for last and refills when it has nothing else to
// do. User namespaces and id ranges are used again after a sandbox's end, when nothing of it is
// left; disks and mounts never.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "launcher/host.h"
#include "wire/launcher_protocol.h"

namespace caisson::launcher {

struct Root {
  std::string key;
  std::vector<std::string> inside;    // paths of the overlays; the first is "/"
  std::vector<sys::UniqueFd> layers;  // O_PATH directories, one for each
};

// An id range and the user namespace that maps it. Gives the range back to the table when it goes.
class IdRange {
 public:
  IdRange(SlotTable* slots, uint32_t slot, uint32_t first_id, sys::UniqueFd user_ns)
      : slots_(slots), slot_(slot), first_id_(first_id), user_ns_(std::move(user_ns)) {}
  IdRange(IdRange&& other) noexcept
      : slots_(std::exchange(other.slots_, nullptr)),
        slot_(other.slot_),
        first_id_(other.first_id_),
        user_ns_(std::move(other.user_ns_)) {}
  IdRange& operator=(IdRange&& other) noexcept {
    std::swap(slots_, other.slots_);
    std::swap(slot_, other.slot_);
    std::swap(first_id_, other.first_id_);
    std::swap(user_ns_, other.user_ns_);
    return *this;
  }
  ~IdRange() {
    if (slots_ != nullptr) slots_->Free(slot_);
  }
  uint32_t first_id() const { return first_id_; }
  int user_ns() const { return user_ns_.get(); }

 private:
  SlotTable* slots_;  // null in rootless mode
  uint32_t slot_;
  uint32_t first_id_;
  sys::UniqueFd user_ns_;
};

struct BerthRequest {
  std::string root_key;
  uint32_t uid = 0;  // owner of /workspace, inside
  DiskBackend disk_backend = DiskBackend::kTmpfs;
  uint64_t disk_bytes = 0, disk_inodes = 0;
  bool operator==(const BerthRequest&) const = default;
};

// Destroyed in reverse: mounts, disk, then the ids.
struct Berth {
  BerthRequest request;
  IdRange ids;
  std::unique_ptr<Disk> disk;
  std::vector<sys::UniqueFd> lowers;  // detached mounts, consumed by the jail
  bool id_mapped = true;
};

class BerthPool {
 public:
  // `host` outlives the pool.
  BerthPool(Host& host, size_t target) : host_(host), target_(target) {}

  Status Register(Root root);
  const Root* Find(const std::string& key) const;

  // A berth as asked for: a ready one (its disk resized where that is all that differs), or a new
  // one.
  Result<Berth> Take(const BerthRequest& request);
  // Takes the id range of an ended sandbox for the next.
  void Return(IdRange ids);

  // One step of work towards a full pool. False when there is nothing to do.
  bool Refill();
  size_t ready() const { return ready_.size(); }

 private:
  Result<IdRange> TakeIds();
  Result<Berth> Make(const BerthRequest& request);

  Host& host_;
  size_t target_;
  std::map<std::string, Root> roots_;
  std::vector<IdRange> idle_ids_;
  std::vector<Berth> ready_;
  BerthRequest last_;
  bool failed_ = false;  // refilling failed; wait for the next request to say why
};

}  // namespace caisson::launcher
