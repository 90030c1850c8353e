#include "launcher/slots.h"

#include <fcntl.h>

#include <cerrno>

namespace caisson::launcher {
namespace {

bool SetLock(int file, short type, uint32_t slot) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = slot;
  lock.l_len = 1;
  return fcntl(file, F_OFD_SETLK, &lock) == 0;
}

}  // namespace

Result<SlotTable> SlotTable::Open(const std::string& path) {
  sys::UniqueFd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return Error::FromErrno("open the id slot table " + path);
  return SlotTable(std::move(file));
}

Result<uint32_t> SlotTable::Take() {
  for (uint32_t slot = hint_; slot < kSlots; ++slot) {
    if (taken_[slot] != 0) continue;
    if (SetLock(file_.get(), F_WRLCK, slot)) {
      taken_[slot] = 1;
      hint_ = slot + 1;
      return slot;
    }
    if (errno != EAGAIN && errno != EACCES) return Error::FromErrno("lock an id slot");
  }
  return Error(ErrorCode::kResourceExhausted, "all id ranges for sandboxes are in use")
      .WithRemedy("destroy sandboxes that are no longer needed");
}

void SlotTable::Free(uint32_t slot) {
  SetLock(file_.get(), F_UNLCK, slot);
  taken_[slot] = 0;
  if (slot < hint_) hint_ = slot;
}

}  // namespace caisson::launcher
