// Which system calls a sandbox may make: the policy as a table, without any BPF.
//
// Three outcomes. A listed harmless call is allowed. A known dangerous one fails with EPERM.
// Everything else, numbers newer than this table included, fails with ENOSYS, so that a C library
// falls back as it does on an older kernel. A few calls depend on their arguments; their rules
// see registers only, never memory, and the low 32 bits of what the kernel takes as an int.
//
// ENOSYS is also the answer for a feature that is withheld but has an ordinary substitute (aio,
// clone3, and in the strict profile memfd_create): callers know what to do then. splice says EINVAL
// in the strict profile, "not for these files", the one answer upon which Go's io.Copy falls back.
//
// Everything here is constant data and safe to use from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace caisson::sys {

enum class SeccompProfile : uint8_t { kDefault, kStrict };

enum class SyscallVerdict : uint8_t { kAllow, kEperm, kEnosys, kEinval, kConditional };

enum class SyscallRule : uint8_t {
  kAllow,
  kAllowElseEperm,   // allowed in the default profile, EPERM in the strict one
  kAllowElseEnosys,  // allowed in the default profile, ENOSYS in the strict one
  kAllowElseEinval,  // allowed in the default profile, EINVAL in the strict one
  kEperm,
  kEnosys,
  kEinval,
  kClone,        // no new namespace
  kUnshare,      // no new namespace
  kSocket,       // UNIX; TCP, UDP and ping over INET and INET6; routing netlink
  kSocketPair,   // UNIX
  kIoctl,        // all but kDeniedIoctls
  kSetSockOpt,   // all but DeniedSocketOptions()
  kPersonality,  // kAllowedPersonalities
  kNotInit,      // of any process but PID 1
};

struct SyscallEntry {
  int nr;  // on this architecture
  std::string_view name;
  SyscallRule rule;
  std::string_view purpose;  // of the group it belongs to, for the docs
};

// Every call the policy names, sorted by number, each number once. A call that this architecture
// lacks is not there. What is not there is ENOSYS.
std::span<const SyscallEntry> SyscallTable();

// The rule in force for `nr` in `profile`: never one of the kAllowElse rules.
SyscallRule RuleOf(SeccompProfile profile, int nr);
SyscallVerdict VerdictOf(SeccompProfile profile, int nr);

// One line in words, for the docs.
std::string_view Describe(SyscallRule rule);

// --- what the argument rules compare with -------------------------------------------------------

// clone: any of these is EPERM. CLONE_NEWTIME (0x80) lies within the exit signal there.
inline constexpr uint32_t kCloneNamespaceBits = 0x7e020000;
// unshare: any bit outside these is EPERM (THREAD, SYSVSEM, SIGHAND, FILES, FS, VM). An allow-list,
// because namespace kinds get added.
inline constexpr uint32_t kUnshareAllowedBits =
    0x00010000 | 0x00040000 | 0x00000800 | 0x00000400 | 0x00000200 | 0x00000100;

// ioctl requests that are EPERM on any file.
inline constexpr uint32_t kDeniedIoctls[] = {
    0x5412,      // TIOCSTI: types into the terminal of whoever watches
    0x541c,      // TIOCLINUX: pastes into a virtual console
    0x5423,      // TIOCSETD: loads line disciplines
    0x401c5820,  // FS_IOC_FSSETXATTR: changes the project id that a disk quota counts by
    0x40086602,  // FS_IOC_SETFLAGS: immutable files hinder clean-up; also project inheritance
};

struct SocketOption {
  uint32_t level;
  uint32_t name;
  int error;
};
// Socket options that are refused, sorted by level.
std::span<const SocketOption> DeniedSocketOptions();

// personality: PER_LINUX, PER_LINUX32 (uname only; its calls are killed), UNAME26 with either,
// ADDR_NO_RANDOMIZE (debuggers), and the query. All else is EPERM.
inline constexpr uint32_t kAllowedPersonalities[] = {0, 8, 0x20000, 0x20008, 0x40000, 0xffffffff};

}  // namespace caisson::sys
