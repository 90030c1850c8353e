#include "net/url.h"

#include <gtest/gtest.h>

#include "net/router.h"

namespace caisson::net {
namespace {

TEST(UrlTest, DecodesAndEncodes) {
  EXPECT_EQ(*PercentDecode("a%20b%C3%a4"), "a b\xc3\xa4");
  for (const char* bad : {"%", "%4", "a%", "%4g", "%g4", "%%41"})
    EXPECT_FALSE(PercentDecode(bad)) << bad;
  EXPECT_EQ(PercentEncode("a b/\xff~"), "a%20b%2F%FF~");
  std::string all;
  for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
  EXPECT_EQ(*PercentDecode(PercentEncode(all)), all);
}

TEST(UrlTest, ParsesUrls) {
  const auto url = ParseUrl("HTTPS://example.org:8443/a/b?c=d");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->scheme, Url::Scheme::kHttps);
  EXPECT_EQ(url->host, "example.org");
  EXPECT_EQ(url->port, 8443);
  EXPECT_EQ(url->target, "/a/b?c=d");
  EXPECT_EQ(url->Authority(), "example.org:8443");
  EXPECT_EQ(ParseUrl("http://[::1]")->host, "::1");
  EXPECT_EQ(ParseUrl("http://[::1]:80")->Authority(), "[::1]");
  EXPECT_EQ(ParseUrl("http://x")->port, 80);
  EXPECT_EQ(ParseUrl("https://x")->port, 443);
  EXPECT_EQ(ParseUrl("http://x?a")->target, "/?a");
  EXPECT_EQ(ParseUrl("unix:/run/c.sock")->host, "/run/c.sock");
  for (const char* bad : {"",
                          "x",
                          "ftp://x",
                          "http:",
                          "http://",
                          "http:///a",
                          "http://a@b/",
                          "http://x:0",
                          "http://x:65536",
                          "http://x:",
                          "http://x:8a",
                          "http://[::1",
                          "http://[::1]x",
                          "http://x/ a",
                          "http://x/#a",
                          "unix:",
                          "unix:a",
                          "http://x y/",
                          "//x",
                          "http://x\r\n/"})
    EXPECT_FALSE(ParseUrl(bad)) << bad;
}

class RouterTest : public ::testing::Test {
 protected:
  static std::vector<std::string> Segments(std::string_view path) {
    return ParsePath(path).value().segments;
  }
  std::string Find(std::string_view method, std::string_view path) const {
    const RouteMatch match = router_.Match(method, Segments(path));
    if (match.kind == RouteMatch::Kind::kNoSuchPath) return "404";
    if (match.kind == RouteMatch::Kind::kNoSuchMethod) return "405 " + match.allow;
    std::string text = std::to_string(match.route);
    for (const auto& [name, value] : match.params) text += " " + name + "=" + value;
    return text;
  }
  Router router_;
};

TEST_F(RouterTest, FindsTheMostSpecificRoute) {
  ASSERT_TRUE(router_.Add("GET", "/", 0));
  ASSERT_TRUE(router_.Add("GET", "/api/sessions", 1));
  ASSERT_TRUE(router_.Add("POST", "/api/sessions", 2));
  ASSERT_TRUE(router_.Add("GET", "/api/sessions/{id}", 3));
  ASSERT_TRUE(router_.Add("GET", "/api/sessions/self", 4));
  ASSERT_TRUE(router_.Add("DELETE", "/api/sessions/{id}/files/{path...}", 5));
  ASSERT_TRUE(router_.Add("GET", "/api/{what}/last", 6));
  ASSERT_TRUE(router_.Add("GET", "/docs/{rest...}", 7));
  ASSERT_TRUE(router_.Add("GET", "/docs/index", 8));
  EXPECT_EQ(Find("GET", "/"), "0");
  EXPECT_EQ(Find("GET", "/api/sessions"), "1");
  EXPECT_EQ(Find("HEAD", "/api/sessions"), "1");
  EXPECT_EQ(Find("POST", "/api/sessions"), "2");
  EXPECT_EQ(Find("GET", "/api/sessions/x%2Fy"), "3 id=x/y");
  EXPECT_EQ(Find("GET", "/api/sessions/self"), "4");
  EXPECT_EQ(Find("GET", "/api/sessions/last"), "3 id=last");
  EXPECT_EQ(Find("DELETE", "/api/sessions/s/files/a/b/c"), "5 id=s path=a/b/c");
  EXPECT_EQ(Find("DELETE", "/api/sessions/s/files//etc"), "5 id=s path=/etc");
  EXPECT_EQ(Find("GET", "/api/things/last"), "6 what=things");
  EXPECT_EQ(Find("GET", "/docs/a"), "7 rest=a");
  EXPECT_EQ(Find("GET", "/docs/index"), "8");
  EXPECT_EQ(Find("GET", "/docs/index/b"), "7 rest=index/b");
  EXPECT_EQ(Find("GET", "/api/sessions/"), "404") << "a parameter is not empty";
  EXPECT_EQ(Find("GET", "/docs"), "404");
  EXPECT_EQ(Find("GET", "/nothing"), "404");
  EXPECT_EQ(Find("PUT", "/api/sessions"), "405 GET, HEAD, POST");
  EXPECT_EQ(Find("get", "/"), "405 GET, HEAD");
}

TEST_F(RouterTest, RefusesBadPatternsAndConflicts) {
  for (const char* bad : {"", "a", "/{}", "/a{b}", "/{a}b", "/{a...}/b", "/{...}", "/{a"})
    EXPECT_EQ(router_.Add("GET", bad, 0).error().code(), ErrorCode::kInvalidArgument) << bad;
  ASSERT_TRUE(router_.Add("GET", "/a/{b}", 0));
  EXPECT_EQ(router_.Add("GET", "/a/{b}", 1).error().code(), ErrorCode::kConflict);
  EXPECT_EQ(router_.Add("POST", "/a/{c}", 1).error().code(), ErrorCode::kConflict);
  EXPECT_TRUE(router_.Add("POST", "/a/{b}", 1));
}

}  // namespace
}  // namespace caisson::net
