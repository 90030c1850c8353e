#include "launcher/berth.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "launcher/disk_layout.h"
#include "launcher/hooks.h"
#include "sys/mounts.h"
#include "sys/user_ns.h"

namespace caisson::launcher {
namespace {

constexpr size_t kIdleIds = 256;

// A descriptor's path, opened again: an ordinary user's launcher has its own copy of the host's
// mounts and cannot use descriptors that refer to the original.
Result<sys::UniqueFd> Reopen(int fd) {
  char path[4096];
  const ssize_t size =
      readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path - 1);
  if (size < 0) return Error::FromErrno("find the path of a directory");
  path[size] = '\0';
  sys::UniqueFd again(open(path, O_PATH | O_CLOEXEC | O_NOFOLLOW));
  if (!again) return Error::FromErrno(std::string("open ") + path);
  return again;
}

// A detached, id-mapped, read-only mount of a layer. Without id mapping where the file system
// cannot.
struct LowerMount {
  sys::UniqueFd mount;
  bool id_mapped;
};
Result<LowerMount> MakeLower(int layer, const std::string& inside, int user_ns) {
  const int raw = sys::CloneTree(layer, "");
  if (raw < 0) return Error::FromErrno("copy the mount of the root's layer for " + inside, -raw);
  sys::UniqueFd mount(raw);
  constexpr uint64_t kAttributes = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (user_ns >= 0 && sys::SetMountAttributes(raw, kAttributes, 0, user_ns) == 0)
    return LowerMount{std::move(mount), true};
  if (const int error = sys::SetMountAttributes(raw, kAttributes, 0, -1); error < 0)
    return Error::FromErrno("protect the root's layer for " + inside, -error);
  return LowerMount{std::move(mount), false};
}

}  // namespace

Status BerthPool::Register(Root root) {
  if (root.inside.empty() || root.inside[0] != "/" || root.inside.size() != root.layers.size())
    return Error(ErrorCode::kInvalidArgument,
                 "a root needs a layer for \"/\" first and one descriptor per path");
  for (const auto& path : root.inside)
    if (path.empty() || path[0] != '/' || path.find("/../") != std::string::npos ||
        path.find('\0') != std::string::npos)
      return Error(ErrorCode::kInvalidArgument,
                   "a root's layer must be at an absolute path, not \"" + path + "\"");
  if (host_.rootless)
    for (auto& layer : root.layers) {
      CAISSON_ASSIGN(layer, Reopen(layer.get()));
    }
  std::erase_if(ready_, [&](const Berth& berth) { return berth.request.root_key == root.key; });
  const std::string key = root.key;
  roots_.insert_or_assign(key, std::move(root));
  return {};
}

const Root* BerthPool::Find(const std::string& key) const {
  const auto found = roots_.find(key);
  return found == roots_.end() ? nullptr : &found->second;
}

Result<IdRange> BerthPool::TakeIds() {
  if (!idle_ids_.empty()) {
    IdRange ids = std::move(idle_ids_.back());
    idle_ids_.pop_back();
    return ids;
  }
  const auto nesting =
      Ablated(Layer::kNamespaceCeilings) ? sys::Nesting::kAllowed : sys::Nesting::kForbidden;
  if (host_.slots == nullptr) {
    const sys::IdMap map{0, host_.ids.first_id, host_.ids.count};
    CAISSON_ASSIGN(auto user_ns, sys::MakeUserNamespace({map, map}, nesting));
    return IdRange(nullptr, 0, host_.ids.first_id, std::move(user_ns));
  }
  CAISSON_ASSIGN(const uint32_t slot, host_.slots->Take());
  const sys::IdMap map{0, SlotTable::FirstId(slot), kIdsPerSlot};
  auto user_ns = sys::MakeUserNamespace({map, map}, nesting);
  if (!user_ns) {
    host_.slots->Free(slot);
    return std::move(user_ns).error();
  }
  return IdRange(host_.slots.get(), slot, map.outside, *std::move(user_ns));
}

Result<Berth> BerthPool::Make(const BerthRequest& request) {
  const Root* root = Find(request.root_key);
  if (root == nullptr)
    return Error(ErrorCode::kNotFound, "no root \"" + request.root_key + "\" is registered");
  CAISSON_ASSIGN(auto ids, TakeIds());
  const DiskRequest disk_request{request.disk_bytes, request.disk_inodes, ids.first_id(),
                                 ids.first_id()};
  auto disk = Disk::Create(request.disk_backend, disk_request, host_.state_dir);
  if (!disk) return std::move(disk).error();
  CrashPoint("disk made");
  CAISSON_TRY(FurnishDisk((*disk)->mount_fd(), root->inside, {ids.first_id(), request.uid},
                          host_.rootless ? DeviceNodes::kLeaveForBinding : DeviceNodes::kMake));
  Berth berth{request, std::move(ids), *std::move(disk), {}, true};
  for (size_t i = 0; i < root->layers.size(); ++i) {
    CAISSON_ASSIGN(
        auto lower,
        MakeLower(root->layers[i].get(), root->inside[i],
                  host_.rootless || !host_.overlay_takes_id_maps ? -1 : berth.ids.user_ns()));
    berth.id_mapped = berth.id_mapped && lower.id_mapped;
    berth.lowers.push_back(std::move(lower.mount));
  }
  return berth;
}

Result<Berth> BerthPool::Take(const BerthRequest& request) {
  last_ = request;
  failed_ = false;
  for (size_t i = ready_.size(); i-- > 0;) {
    BerthRequest same = ready_[i].request;
    same.disk_bytes = request.disk_bytes;
    same.disk_inodes = request.disk_inodes;
    if (same != request) continue;
    Berth berth = std::move(ready_[i]);
    ready_.erase(ready_.begin() + static_cast<ptrdiff_t>(i));
    if (berth.request != request) {
      auto resized = berth.disk->Resize(request.disk_bytes, request.disk_inodes);
      if (!resized) return std::move(resized).error();
      berth.request = request;
    }
    return berth;
  }
  return Make(request);
}

void BerthPool::Return(IdRange ids) {
  if (idle_ids_.size() < kIdleIds) idle_ids_.push_back(std::move(ids));
}

bool BerthPool::Refill() {
  if (failed_ || last_.root_key.empty() || last_.disk_backend != DiskBackend::kTmpfs) return false;
  if (!ready_.empty() &&
      (ready_[0].request.root_key != last_.root_key || ready_[0].request.uid != last_.uid)) {
    ready_.clear();  // demand has moved to another root
    return true;
  }
  if (ready_.size() >= target_) return false;
  auto made = Make(last_);
  if (!made) {
    failed_ = true;
    return false;
  }
  ready_.push_back(*std::move(made));
  return true;
}

}  // namespace caisson::launcher
