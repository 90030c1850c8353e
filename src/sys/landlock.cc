#include "sys/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "sys/unique_fd.h"

namespace caisson::sys {
namespace {

// linux/landlock.h of 6.15; the oldest headers we build with know ABI 2.
constexpr unsigned kCreateRulesetVersion = 1u << 0;
constexpr uint64_t kAccessRefer = 1ull << 13;
constexpr uint64_t kAccessIoctlDev = 1ull << 15;
constexpr uint64_t kScopeAbstractUnixSocket = 1ull << 0;
constexpr uint64_t kScopeSignal = 1ull << 1;
constexpr unsigned kLogSameExecOff = 1u << 0;
constexpr unsigned kLogSubdomainsOff = 1u << 2;
constexpr int kRulePathBeneath = 1;

constexpr int kAbiRefer = 2;
constexpr int kAbiIoctlDev = 5;
constexpr int kAbiScope = 6;
constexpr int kAbiLogFlags = 7;

struct RulesetAttr {
  uint64_t handled_access_fs;
  uint64_t handled_access_net;
  uint64_t scoped;
};

struct PathBeneathAttr {
  uint64_t allowed_access;
  int32_t parent_fd;
} __attribute__((packed));

// Kernels refuse attributes beyond those they know, unless zero.
size_t RulesetAttrSize(int abi) {
  if (abi >= kAbiScope) return sizeof(RulesetAttr);
  if (abi >= 4) return offsetof(RulesetAttr, scoped);
  return offsetof(RulesetAttr, handled_access_net);
}

int AllowBeneath(int ruleset, const char* path, uint64_t access) {
  const UniqueFd directory(::open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) return errno;
  const PathBeneathAttr rule{access, directory.get()};
  return ::syscall(SYS_landlock_add_rule, ruleset, kRulePathBeneath, &rule, 0) == 0 ? 0 : errno;
}

}  // namespace

int LandlockAbi() {
  const long abi =
      ::syscall(SYS_landlock_create_ruleset, nullptr, size_t{0}, kCreateRulesetVersion);
  return abi > 0 ? static_cast<int>(abi) : 0;
}

int ApplyLandlock(int abi) {
  if (abi < kAbiRefer) return 0;
  const bool ioctl_dev = abi >= kAbiIoctlDev;
  // A domain denies moves between directories unless it handles REFER and a rule grants it.
  RulesetAttr attr{};
  attr.handled_access_fs = kAccessRefer | (ioctl_dev ? kAccessIoctlDev : 0);
  if (abi >= kAbiScope) attr.scoped = kScopeAbstractUnixSocket | kScopeSignal;
  const UniqueFd ruleset(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attr, RulesetAttrSize(abi), 0)));
  if (!ruleset) return errno;

  if (const int error = AllowBeneath(ruleset.get(), "/", kAccessRefer)) return error;
  if (ioctl_dev) {
    if (const int error = AllowBeneath(ruleset.get(), "/dev", kAccessIoctlDev)) return error;
  }
  const unsigned flags = abi >= kAbiLogFlags ? kLogSameExecOff | kLogSubdomainsOff : 0;
  return ::syscall(SYS_landlock_restrict_self, ruleset.get(), flags) == 0 ? 0 : errno;
}

std::string LandlockSummary(int abi) {
  if (abi <= 0) return "Landlock is absent; namespaces and seccomp stand alone";
  std::string text = "Landlock ABI " + std::to_string(abi) + ": ";
  if (abi < kAbiRefer) return text + "not used, since it would forbid renames between directories";
  text += "no mounts, no tracing of processes outside";
  if (abi >= kAbiIoctlDev) text += ", device ioctls only beneath /dev";
  if (abi >= kAbiScope) text += ", no abstract sockets and no signals to the outside";
  if (abi >= kAbiLogFlags) text += ", no audit records from nested domains";
  return text;
}

}  // namespace caisson::sys
