// Group F: network. Only documentation addresses, and connects that send nothing.
#include <arpa/inet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "probe.h"

namespace caisson::probe {
namespace {

// connect(2) of a datagram socket only looks for a route.
Verdict RouteTo(const char* address) {
  sockaddr_storage storage{};
  socklen_t length = 0;
  if (strchr(address, ':') != nullptr) {
    auto* six = reinterpret_cast<sockaddr_in6*>(&storage);
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(53);
    inet_pton(AF_INET6, address, &six->sin6_addr);
    length = sizeof(*six);
  } else {
    auto* four = reinterpret_cast<sockaddr_in*>(&storage);
    four->sin_family = AF_INET;
    four->sin_port = htons(53);
    inet_pton(AF_INET, address, &four->sin_addr);
    length = sizeof(*four);
  }
  const int fd = socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Refused(errno, "socket");
  const int result = connect(fd, reinterpret_cast<sockaddr*>(&storage), length);
  const int saved = errno;
  close(fd);
  errno = saved;
  return Judge(result, address);
}

Verdict RoutesToAny(std::initializer_list<const char*> addresses) {
  Verdict last;
  for (const char* address : addresses) {
    last = RouteTo(address);
    if (last.kind != Kind::kRefused) return last;
  }
  return last;
}

Verdict RouteV4() { return RouteTo("192.0.2.1"); }
Verdict RouteV6() { return RouteTo("2001:db8::1"); }
Verdict RoutePrivate() {
  return RoutesToAny({"10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "169.254.1.1",
                      "198.18.0.1", "240.0.0.1", "224.0.0.251"});
}
Verdict RoutePrivateV6() {
  return RoutesToAny({"fd00::1", "64:ff9b::192.0.2.1", "2002::1", "::ffff:192.0.2.1"});
}

Verdict OnlyLoopback() {
  std::string problems;
  struct if_nameindex* names = if_nameindex();
  if (names == nullptr) return Failed("if_nameindex");
  for (auto* entry = names; entry->if_index != 0; ++entry)
    if (strcmp(entry->if_name, "lo") != 0) problems += std::string(entry->if_name) + " ";
  if_freenameindex(names);
  return Unless(problems);
}

template <int Family, int Type, int Protocol>
Verdict Socket() {
  return Judge(socket(Family, Type, Protocol));
}

// A list of allowed families, not of refused ones.
Verdict OtherFamilies() {
  std::string problems;
  for (int family = 0; family < 64; ++family) {
    if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK)
      continue;
    for (const int type : {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_RDM}) {
      const int fd = socket(family, type, 0);
      if (fd < 0) continue;
      problems += std::to_string(family) + "/" + std::to_string(type) + " ";
      close(fd);
    }
  }
  return Unless(problems);
}

// EAFNOSUPPORT for every family: the answer of the filter, not of a kernel that lacks the module.
Verdict FamiliesAreFiltered() {
  std::string problems;
  for (int family = 0; family < 64; ++family) {
    if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK)
      continue;
    const int fd = socket(family, SOCK_RAW, 0);
    if (fd >= 0 || errno != EAFNOSUPPORT) problems += std::to_string(family) + " ";
    if (fd >= 0) close(fd);
  }
  return Unless(problems);
}

Verdict OtherProtocols() {
  std::string problems;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const int protocol : {132 /* SCTP */, 136 /* UDP-Lite */, 262 /* MPTCP */, 33 /* DCCP */,
                               108 /* COMP */, 50 /* ESP */}) {
      for (const int type :
           {int{SOCK_STREAM}, int{SOCK_DGRAM}, int{SOCK_SEQPACKET}, 6 /* DCCP */}) {
        const int fd = socket(family, type, protocol);
        if (fd < 0) continue;
        problems += std::to_string(family) + "/" + std::to_string(protocol) + " ";
        close(fd);
      }
    }
  }
  return Unless(problems);
}

Verdict OtherNetlink() {
  std::string problems;
  for (int protocol = 1; protocol < 32; ++protocol) {
    const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
    if (fd < 0) continue;
    problems += std::to_string(protocol) + " ";
    close(fd);
  }
  return Unless(problems);
}

Verdict SocketpairOther() {
  int ends[2];
  return Judge(socketpair(AF_INET, SOCK_STREAM, 0, ends));
}

