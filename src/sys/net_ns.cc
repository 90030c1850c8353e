#include "sys/net_ns.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "sys/text_file.h"

namespace caisson::sys {
namespace {

Status WriteSysctl(const char* path, const char* value) {
  UniqueFd fd(open(path, O_WRONLY | O_CLOEXEC));
  if (!fd || write(fd.get(), value, strlen(value)) < 0)
    return Error::FromErrno(std::string("write ") + path);
  return {};
}

// Files of /proc/net. Those that a kernel built without IPv6 lacks are optional.
struct Ledger {
  const char* name;
  bool optional;
};
constexpr Ledger kLedgers[] = {
    {"dev", false},     {"snmp", false},      {"netstat", false},      {"sockstat", false},
    {"igmp", true},     {"dev_mcast", true},  {"route", true},         {"unix", true},
    {"snmp6", true},    {"sockstat6", true},  {"ip6_flowlabel", true}, {"igmp6", true},
    {"if_inet6", true}, {"ipv6_route", true}, {"rt6_stats", true},
};

// The words of /proc/net/sockstat that the kernel counts for the whole host: how many connections
// are orphaned or allocated, and the pages of each protocol.
bool IsOfTheHost(std::string_view word) {
  return word == "orphan" || word == "alloc" || word == "mem";
}

std::string WithoutHostCounters(const std::string& sockstat) {
  std::string kept;
  bool skip = false;
  for (size_t at = 0; at < sockstat.size();) {
    const size_t end = std::min(sockstat.find_first_of(" \n", at), sockstat.size());
    const std::string_view word = std::string_view(sockstat).substr(at, end - at);
    if (!std::exchange(skip, IsOfTheHost(word)) && !skip) kept.append(word).push_back(' ');
    at = end + 1;
  }
  return kept;
}

}  // namespace

Result<std::string> NetNsFootprint() {
  UniqueFd dir(open("/proc/thread-self/net", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!dir) return Error::FromErrno("open /proc/thread-self/net");
  std::string footprint;
  for (const auto& [name, optional] : kLedgers) {
    auto text = ReadText(dir.get(), name, size_t{64} * 1024);
    if (!text && optional && text.error().sys_errno() == ENOENT) continue;
    if (!text) return std::move(text).error();
    footprint += std::string_view(name) == "sockstat" ? WithoutHostCounters(*text) : *text;
  }
  return footprint;
}

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
