#include "auth/browser_guard.h"

#include <gtest/gtest.h>

namespace caisson::auth {
namespace {

using Kind = GuardVerdict::Kind;

BrowserGuard Guard() {
  auto guard =
      BrowserGuard::Create({.hosts = {"Box.example.com", "10.0.0.5", "*.boxes.example.com"},
                            .origins = {"https://app.example.com", "http://localhost:3000"}});
  EXPECT_TRUE(guard) << guard.error().message();
  return *std::move(guard);
}

TEST(BrowserGuard, AnswersToItsOwnNamesOnly) {
  const BrowserGuard guard = Guard();
  for (const char* host :
       {"localhost", "LOCALHOST:8000", "127.0.0.1", "127.0.0.1:8000", "[::1]:8000", "localhost.",
        "box.example.com", "BOX.example.com:443", "10.0.0.5:8000", "49999-abc.boxes.example.com"}) {
    EXPECT_EQ(guard.Judge({.host = host}).kind, Kind::kPass) << host;
  }
  for (const char* host : {"",
                           "evil.example",
                           "evil.example:8000",
                           "localhost.evil.example",
                           "127.0.0.1.evil.example",
                           "box.example.com.evil.example",
                           "xbox.example.com",
                           "boxes.example.com",
                           ".boxes.example.com",
                           "10.0.0.50",
                           "localhost:",
                           "localhost:80:80",
                           "localhost:99999999",
                           "localhost:8a",
                           "user@localhost",
                           "[::1",
                           "[localhost]",
                           "localhost/evil",
                           "127.1",
                           "local host",
                           "::1"}) {
    EXPECT_EQ(guard.Judge({.host = host}).kind, Kind::kMisdirected) << host;
  }
}

TEST(BrowserGuard, PagesOfOtherOriginsAreForbidden) {
  const BrowserGuard guard = Guard();
  for (const char* origin :
       {"https://evil.example", "http://localhost", "http://localhost:8001", "null", "garbage",
        "https://app.example.com.evil.example", "https://app.example.com:444", "file://",
        "http://localhost:8000/x", "https://localhost"}) {
    EXPECT_EQ(guard.Judge({.host = "localhost:8000", .origin = origin}).kind, Kind::kForbidden)
        << origin;
  }
}

TEST(BrowserGuard, TheServersOwnPagesPassWithoutCorsHeaders) {
  const BrowserGuard guard = Guard();
  for (const auto& [host, origin] : {std::pair{"localhost:8000", "http://localhost:8000"},
                                     {"box.example.com", "https://box.example.com"},
                                     {"box.example.com:443", "https://box.example.com"},
                                     {"[::1]:8000", "http://[::1]:8000"}}) {
    const auto verdict =
        guard.Judge({.host = host, .origin = origin, .sec_fetch_site = "same-origin"});
    EXPECT_EQ(verdict.kind, Kind::kPass) << origin;
    EXPECT_EQ(verdict.allow_origin, "");
  }
}

TEST(BrowserGuard, ListedOriginsPassWithCorsHeaders) {
  const auto verdict = Guard().Judge({.host = "localhost:8000",
                                      .origin = "https://app.example.com",
                                      .sec_fetch_site = "cross-site"});
  EXPECT_EQ(verdict.kind, Kind::kPass);
  EXPECT_EQ(verdict.allow_origin, "https://app.example.com");
}

TEST(BrowserGuard, FetchesFromElsewhereAreForbiddenEvenWithoutAnOrigin) {
  const BrowserGuard guard = Guard();
  for (const char* site : {"cross-site", "same-site", "nonsense"}) {
    EXPECT_EQ(guard.Judge({.host = "localhost", .sec_fetch_site = site}).kind, Kind::kForbidden)
        << site;
  }
  for (const char* site : {"", "none", "same-origin"}) {
    EXPECT_EQ(guard.Judge({.host = "localhost", .sec_fetch_site = site}).kind, Kind::kPass) << site;
  }
}

TEST(BrowserGuard, RefusesABadConfiguration) {
  for (const char* host : {"", "*", "a b", "http://x", "*.", "x:y"}) {
    EXPECT_FALSE(BrowserGuard::Create({.hosts = {host}})) << host;
  }
  for (const char* origin : {"", "*", "app.example.com", "https://", "https://x/y", "ftp://x"}) {
    EXPECT_FALSE(BrowserGuard::Create({.origins = {origin}})) << origin;
  }
}

}  // namespace
}  // namespace caisson::auth
