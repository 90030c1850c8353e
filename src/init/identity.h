// Capabilities, and acting as another user for the length of a scope.
//
// Init keeps the sandbox's capability mask in its permitted set and an empty effective set. It
// raises what it needs for one step and lowers it again; a step that cannot be undone ends the
// process, and with PID 1 the sandbox.
#pragma once

#include <cstdint>

#include "base/result.h"
#include "init/passwd.h"

namespace caisson::init {

class Privileges {
 public:
  // Makes `caps` the permitted set and empties the effective, inheritable and ambient sets. Fails
  // when the process holds less than `caps`.
  static Result<Privileges> Settle(uint64_t caps);

  uint64_t caps() const { return caps_; }
  uint32_t uid() const { return uid_; }
  uint32_t gid() const { return gid_; }
  bool can_switch() const;  // holds CAP_SETUID and CAP_SETGID

  // EPERM, saying so, when processes or file operations of `user` are out of reach.
  Status CheckReach(const User& user) const;
  // The capabilities a command of `user` runs with.
  uint64_t CapsOf(const User& user) const { return user.uid == 0 && uid_ == 0 ? caps_ : 0; }

 private:
  uint64_t caps_ = 0;
  uint32_t uid_ = 0;
  uint32_t gid_ = 0;
};

// Raises `wanted` (as far as permitted) in the effective set for a scope.
class ScopedCaps {
 public:
  ScopedCaps(const Privileges& privileges, uint64_t wanted);
  ScopedCaps(const ScopedCaps&) = delete;
  ScopedCaps& operator=(const ScopedCaps&) = delete;
  ~ScopedCaps();

 private:
  const Privileges& privileges_;
};
// The right to signal processes of every user of the sandbox, and to find them in /proc even when a
// command has barred the way to it (chmod 0 /).
ScopedCaps RightToKill(const Privileges& privileges);

// File system access as `user` for a scope: its ids and groups, and its capabilities if it is
// root. CheckReach must have passed. One at a time.
class ScopedIdentity {
 public:
  ScopedIdentity(const Privileges& privileges, const User& user);
  ScopedIdentity(const ScopedIdentity&) = delete;
  ScopedIdentity& operator=(const ScopedIdentity&) = delete;
  ~ScopedIdentity();

 private:
  const Privileges& privileges_;
  bool switched_ = false;
};

// Becomes `user` for good, in a forked child: ids, groups and capabilities. 0 or the errno.
int BecomeUser(const Privileges& privileges, const User& user);

}  // namespace caisson::init
