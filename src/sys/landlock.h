// Landlock, for what the rest of the jail cannot do.
//
// Files are confined by pivot_root already, so no right to read or write is taken here. What a
// Landlock domain adds, by ABI of the running kernel:
//   2 (5.19)  mounting is refused, and so is tracing processes outside the sandbox, whatever
//             capabilities and namespaces say
//   5 (6.10)  device ioctls only on files beneath /dev
//   6 (6.12)  no connection to abstract UNIX sockets and no signal to processes outside
//   7 (6.15)  the sandbox cannot fill the host's audit log with denials of domains of its own
// ABI 1 has no way to allow renames and links between directories, so nothing is done there.
#pragma once

#include <string>

namespace caisson::sys {

// The ABI version of the running kernel; 0 when Landlock is absent or switched off.
int LandlockAbi();

// Puts the calling thread in a domain of its own, for good, with what `abi` (from LandlockAbi)
// offers; children inherit it. Call after pivot_root, when "/" and "/dev" are the sandbox's, and
// before seccomp. Needs no_new_privs or CAP_SYS_ADMIN. Returns 0 (also when `abi` offers nothing)
// or errno. No heap: fit for use between clone and exec. Files that are open already keep their
// ioctls.
int ApplyLandlock(int abi);

// What ApplyLandlock(abi) puts in force, in words, for reports.
std::string LandlockSummary(int abi);

}  // namespace caisson::sys
