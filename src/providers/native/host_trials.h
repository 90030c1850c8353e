// Trials: what the kernel lets us do, found by doing it in a child process that is gone afterwards.
// Nothing is left on the host. Thread-safe; each call blocks for a few milliseconds at most.
//
// Every value is 0 when it worked, or the errno of the step that failed.
#pragma once

#include <cstdint>

namespace caisson::native {

// Whose power a trial uses: ours, or that of root in a user namespace made for it, as an ordinary
// user's launcher has.
enum class Power : uint8_t { kOwn, kUserNamespace };

// unshare(2) with one CLONE_NEW* flag.
int TryNamespace(int clone_flag, Power power);

struct FileSystemTrial {
  int entered =
      0;  // new mount and pid namespaces, and ids in them; the rest is ENODATA when this failed
  int proc = 0;  // a fresh /proc of the pid namespace
  int tmpfs = 0;
  int overlay = 0;  // with upper and work directory
  int overlay_volatile = 0;
  int overlay_userxattr = 0;
  int overlay_id_mapped =
      0;  // /usr, id-mapped, as the lower layer; EPERM with Power::kUserNamespace
};
FileSystemTrial TryFileSystems(Power power);

int TryOpenat2();        // Linux 5.6
int TryPidfd();          // pidfd_open and waitid(P_PIDFD), Linux 5.4
int TryPidfdExitInfo();  // PIDFD_GET_INFO, Linux 6.13
int TryCloseRange();     // Linux 5.9
int TryMountApi();       // fsopen, open_tree and mount_setattr, Linux 5.12

}  // namespace caisson::native
