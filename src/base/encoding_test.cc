#include "base/encoding.h"

#include <gtest/gtest.h>

namespace caisson {
namespace {

TEST(Encoding, HexGoesBothWays) {
  const std::string bytes("\x00\xff\x10 a", 5);
  EXPECT_EQ(ToHex(bytes), "00ff102061");
  EXPECT_EQ(FromHex("00ff102061"), bytes);
}

TEST(Encoding, HexRefusesOtherSpellings) {
  EXPECT_EQ(FromHex("0"), std::nullopt);
  EXPECT_EQ(FromHex("0G"), std::nullopt);
  EXPECT_EQ(FromHex("FF"), std::nullopt);
}

TEST(Encoding, Base64UrlFollowsTheRfcVectorsWithoutPadding) {
  const std::pair<std::string_view, std::string_view> vectors[] = {
      {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},          {"foo", "Zm9v"},
      {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}, {"\xfb\xff", "-_8"}};
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(ToBase64Url(bytes), text);
    EXPECT_EQ(FromBase64Url(text), bytes);
  }
}

TEST(Encoding, Base64RefusesOtherSpellings) {
  for (const std::string_view text : {"Z", "Zg==", "Zh", "Zm9=", "Zm 9", "+/8", "Zm9\n"}) {
    EXPECT_EQ(FromBase64Url(text), std::nullopt) << text;
  }
  EXPECT_EQ(FromBase64("Zg=="), "f");
  EXPECT_EQ(FromBase64("+/8="), "\xfb\xff");
  for (const std::string_view text : {"Zg", "Zg=", "Zg===", "====", "-_8=", "Zh=="}) {
    EXPECT_EQ(FromBase64(text), std::nullopt) << text;
  }
}

TEST(Encoding, Base62PadsAndCuts) {
  EXPECT_EQ(ToBase62(0, 3), "000");
  EXPECT_EQ(ToBase62(61, 2), "0z");
  EXPECT_EQ(ToBase62(62, 2), "10");
  EXPECT_EQ(ToBase62(0xffffffff, 6), "4gfFC3");
  EXPECT_TRUE(IsBase62("09AZaz"));
  EXPECT_FALSE(IsBase62("a-b"));
}

TEST(Encoding, ConstantTimeEqualComparesAllOfBoth) {
  EXPECT_TRUE(ConstantTimeEqual("", ""));
  EXPECT_TRUE(ConstantTimeEqual("abc", "abc"));
  EXPECT_FALSE(ConstantTimeEqual("abc", "abd"));
  EXPECT_FALSE(ConstantTimeEqual("bbc", "abc"));
  EXPECT_FALSE(ConstantTimeEqual("abc", "abcd"));
}

}  // namespace
}  // namespace caisson
