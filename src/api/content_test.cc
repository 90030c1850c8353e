#include "api/content.h"

#include <gtest/gtest.h>

namespace caisson::api {
namespace {

const Content kFile{.path = "/tmp/a.txt", .size = 100, .etag = "\"v1\"", .modified_s = 784111777};

net::Request With(std::initializer_list<net::Header> headers) {
  net::Request request;
  request.headers = headers;
  return request;
}

TEST(Content, GivesAllOfAFileWithWhatDescribesIt) {
  const ContentPlan plan = PlanContent(With({}), kFile);
  EXPECT_EQ(plan.head.status, 200);
  EXPECT_EQ(plan.begin, 0u);
  EXPECT_EQ(plan.end, 100u);
  EXPECT_EQ(plan.head.content_length, 100u);
  EXPECT_EQ(plan.head.headers.Get("etag"), "\"v1\"");
  EXPECT_EQ(plan.head.headers.Get("content-type"), "text/plain; charset=utf-8");
  EXPECT_EQ(plan.head.headers.Get("content-disposition"), "attachment; filename=\"a.txt\"");
  EXPECT_EQ(plan.head.headers.Get("last-modified"), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(plan.head.headers.Get("x-content-type-options"), "nosniff");
}

TEST(Content, TakesOneRangeAndPassesOverTheRest) {
  struct Case {
    const char* range;
    int status;
    uint64_t begin, end;
  };
  const Case cases[] = {
      {"bytes=0-0", 206, 0, 1},
      {"bytes=10-19", 206, 10, 20},
      {"bytes=90-", 206, 90, 100},
      {"bytes=90-1000", 206, 90, 100},
      {"bytes=-10", 206, 90, 100},
      {"bytes=-1000", 206, 0, 100},
      {"bytes=0-", 206, 0, 100},
      {"bytes=100-", 416, 0, 0},
      {"bytes=100-200", 416, 0, 0},
      {"bytes=-0", 416, 0, 0},
      {"bytes=18446744073709551615-", 416, 0, 0},
      {"bytes=5-4", 200, 0, 100},
      {"bytes=a-b", 200, 0, 100},
      {"bytes=-", 200, 0, 100},
      {"bytes=", 200, 0, 100},
      {"bytes=1-2,5-6", 200, 0, 100},
      {"bytes=99999999999999999999-", 200, 0, 100},
      {"bytes=1--2", 200, 0, 100},
      {"lines=1-2", 200, 0, 100},
  };
  for (const Case& c : cases) {
    const ContentPlan plan = PlanContent(With({{"Range", c.range}}), kFile);
    EXPECT_EQ(plan.head.status, c.status) << c.range;
    EXPECT_EQ(plan.begin, c.begin) << c.range;
    EXPECT_EQ(plan.end, c.end) << c.range;
    EXPECT_EQ(plan.head.content_length, c.end - c.begin) << c.range;
  }
  EXPECT_EQ(PlanContent(With({{"Range", "bytes=10-19"}}), kFile).head.headers.Get("content-range"),
            "bytes 10-19/100");
  EXPECT_EQ(PlanContent(With({{"Range", "bytes=100-"}}), kFile).head.headers.Get("content-range"),
            "bytes */100");
  EXPECT_EQ(PlanContent(With({{"Range", "bytes=0-1"}, {"Range", "bytes=5-6"}}), kFile).head.status,
            200);
}

TEST(Content, AnEmptyFileHasNoRange) {
  Content empty = kFile;
  empty.size = 0;
  EXPECT_EQ(PlanContent(With({}), empty).head.content_length, 0u);
  EXPECT_EQ(PlanContent(With({{"Range", "bytes=0-"}}), empty).head.status, 416);
  EXPECT_EQ(PlanContent(With({{"Range", "bytes=-5"}}), empty).head.status, 416);
}

TEST(Content, KnowsWhatTheClientHas) {
  const auto status = [](std::initializer_list<net::Header> headers) {
    return PlanContent(With(headers), kFile).head.status;
  };
  EXPECT_EQ(status({{"If-None-Match", "\"v1\""}}), 304);
  EXPECT_EQ(status({{"If-None-Match", "\"v0\", W/\"v1\""}}), 304);
  EXPECT_EQ(status({{"If-None-Match", "*"}}), 304);
  EXPECT_EQ(status({{"If-None-Match", "\"v2\""}}), 200);
  EXPECT_EQ(status({{"If-Match", "\"v1\""}}), 200);
  EXPECT_EQ(status({{"If-Match", "\"v2\""}}), 412);
  EXPECT_EQ(status({{"If-Match", "W/\"v1\""}}), 412);
  EXPECT_EQ(status({{"Range", "bytes=0-1"}, {"If-Range", "\"v1\""}}), 206);
  EXPECT_EQ(status({{"Range", "bytes=0-1"}, {"If-Range", "\"v2\""}}), 200);
  EXPECT_EQ(status({{"Range", "bytes=0-1"}, {"If-Range", "W/\"v1\""}}), 200);
  EXPECT_EQ(status({{"Range", "bytes=0-1"}, {"If-None-Match", "\"v1\""}}), 304);
}

TEST(Content, NamesThatCannotStandInAHeaderAreEncoded) {
  EXPECT_EQ(AttachmentOf("/x/plain name.txt"), "attachment; filename=\"plain name.txt\"");
  EXPECT_EQ(AttachmentOf("/x/a\"b\r\nSet-Cookie: c"),
            "attachment; filename=\"a_b__Set-Cookie: c\"; "
            "filename*=UTF-8''a%22b%0D%0ASet-Cookie%3A%20c");
  EXPECT_EQ(AttachmentOf("/x/\xc3\xa9"), "attachment; filename=\"__\"; filename*=UTF-8''%C3%A9");
  EXPECT_TRUE(net::IsFieldValue(AttachmentOf(std::string("/x/\x01\xff\x7f", 6))));
}

TEST(Content, GuessesMediaTypesByTheEnding) {
  EXPECT_EQ(MediaTypeOf("/a/b.PNG"), "image/png");
  EXPECT_EQ(MediaTypeOf("/a.png/b"), "application/octet-stream");
  EXPECT_EQ(MediaTypeOf("/a/.json"), "application/octet-stream");
  EXPECT_EQ(MediaTypeOf("x.json"), "application/json");
}

TEST(Content, ReadsTheRangeOfAnUpload) {
  const auto part = ParseContentRange("bytes 10-19/100");
  ASSERT_TRUE(part);
  EXPECT_EQ(part->first, 10u);
  EXPECT_EQ(part->last, 19u);
  EXPECT_EQ(part->total, 100u);
  EXPECT_TRUE(ParseContentRange("bytes 0-0/*"));
  for (const char* bad : {"", "bytes", "bytes 1-0/5", "bytes */5", "bytes 0-5/5", "bytes a-b/c",
                          "lines 0-1/2", "bytes 0-1", "bytes 0/1-2", "bytes -1/2"})
    EXPECT_FALSE(ParseContentRange(bad)) << bad;
}

}  // namespace
}  // namespace caisson::api
