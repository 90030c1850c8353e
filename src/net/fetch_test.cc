#include "net/fetch.h"

#include <algorithm>
#include <string>
#include <vector>

#include "net/test_net.h"

namespace caisson::net {
namespace {

TEST(AddressPolicy, RefusesWhatIsNotPublic) {
  for (const char* address : {"127.0.0.1",
                              "127.255.255.255",
                              "0.0.0.0",
                              "10.1.2.3",
                              "100.64.0.1",
                              "169.254.169.254",
                              "172.16.0.1",
                              "172.31.255.255",
                              "192.168.1.1",
                              "198.18.0.1",
                              "224.0.0.1",
                              "255.255.255.255",
                              "::",
                              "::1",
                              "fe80::1",
                              "fe80::1%eth0",
                              "fc00::1",
                              "fd12::1",
                              "ff02::1",
                              "::ffff:127.0.0.1",
                              "::ffff:10.0.0.1",
                              "::127.0.0.1",
                              "64:ff9b::10.0.0.1",
                              "64:ff9b::7f00:1",
                              "2002:7f00:1::",
                              "2002:a00:1::1",
                              "2001:db8::1",
                              "2001::1",
                              "100::1",
                              "",
                              "nonsense",
                              "1.2.3",
                              "0x7f.1"}) {
    const auto refused = PublicAddressesOnly("host", address);
    ASSERT_FALSE(refused) << address;
    EXPECT_EQ(refused.error().code(), ErrorCode::kPermissionDenied);
  }
  for (const char* address :
       {"1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "11.0.0.1", "2606:4700::1111",
        "2a00:1450::1", "::ffff:8.8.8.8", "2002:808:808::1"})
    EXPECT_TRUE(PublicAddressesOnly("host", address)) << address;
}

Task<void> Serve(Exchange* exchange) {
  const Request& request = exchange->request();
  Response response = Response::Text(200, request.method);
  if (request.path == "/echo") {
    auto body = co_await exchange->body().ReadAll(1 << 20);
    response = Response::Text(201, std::move(body).value_or("?"));
    response.headers.Set("X-Seen", std::string(request.headers.Get("x-sent")));
  }
  if (request.path == "/redirect") response = Response::Empty(302).WithHeader("Location", "/echo");
  if (request.path == "/away")
    response = Response::Empty(302).WithHeader("Location", "http://127.0.0.2:1/");
  if (request.path == "/large") response = Response::Text(200, std::string(10'000, 'x'));
  if (request.path == "/wait") co_await exchange->closed().Wait();
  static_cast<void>((co_await exchange->Send(std::move(response))).has_value());
}

class FetchTest : public NetTest {
 protected:
  void SetUp() override { Start(Serve); }
  std::string Url(std::string_view path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + std::string(path);
  }
  Result<FetchResponse> Fetch(FetchRequest request, AddressPolicy policy = AnyAddress) {
    Fetcher fetcher(loop_, std::move(policy), 1);
    return Run(fetcher.Fetch(std::move(request)));
  }
};

TEST_F(FetchTest, CallsAndGivesTheAnswer) {
  const auto answer = Fetch(
      {.method = "POST", .url = Url("/echo"), .headers = {{"X-Sent", "yes"}}, .body = "hello"});
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->status, 201);
  EXPECT_EQ(answer->body, "hello");
  EXPECT_EQ(answer->headers.Get("x-seen"), "yes");
  EXPECT_EQ(answer->address, "127.0.0.1");
  EXPECT_EQ(Fetch({.method = "PUT", .url = Url("/")})->body, "PUT");
}

TEST_F(FetchTest, AsksThePolicyAboutEveryAddress) {
  const auto refused = Fetch({.url = Url("/")}, PublicAddressesOnly);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::kPermissionDenied);
  EXPECT_EQ(server_->stats().accepted, 0U) << "nothing was called";
  const auto local =
      Fetch({.url = "http://localhost:" + std::to_string(port_)}, PublicAddressesOnly);
  EXPECT_EQ(local.error().code(), ErrorCode::kPermissionDenied);
}

TEST_F(FetchTest, GoesToTheAddressesThatWereVettedOnly) {
  std::vector<std::string> asked;
  const auto answer = Fetch({.url = "http://localhost:" + std::to_string(port_) + "/"},
                            [&asked](std::string_view host, std::string_view address) -> Status {
                              EXPECT_EQ(host, "localhost");
                              asked.emplace_back(address);
                              return {};
                            });
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_NE(std::ranges::find(asked, answer->address), asked.end());
}

TEST_F(FetchTest, FollowsRedirectsOnlyWhenAskedAndVetsEachHop) {
  EXPECT_EQ(Fetch({.url = Url("/redirect")}).error().code(), ErrorCode::kPermissionDenied);
  EXPECT_EQ(Fetch({.url = Url("/redirect"), .max_redirects = 1})->status, 201);
  const auto away = Fetch({.url = Url("/away"), .max_redirects = 3},
                          [](std::string_view /*host*/, std::string_view address) -> Status {
                            if (address == "127.0.0.1") return {};
                            return Error(ErrorCode::kPermissionDenied, "not there");
                          });
  EXPECT_EQ(away.error().code(), ErrorCode::kPermissionDenied);
}

TEST_F(FetchTest, KeepsItsLimits) {
  EXPECT_EQ(Fetch({.url = Url("/large"), .max_body = 9'999}).error().code(), ErrorCode::kTooLarge);
  EXPECT_TRUE(Fetch({.url = Url("/large"), .max_body = 10'000}));
  EXPECT_EQ(Fetch({.url = Url("/wait"), .timeout = std::chrono::milliseconds(50)}).error().code(),
            ErrorCode::kDeadlineExceeded);
}

TEST_F(FetchTest, RefusesWhatIsNoCall) {
  for (const char* url :
       {"", "ftp://127.0.0.1/", "file:///etc/passwd", "unix:/run/x.sock", "http://", "gopher://x"})
    EXPECT_EQ(Fetch({.url = url}).error().code(), ErrorCode::kInvalidArgument) << url;
  EXPECT_EQ(Fetch({.url = Url("/"), .headers = {{"A", "b\r\nc"}}}).error().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(Fetch({.url = "http://127.0.0.1:1/"}).error().code(), ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace caisson::net
