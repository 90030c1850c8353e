#include "api/configured_gate.h"

#include <gtest/gtest.h>

#include "api/test_api.h"

namespace caisson::api {
namespace {

class GateTest : public ApiTest {
 protected:
  Result<auth::Principal> Identify(net::Request request) {
    return Run(admin->gate().Identify(&request));
  }
  Result<auth::Principal> IdentifyWith(net::Headers headers) {
    net::Request request;
    request.headers = std::move(headers);
    request.peer.address = "203.0.113.7";
    return Identify(std::move(request));
  }
  void ExpectNobody(net::Headers headers, const char* what) {
    const auto principal = IdentifyWith(std::move(headers));
    ASSERT_FALSE(principal) << what;
    EXPECT_EQ(principal.error().code(), ErrorCode::kUnauthenticated) << what;
    EXPECT_EQ(principal.error().message().find("csn_"), std::string::npos) << what;
  }
};

TEST_F(GateTest, AKeyIsItsHolderByEitherHeader) {
  for (const net::Headers& headers :
       {net::Headers{{"Authorization", "Bearer " + root}},
        net::Headers{{"authorization", "bEARER   " + root}}, net::Headers{{"X-API-Key", root}}}) {
    const auto principal = IdentifyWith(headers);
    ASSERT_TRUE(principal) << principal.error().message();
    EXPECT_EQ(principal->tenant, "acme");
    EXPECT_EQ(principal->key_id, IdOf(root));
    EXPECT_EQ(principal->role, auth::Role::kAdmin);
  }
}

TEST_F(GateTest, WhatIsNoCredentialIsNobody) {
  ExpectNobody({}, "nothing");
  ExpectNobody({{"Authorization", ""}}, "empty");
  ExpectNobody({{"Authorization", "Bearer"}}, "no token");
  ExpectNobody({{"Authorization", "Bearer "}}, "blank token");
  ExpectNobody({{"Authorization", root}}, "no scheme");
  ExpectNobody({{"Authorization", "Basic " + root}}, "another scheme");
  ExpectNobody({{"Authorization", "Bearer" + root}}, "no blank");
  ExpectNobody({{"Authorization", "Bearer " + root + " x"}}, "two words");
  ExpectNobody({{"Authorization", "Bearer " + root + ",x"}}, "a list");
  ExpectNobody({{"Authorization", "Bearer " + std::string(100'000, 'a')}}, "huge");
  ExpectNobody({{"X-API-Key", ""}}, "empty key");
  ExpectNobody({{"X-API-Key", root + "\x01"}}, "control byte");
  ExpectNobody({{"Authorization", "Bearer hello"}}, "of no kind");
  ExpectNobody({{"Cookie", "key=" + root}}, "in a cookie");
}

TEST_F(GateTest, TwoCredentialsAreNone) {
  ExpectNobody({{"Authorization", "Bearer " + root}, {"X-API-Key", root}}, "both headers");
  ExpectNobody({{"Authorization", "Bearer " + root}, {"Authorization", "Bearer " + root}},
               "the same twice");
  ExpectNobody({{"X-API-Key", root}, {"X-API-Key", "x"}}, "two keys");
}

TEST_F(GateTest, EveryChangedLetterOfAKeyIsNobody) {
  for (size_t i = 0; i < root.size(); ++i) {
    std::string changed = root;
    changed[i] = changed[i] == 'a' ? 'b' : 'a';
    ExpectNobody({{"X-API-Key", changed}}, changed.c_str());
  }
  ExpectNobody({{"X-API-Key", root.substr(0, root.size() - 1)}}, "cut");
  ExpectNobody({{"X-API-Key", root + "0"}}, "longer");
}

TEST_F(GateTest, ExpiredAndRevokedKeysAreNobody) {
  const std::string expired = MakeKey(
      {.name = "old", .tenant = "acme", .role = auth::Role::kAdmin, .expires_ms = int64_t{1}});
  ExpectNobody({{"X-API-Key", expired}}, "expired");
  ASSERT_TRUE(Run(admin->keys().Revoke(IdOf(root))));
  ExpectNobody({{"X-API-Key", root}}, "revoked");
}

TEST_F(GateTest, AUnixSocketKnowsItsOwnUserAndRootOnly) {
  const auto from = [&](uint32_t uid, uint32_t own) {
    auth::BrowserGuard guard = auth::BrowserGuard::Create({}).value();
    ConfiguredGate gate({.own_uid = own}, guard, {}, admin->allowances());
    net::Request request;
    request.peer.loopback = true;
    request.peer.credentials = net::Peer::Credentials{.uid = uid};
    return Run(gate.Identify(&request));
  };
  EXPECT_EQ(from(1000, 1000)->role, auth::Role::kAdmin);
  EXPECT_EQ(from(1000, 1000)->key_id, "unix:1000");
  EXPECT_TRUE(from(0, 1000));
  EXPECT_FALSE(from(1001, 1000));
  net::Request tcp;
  tcp.peer.loopback = true;
  EXPECT_FALSE(Identify(tcp)) << "loopback alone says nothing about who it is";
}

TEST_F(GateTest, WithoutAuthEverybodyHereIsAdminAndNobodyElsewhere) {
  auth::BrowserGuard guard = auth::BrowserGuard::Create({}).value();
  ConfiguredGate gate({.mode = ConfiguredGate::Mode::kNone}, guard, {}, admin->allowances());
  net::Request request;
  request.peer.loopback = true;
  const auto here = Run(gate.Identify(&request));
  ASSERT_TRUE(here);
  EXPECT_EQ(here->tenant, "default");
  EXPECT_EQ(here->role, auth::Role::kAdmin);
  request.peer.loopback = false;
  EXPECT_FALSE(Run(gate.Identify(&request)));
}

TEST_F(GateTest, PagesOfOtherSitesAndOtherNamesAreTurnedAway) {
  const auto status = [&](net::Headers headers) {
    net::Request request = Ask("GET", "/api/sessions", root);
    for (const auto& [name, value] : headers) request.headers.Set(name, value);
    return Send(std::move(request)).status;
  };
  EXPECT_EQ(status({}), 200);
  EXPECT_EQ(status({{"Host", "evil.example"}}), 421);
  EXPECT_EQ(status({{"Origin", "https://evil.example"}}), 403);
  EXPECT_EQ(status({{"Sec-Fetch-Site", "cross-site"}}), 403);
}

TEST_F(GateTest, AllowedPagesGetTheirHeadersOnEveryAnswer) {
  auth::BrowserGuard guard =
      auth::BrowserGuard::Create({.origins = {"https://app.example"}}).value();
  ConfiguredGate gate({}, guard, {}, admin->allowances());
  net::Request request = Ask("OPTIONS", "/api/sessions", "");
  request.headers.Set("Origin", "https://app.example");
  request.headers.Set("Access-Control-Request-Method", "POST");
  const Gate::Look look = gate.LookAt(request);
  ASSERT_TRUE(look.refusal);
  EXPECT_EQ(look.refusal->status, 204);
  EXPECT_EQ(look.headers.Get("Access-Control-Allow-Origin"), "https://app.example");
  EXPECT_EQ(look.headers.Get("Vary"), "Origin");
  request.method = "POST";
  EXPECT_FALSE(gate.LookAt(request).refusal);
}

TEST_F(GateTest, AKeysOwnRateIsHeldWithTheStandardHeaders) {
  const std::string key = MakeKey({.name = "slow",
                                   .tenant = "acme",
                                   .role = auth::Role::kViewer,
                                   .limits = R"({"requests_per_second":0.01,"request_burst":2})"});
  const net::Response first = Call("GET", "/api/sessions", key);
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.headers.Get("RateLimit-Limit"), "2");
  EXPECT_EQ(first.headers.Get("RateLimit-Remaining"), "1");
  EXPECT_EQ(Call("GET", "/api/sessions", key).status, 200);
  const net::Response third = Call("GET", "/api/sessions", key);
  EXPECT_EQ(third.status, 429);
  EXPECT_EQ(Text(JsonOf(third), "code"), "rate_limited");
  EXPECT_GT(std::stoi(std::string(third.headers.Get("Retry-After"))), 1);
  EXPECT_EQ(Call("GET", "/api/sessions", root).status, 200) << "others have their own share";
}

TEST_F(GateTest, AKeysQuotaOfSandboxesIsHeldAndGivenBack) {
  const std::string key = MakeKey({.name = "few",
                                   .tenant = "acme",
                                   .role = auth::Role::kDeveloper,
                                   .limits = R"({"sandboxes":1})"});
  const sandbox::Owner owner{"acme", IdOf(key)};
  auto first = admin->quotas().Take(owner, {.memory_bytes = 1});
  ASSERT_TRUE(first);
  EXPECT_FALSE(admin->quotas().Take(owner, {.memory_bytes = 1}));
  first->reset();
  EXPECT_TRUE(admin->quotas().Take(owner, {.memory_bytes = 1}));
}

TEST_F(GateTest, LimitsThatCannotBeReadAllowNextToNothing) {
  store::KeyRecord record{.id = "broken00", .limits = R"({"requests_per_sceond":5})"};
  EXPECT_FALSE(admin->allowances().Apply(record));
  const auto now = std::chrono::steady_clock::now();
  EXPECT_TRUE(admin->allowances().Take("broken00", Cost::kRequest, now).allowed);
  EXPECT_FALSE(admin->allowances().Take("broken00", Cost::kRequest, now).allowed);
}

}  // namespace
}  // namespace caisson::api
