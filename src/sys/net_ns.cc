#include "sys/net_ns.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <string>

namespace caisson::sys {
namespace {

Status WriteSysctl(const char* path, const char* value) {
  UniqueFd fd(open(path, O_WRONLY | O_CLOEXEC));
  if (!fd || write(fd.get(), value, strlen(value)) < 0)
    return Error::FromErrno(std::string("write ") + path);
  return {};
}

}  // namespace

Result<UniqueFd> EnterNewNetNs() {
  if (unshare(CLONE_NEWNET) != 0) return Error::FromErrno("make a network namespace");
  UniqueFd socket_fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  if (!socket_fd || ioctl(socket_fd.get(), SIOCSIFFLAGS, &request) != 0)
    return Error::FromErrno("bring loopback up");
  CAISSON_TRY(WriteSysctl("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0"));
  // Where the range does not fit the user namespace of an ordinary user, ping stays off.
  (void)WriteSysctl("/proc/sys/net/ipv4/ping_group_range", "0 2147483647");
  UniqueFd ns(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!ns) return Error::FromErrno("open the new network namespace");
  return ns;
}

}  // namespace caisson::sys
