#include "base/utf8.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

TEST(Utf8, KeepsValidTextAsItIs) {
  const std::string text = "plain, \xc3\xa9, \xe2\x82\xac, \xf0\x9f\x90\x8b";
  EXPECT_EQ(ToUtf8(text), text);
  EXPECT_TRUE(IsUtf8(text));
}

TEST(Utf8, ReplacesEachByteThatDoesNotBelong) {
  EXPECT_EQ(ToUtf8("a\xff\xfe z"), "a\xef\xbf\xbd\xef\xbf\xbd z");
  for (const char* bad : {"\x80", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                          "\xe2\x82", "\xf8\x88\x80\x80\x80"})
    EXPECT_FALSE(IsUtf8(bad)) << bad;
}

TEST(Utf8, FindsABadByteWhereverItStands) {
  for (size_t size = 1; size <= 100; ++size)
    for (size_t at = 0; at < size; ++at) {
      std::string text(size, 'x');
      text[at] = '\xff';
      EXPECT_FALSE(IsUtf8(text)) << at << " of " << size;
      text.replace(at, 1, "\xe2\x82\xac");
      EXPECT_TRUE(IsUtf8(text)) << at << " of " << size;
    }
}

TEST(Base64, MatchesTheVectorsOfRfc4648) {
  EXPECT_EQ(ToBase64(""), "");
  EXPECT_EQ(ToBase64("f"), "Zg==");
  EXPECT_EQ(ToBase64("fo"), "Zm8=");
  EXPECT_EQ(ToBase64("foo"), "Zm9v");
  EXPECT_EQ(ToBase64("foobar"), "Zm9vYmFy");
}

}  // namespace
}  // namespace caisson
