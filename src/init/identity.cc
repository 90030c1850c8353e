#include "init/identity.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace caisson::init {
namespace {

constexpr uint64_t Bit(int cap) { return uint64_t{1} << cap; }
constexpr uint64_t kSwitch = Bit(CAP_SETUID) | Bit(CAP_SETGID);

int SetCaps(uint64_t permitted, uint64_t effective) {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[2] = {};
  for (int i = 0; i < 2; ++i) {
    data[i].permitted = static_cast<uint32_t>(permitted >> (32 * i));
    data[i].effective = static_cast<uint32_t>(effective >> (32 * i));
  }
  return syscall(SYS_capset, &header, data) == 0 ? 0 : errno;
}

void Must(bool done) {
  if (!done) std::abort();
}

// A change of ids resets the flag to fs.suid_dumpable.
void StayOpaque() { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

}  // namespace

Result<Privileges> Privileges::Settle(uint64_t caps) {
  Privileges privileges;
  privileges.caps_ = caps;
  privileges.uid_ = getuid();
  privileges.gid_ = getgid();
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  if (const int error = SetCaps(caps, 0); error != 0) {
    return Error::FromErrno("settling on the sandbox's capabilities", error);
  }
  StayOpaque();
  return privileges;
}

bool Privileges::can_switch() const { return (caps_ & kSwitch) == kSwitch; }

Status Privileges::CheckReach(const User& user) const {
  if (can_switch() || user.uid == uid_) return {};
  return Error::FromErrno("this sandbox runs everything as uid " + std::to_string(uid_) +
                              "; it cannot act as uid " + std::to_string(user.uid),
                          EPERM);
}

ScopedCaps::ScopedCaps(const Privileges& privileges, uint64_t wanted) : privileges_(privileges) {
  if (privileges_.caps() != 0) Must(SetCaps(privileges.caps(), privileges.caps() & wanted) == 0);
}

ScopedCaps::~ScopedCaps() {
  if (privileges_.caps() != 0) Must(SetCaps(privileges_.caps(), 0) == 0);
}

ScopedCaps RightToKill(const Privileges& privileges) {
  return ScopedCaps(privileges, Bit(CAP_KILL) | Bit(CAP_DAC_OVERRIDE));
}

ScopedIdentity::ScopedIdentity(const Privileges& privileges, const User& user)
    : privileges_(privileges) {
  const uint64_t caps = privileges.caps();
  if (user.uid == 0 && privileges.uid() == 0) {
    if (caps != 0) Must(SetCaps(caps, caps) == 0);
    return;
  }
  if (!privileges.can_switch()) {
    Must(user.uid == privileges.uid());
    return;
  }
  switched_ = true;
  Must(SetCaps(caps, kSwitch) == 0);
  Must(setgroups(user.groups.size(), user.groups.data()) == 0);
  setfsgid(user.gid);
  setfsuid(user.uid);
  Must(setfsuid(-1) == static_cast<int>(user.uid) && setfsgid(-1) == static_cast<int>(user.gid));
  Must(SetCaps(caps, 0) == 0);
  StayOpaque();
}

ScopedIdentity::~ScopedIdentity() {
  const int saved = errno;
  const uint64_t caps = privileges_.caps();
  if (switched_) {
    Must(SetCaps(caps, kSwitch) == 0);
    setfsuid(privileges_.uid());
    setfsgid(privileges_.gid());
    Must(setfsuid(-1) == static_cast<int>(privileges_.uid()));
    Must(setfsgid(-1) == static_cast<int>(privileges_.gid()));
    Must(setgroups(0, nullptr) == 0);
  }
  if (caps != 0) Must(SetCaps(caps, 0) == 0);
  if (switched_) StayOpaque();
  errno = saved;
}

int BecomeUser(const Privileges& privileges, const User& user) {
  const uint64_t keep = privileges.CapsOf(user);
  if (privileges.can_switch()) {
    if (const int error = SetCaps(privileges.caps(), privileges.caps()); error != 0) return error;
    if (setgroups(user.groups.size(), user.groups.data()) != 0) return errno;
    if (setresgid(user.gid, user.gid, user.gid) != 0) return errno;
    if (setresuid(user.uid, user.uid, user.uid) != 0) return errno;
  } else if (user.uid != privileges.uid()) {
    return EPERM;
  }
  if (const int error = SetCaps(keep, keep); error != 0) return error;
  StayOpaque();
  return 0;
}

}  // namespace caisson::init
