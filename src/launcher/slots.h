// Slots: ranges of 65 536 host ids, one per live sandbox.
//
// Slot k owns the host ids [kFirstId + k * 65536, + 65536). A slot in use is a locked byte of one
// file shared by every launcher on the host (open file description locks), so two launchers never
// hand out the same ids and a killed launcher's slots free themselves. The range lies above what
// distributions use for people, subordinate ids and systemd's containers.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "sys/unique_fd.h"

namespace caisson::launcher {

inline constexpr uint32_t kIdsPerSlot = 65536;
inline constexpr uint32_t kFirstId = 0x70000000;
inline constexpr uint32_t kSlots = 0x7FFE;  // up to 0xEFFE0000

class SlotTable {
 public:
  // `path` is the shared lock file; its directory exists.
  static Result<SlotTable> Open(const std::string& path);

  // The lowest free slot. kResourceExhausted when all are taken.
  Result<uint32_t> Take();
  void Free(uint32_t slot);

  static uint32_t FirstId(uint32_t slot) { return kFirstId + slot * kIdsPerSlot; }

 private:
  explicit SlotTable(sys::UniqueFd file) : file_(std::move(file)) {}
  sys::UniqueFd file_;
  uint32_t hint_ = 0;  // no slot below it was free when last looked
  std::string taken_ = std::string(kSlots, '\0');
};

}  // namespace caisson::launcher
