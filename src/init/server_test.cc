#include "init/server.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "init/test_client.h"

namespace caisson::init {
namespace {

using namespace wire::init;  // NOLINT: the requests and replies of this protocol

std::string Header(uint32_t size, uint16_t type, uint16_t zero) {
  std::string packet;
  ByteWriter writer(packet);
  writer.Int(size);
  writer.Int(type);
  writer.Int(zero);
  writer.Int(uint32_t{1});
  return packet;
}

TEST(Server, BadFramesEndIt) {
  const auto usage = static_cast<uint16_t>(Type::kUsage);
  std::string leftover = wire::Encode(Usage{}, 1) + "x";
  const auto leftover_size = static_cast<uint32_t>(leftover.size());
  std::memcpy(leftover.data(), &leftover_size, sizeof leftover_size);
  std::string truncated = wire::Encode(Stat{.path = "/tmp"}, 1);
  truncated.resize(truncated.size() - 3);
  const auto truncated_size = static_cast<uint32_t>(truncated.size());
  std::memcpy(truncated.data(), &truncated_size, sizeof truncated_size);
  const std::string frames[] = {
      "x",
      Header(12, usage, 7),
      Header(13, usage, 0),
      Header(12, 9999, 0),
      Header(12, static_cast<uint16_t>(Type::kExited), 0),
      leftover,
      truncated,
  };
  for (const std::string& frame : frames) {
    TestClient client;
    client.SendRaw(frame);
    EXPECT_TRUE(client.EndsWithin(5000)) << testing::PrintToString(frame);
  }
}

TEST(Server, AnOversizedPacketEndsIt) {
  TestClient client;
  const int size = 1 << 20;
  setsockopt(client.socket(), SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  client.SendRaw(std::string(wire::kMaxFrame + 1, 'x'));
  EXPECT_TRUE(client.EndsWithin(5000));
}

TEST(Server, ShutdownAndEofKillEverything) {
  for (const bool by_request : {true, false}) {
    pid_t daemon = 0;
    {
      TestClient client;
      Start start = TestClient::ShellStart(
          "setsid sh -c 'echo $$; trap \"\" TERM HUP; sleep 100' & sleep 100");
      start.credit = 100;
      const auto started = client.Call<Started>(start);
      while (client.collected[started->process].out.empty()) ASSERT_TRUE(client.Receive());
      daemon = std::stoi(client.collected[started->process].out);
      if (!by_request) continue;
      client.Send(Shutdown{});
      EXPECT_TRUE(client.EndsWithin(5000));
    }
    EXPECT_EQ(kill(daemon, 0), -1);
    EXPECT_EQ(errno, ESRCH);
  }
}

TEST(Server, SurvivesSignals) {
  TestClient client;
  for (int signo = 1; signo < 32; ++signo) {
    if (signo != SIGKILL && signo != SIGSTOP) kill(client.pid(), signo);
  }
  EXPECT_EQ(client.Shell("exit 2").exited.code, 2);
}

TEST(Server, StopsReadingWhileItsAnswersAreNotTaken) {
  TestClient client;
  const std::string request = wire::Encode(Stat{.path = "/" + std::string(3000, '/')}, 5);
  int sent = 0;
  pollfd writable{.fd = client.socket(), .events = POLLOUT, .revents = 0};
  while (sent < 20'000 && poll(&writable, 1, 500) == 1) {
    if (send(client.socket(), request.data(), request.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
      ++sent;
  }
  EXPECT_LT(sent, 2000);  // back-pressure: some 6 MB are not held for an owner that does not read
  for (int i = 0; i < sent; ++i) ASSERT_TRUE(client.Receive());
  EXPECT_TRUE(client.Call<UsageReply>(Usage{}));
}

TEST(Server, AnUnknownVersionIsRefused) {
  TestClient client;
  EXPECT_FALSE(client.Call<HelloReply>(wire::init::Hello{.version = 99}));
  EXPECT_EQ(client.failure.error_number, EPROTO);
}

TEST(Server, ReportsUsage) {
  TestClient client;
  (void)client.Shell("printf 12345");
  const auto usage = client.Call<UsageReply>(Usage{});
  ASSERT_TRUE(usage);
  EXPECT_GE(usage->processes, 2u);
  EXPECT_EQ(usage->output_bytes, 5u);
  EXPECT_GT(usage->disk_bytes, usage->disk_free_bytes);
}

}  // namespace
}  // namespace caisson::init
