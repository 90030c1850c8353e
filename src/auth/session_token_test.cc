#include "auth/session_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caisson::auth {
namespace {

using testing::HasSubstr;

const SessionGrant kGrant{.session_id = "s1", .tenant = "acme", .generation = 3, .expires_ms = 100};

TEST(SessionToken, CarriesItsFields) {
  const SessionTokens tokens("master");
  const std::string token = tokens.Issue(kGrant);
  EXPECT_TRUE(token.starts_with("cst_"));
  const auto grant = tokens.Check(token, 99);
  ASSERT_TRUE(grant) << grant.error().message();
  EXPECT_EQ(grant->session_id, "s1");
  EXPECT_EQ(grant->tenant, "acme");
  EXPECT_EQ(grant->generation, 3);
  EXPECT_THAT(tokens.Check(token, 100).error().message(), HasSubstr("expired"));
}

TEST(SessionToken, EveryChangedCharacterAndEveryOtherServerIsRefused) {
  const SessionTokens tokens("master");
  const std::string token = tokens.Issue(kGrant);
  for (size_t i = 0; i < token.size(); ++i) {
    std::string changed = token;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(tokens.Check(changed, 0)) << i;
  }
  EXPECT_FALSE(tokens.Check(token.substr(0, token.size() - 4), 0));
  EXPECT_FALSE(tokens.Check(token + "AAAA", 0));
  EXPECT_FALSE(tokens.Check("cst_", 0));
  EXPECT_FALSE(tokens.Check(std::string(100'000, 'A'), 0));
  EXPECT_FALSE(SessionTokens("other").Check(token, 0));
}

TEST(SessionToken, ItsPrincipalIsHeldToItsSession) {
  const Principal principal = PrincipalOf(kGrant);
  EXPECT_EQ(principal.session, "s1");
  EXPECT_TRUE(principal.Allows(Verb::kExecute, Resource::kProcesses));
  EXPECT_FALSE(principal.Allows(Verb::kCreate, Resource::kSessions));
  EXPECT_FALSE(principal.Allows(Verb::kRead, Resource::kKeys));
}

TEST(SignedUrl, HoldsForExactlyWhatWasSigned) {
  const SignedUrls urls("master");
  const UrlGrant grant{.method = "GET",
                       .path = "/api/sessions/s1/files/content",
                       .user = "user",
                       .session_id = "s1",
                       .generation = 3,
                       .expires_ms = 100};
  const std::string signature = urls.Sign(grant);
  EXPECT_TRUE(urls.Check(grant, signature, 99));
  EXPECT_THAT(urls.Check(grant, signature, 100).error().message(), HasSubstr("expired"));
  const auto refused = [&](auto change) {
    UrlGrant other = grant;
    change(other);
    return !urls.Check(other, signature, 0);
  };
  EXPECT_TRUE(refused([](UrlGrant& g) { g.method = "PUT"; }));
  EXPECT_TRUE(refused([](UrlGrant& g) { g.path += "/x"; }));
  EXPECT_TRUE(refused([](UrlGrant& g) { g.user = "root"; }));
  EXPECT_TRUE(refused([](UrlGrant& g) { g.session_id = "s2"; }));
  EXPECT_TRUE(refused([](UrlGrant& g) { g.generation = 4; }));
  EXPECT_TRUE(refused([](UrlGrant& g) { g.expires_ms = 101; }));
  // Bytes cannot wander from one field to the next.
  EXPECT_TRUE(refused([](UrlGrant& g) {
    g.method = "GE";
    g.path = "T" + g.path;
  }));
  EXPECT_FALSE(urls.Check(grant, "", 0));
  EXPECT_FALSE(SignedUrls("other").Check(grant, signature, 0));
}

TEST(SignedUrl, IsNoSessionTokenUnderTheSameSecret) {
  const SignedUrls urls("master");
  EXPECT_FALSE(SessionTokens("master").Check("cst_" + urls.Sign({}), 0));
}

}  // namespace
}  // namespace caisson::auth