// Sends one routing request and gives the kernel's answer.
Verdict Route(uint16_t type, const void* body, size_t size) {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return Refused(errno, "socket");
  alignas(nlmsghdr) char request[512] = {};
  auto* header = reinterpret_cast<nlmsghdr*>(request);
  header->nlmsg_len = static_cast<uint32_t>(NLMSG_LENGTH(size));
  header->nlmsg_type = type;
  header->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
  memcpy(NLMSG_DATA(header), body, size);
  if (send(fd, request, header->nlmsg_len, 0) < 0) return Refused(errno, "send");
  alignas(nlmsghdr) char reply[2048];
  const ssize_t n = recv(fd, reply, sizeof(reply), 0);
  close(fd);
  if (n < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(int)))) return Failed("recv");
  const auto* answer =
      reinterpret_cast<const nlmsgerr*>(NLMSG_DATA(reinterpret_cast<nlmsghdr*>(reply)));
  return answer->error == 0 ? Open("the kernel obeyed") : Refused(-answer->error);
}

// Asks only for what the permission check guards; on a bare host the link is really made, hence
// risky.
Verdict NewLink() {
  struct {
    ifinfomsg info;
    rtattr name;
    char name_text[8];
    rtattr link;
    rtattr kind;
    char kind_text[8];
  } body{};
  body.info.ifi_family = AF_UNSPEC;
  body.name = {RTA_LENGTH(8), IFLA_IFNAME};
  memcpy(body.name_text, "cprobe0", 8);
  body.link = {static_cast<unsigned short>(RTA_LENGTH(sizeof(rtattr) + 8)), IFLA_LINKINFO};
  body.kind = {RTA_LENGTH(6), IFLA_INFO_KIND};
  memcpy(body.kind_text, "dummy", 6);
  return Route(RTM_NEWLINK, &body, sizeof(body));
}
Verdict NewAddress() {
  struct {
    ifaddrmsg info;
    rtattr local;
    unsigned char address[4];
  } body{};
  body.info = {AF_INET, 32, 0, 0, 1};
  body.local = {RTA_LENGTH(4), IFA_LOCAL};
  memcpy(body.address, "\xc0\x00\x02\x07", 4);
  return Route(RTM_NEWADDR, &body, sizeof(body));
}
Verdict NewRoute() {
  struct {
    rtmsg info;
    rtattr out;
    int index;
  } body{};
  body.info.rtm_family = AF_INET;
  body.info.rtm_table = RT_TABLE_MAIN;
  body.info.rtm_protocol = RTPROT_BOOT;
  body.info.rtm_scope = RT_SCOPE_LINK;
  body.info.rtm_type = RTN_UNICAST;
  body.info.rtm_dst_len = 0;
  body.out = {RTA_LENGTH(4), RTA_OIF};
  body.index = 1;
  return Route(RTM_NEWROUTE, &body, sizeof(body));
}
Verdict NewQdisc() {
  struct {
    tcmsg info;
    rtattr kind;
    char kind_text[8];
  } body{};
  body.info.tcm_family = AF_UNSPEC;
  body.info.tcm_ifindex = 1;
  body.info.tcm_parent = 0xffffffffu;
  body.kind = {RTA_LENGTH(6), 1 /* TCA_KIND */};
  memcpy(body.kind_text, "pfifo", 6);
  return Route(RTM_NEWQDISC, &body, sizeof(body));
}

// A connected TCP pair over loopback: tls needs an established socket.
Verdict TcpUlp() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(listener, 1) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return Failed("loopback listener");
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), length) != 0) return Failed("connect");
  const int tls = setsockopt(fd, IPPROTO_TCP, 31 /* TCP_ULP */, "tls", 3);
  const int tls_errno = errno;
  const int esp = setsockopt(fd, IPPROTO_TCP, 31, "espintcp", 8);
  if (tls == 0 || esp == 0) return Open(tls == 0 ? "tls" : "espintcp");
  return Refused(tls_errno);
}

template <int Level, int Option, int Value>
Verdict SetOption() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Failed("socket");
  const int value = Value;
  return Judge(setsockopt(fd, Level, Option, &value, sizeof(value)));
}
Verdict ReplaceFirewall() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Failed("socket");
  char rules[128] = {};
  return Judge(setsockopt(fd, IPPROTO_IP, 64 /* IPT_SO_SET_REPLACE */, rules, sizeof(rules)));
}
Verdict XfrmPolicy() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Failed("socket");
  char policy[168] = {};
  return Judge(setsockopt(fd, IPPROTO_IP, 17 /* IP_XFRM_POLICY */, policy, sizeof(policy)));
}

