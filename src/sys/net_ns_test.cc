#include "sys/net_ns.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace caisson::sys {
namespace {

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void SendDatagram() {
  const UniqueFd socket_fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const sockaddr_in nobody = Loopback(9);
  (void)sendto(socket_fd.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&nobody),
               sizeof nobody);
}

void TryUnreachable() {
  const UniqueFd socket_fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in elsewhere = Loopback(9);
  elsewhere.sin_addr.s_addr = htonl(0xC0000201);  // 192.0.2.1
  (void)sendto(socket_fd.get(), "x", 1, 0, reinterpret_cast<const sockaddr*>(&elsewhere),
               sizeof elsewhere);
}

int LeaveSocketOpen() { return socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0); }

void ListenAndClose() {
  const UniqueFd socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in here = Loopback(8080);
  EXPECT_EQ(bind(socket_fd.get(), reinterpret_cast<const sockaddr*>(&here), sizeof here), 0);
  EXPECT_EQ(listen(socket_fd.get(), 4), 0);
}

// In a child: a new namespace, `act` in it, and whether its footprint is that of another new one.
template <typename Act>
bool StaysAsNew(Act act) {
  const pid_t child = fork();
  if (child == 0) {
    if (!EnterNewNetNs()) _exit(2);
    const auto first_day = NetNsFootprint();
    if (!EnterNewNetNs()) _exit(2);
    act();
    const auto now = NetNsFootprint();
    _exit(!first_day || !now ? 3 : *first_day == *now ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) <= 1) << status;
  return status == 0;
}

TEST(NetNs, TheFootprintIsThatOfANewOneWhileNothingHappens) {
  if (geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
  EXPECT_TRUE(StaysAsNew([] {}));
  EXPECT_TRUE(StaysAsNew(ListenAndClose));
}

TEST(NetNs, TheFootprintTellsWhatHappened) {
  if (geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
  EXPECT_FALSE(StaysAsNew(SendDatagram));
  EXPECT_FALSE(StaysAsNew(TryUnreachable));
  EXPECT_FALSE(StaysAsNew([] { LeaveSocketOpen(); }));
}

}  // namespace
}  // namespace caisson::sys
