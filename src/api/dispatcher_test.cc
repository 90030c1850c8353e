#include "api/dispatcher.h"

#include "api/test_api.h"
#include "api/time_text.h"

namespace caisson::api {
namespace {

using DispatcherTest = ApiTest;

TEST_F(DispatcherTest, ABodyThatStopsArrivingIsTheClientsDelay) {
  net::Request request = Ask("POST", "/api/sessions", root);
  request.headers.Set("Content-Type", "application/json");
  FakeExchange exchange(loop, std::move(request), "{}");
  exchange.StallBody();
  Run(dispatcher->Handle(&exchange));
  ASSERT_TRUE(exchange.answer);
  EXPECT_EQ(exchange.answer->status, 408);
  EXPECT_EQ(Text(JsonOf(*exchange.answer), "code"), "deadline_exceeded");
}

TEST_F(DispatcherTest, AStreamEndsWhenItsCredentialExpires) {
  const std::string key = MakeKey({.name = "brief",
                                   .tenant = "acme",
                                   .role = auth::Role::kDeveloper,
                                   .expires_ms = NowMs() + 300});
  net::Request request = Ask("GET", "/api/events", key);
  request.headers.Set("Accept", "application/x-ndjson");
  FakeExchange exchange(loop, std::move(request), "");
  const auto ended = Run(async::WithTimeout(&loop, std::chrono::seconds(60),
                                            async::Await(dispatcher->Handle(&exchange))));
  EXPECT_TRUE(ended);
  EXPECT_FALSE(exchange.finished);  // cut, not brought to an end
  EXPECT_EQ(Call("GET", "/api/events", key).status, 401);
}

}  // namespace
}  // namespace caisson::api