constexpr const char* kNoRoute = "ENETUNREACH|EADDRNOTAVAIL|EHOSTUNREACH";
constexpr const char* kNoFamily = "EAFNOSUPPORT";
constexpr const char* kNoOption = "EPERM|ENOPROTOOPT";

const Attempt kAttempts[] = {
    {"F01.v4", "Exfil", "a route to the world", kNoRoute, kNoRoute, kSafe, RouteV4},
    {"F01.v6", "Exfil", "a route to the world, IPv6", kNoRoute, kNoRoute, kSafe, RouteV6},
    {"F01.links", "Exfil", "interfaces besides lo", "ok", "ok", kSafe, OnlyLoopback},
    {"F05.v4", "HostLeak", "a route to private ranges", kNoRoute, kNoRoute, kSafe, RoutePrivate},
    {"F05.v6", "HostLeak", "a route to private ranges, IPv6", kNoRoute, kNoRoute, kSafe,
     RoutePrivateV6},
    {"F06.raw", "Escape", "raw IPv4 socket", "EAFNOSUPPORT|EPERM", "EAFNOSUPPORT|EPERM", kSafe,
     Socket<AF_INET, SOCK_RAW, IPPROTO_ICMP>},
    {"F06.raw6", "Escape", "raw IPv6 socket", "EAFNOSUPPORT|EPERM", "EAFNOSUPPORT|EPERM", kSafe,
     Socket<AF_INET6, SOCK_RAW, IPPROTO_ICMPV6>},
    {"F06.packet", "Escape", "packet socket", kNoFamily, kNoFamily, kSafe,
     Socket<AF_PACKET, SOCK_RAW, 0>},
    {"F10", "Escape", "AF_VSOCK", kNoFamily, kNoFamily, kSafe, Socket<40, SOCK_STREAM, 0>},
    {"F11.alg", "Escape", "AF_ALG", kNoFamily, kNoFamily, kSafe, Socket<38, SOCK_SEQPACKET, 0>},
    {"F11.families", "Escape", "any other family", "ok", "ok", kSafe, OtherFamilies},
    {"F11.filtered", "Escape", "a family the filter does not answer for", "ok", "ok", kSafe,
     FamiliesAreFiltered},
    {"F11.protocols", "Escape", "SCTP, MPTCP, UDP-Lite, DCCP", "ok", "ok", kSafe, OtherProtocols},
    {"F11.pair", "Escape", "socketpair of another family", "EAFNOSUPPORT|EPERM",
     "EAFNOSUPPORT|EPERM", kSafe, SocketpairOther},
    {"F12", "Escape", "netlink beyond NETLINK_ROUTE", "ok", "ok", kSafe, OtherNetlink},
    {"F13.link", "Escape", "RTM_NEWLINK dummy", "EPERM", "EPERM", kRisky, NewLink},
    {"F13.address", "Escape", "RTM_NEWADDR", "EPERM", "EPERM", kRisky, NewAddress},
    {"F13.route", "Escape", "RTM_NEWROUTE", "EPERM", "EPERM", kRisky, NewRoute},
    {"F13.qdisc", "Escape", "RTM_NEWQDISC", "EPERM", "EPERM", kRisky, NewQdisc},
    {"F14.ulp", "Escape", "TCP_ULP", "ENOPROTOOPT", "ENOPROTOOPT", kSafe, TcpUlp},
    {"F14.xfrm", "Escape", "IP_XFRM_POLICY", kNoOption, kNoOption, kSafe, XfrmPolicy},
    {"F14.iptables", "Escape", "IPT_SO_SET_REPLACE", kNoOption, kNoOption, kRisky, ReplaceFirewall},
    {"F14.mark", "Escape", "SO_MARK", "EPERM", "EPERM", kSafe, SetOption<SOL_SOCKET, SO_MARK, 1>},
    {"F14.transparent", "Escape", "IP_TRANSPARENT", "EPERM", "EPERM", kSafe,
     SetOption<IPPROTO_IP, IP_TRANSPARENT, 1>},
    {"F14.force", "HostDoS", "SO_RCVBUFFORCE", "EPERM", "EPERM", kSafe,
     SetOption<SOL_SOCKET, SO_RCVBUFFORCE, 1 << 28>},
    {"F14.priority", "PeerDoS", "SO_PRIORITY 7", "EPERM", "EPERM", kSafe,
     SetOption<SOL_SOCKET, SO_PRIORITY, 7>},
};

}  // namespace

std::span<const Attempt> NetworkAttempts() { return kAttempts; }

}  // namespace caisson::probe
