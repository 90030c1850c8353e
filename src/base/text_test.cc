#include "base/text.h"

#include <gtest/gtest.h>

#include <array>

namespace caisson {
namespace {

TEST(Quoted, KeepsPrintableTextAndEscapesWhatATerminalActsOn) {
  EXPECT_EQ(Quoted("512M"), "\"512M\"");
  EXPECT_EQ(Quoted("größe"), "\"größe\"");
  EXPECT_EQ(Quoted("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(Quoted("\x1b[31m\n"), "\"\\x1b[31m\\n\"");
  EXPECT_EQ(Quoted(std::string_view("a\0b", 3)), "\"a\\x00b\"");
  EXPECT_EQ(Quoted("\xc2\x9b"), "\"\\xc2\\x9b\"");           // C1 control sequence introducer
  EXPECT_EQ(Quoted("\xe2\x80\xae"), "\"\\xe2\\x80\\xae\"");  // right-to-left override
  EXPECT_EQ(Quoted("\xff\xc3"), "\"\\xff\\xc3\"");           // invalid and truncated UTF-8
  EXPECT_EQ(Quoted("\xed\xa0\x80"), "\"\\xed\\xa0\\x80\"");  // a surrogate
}

TEST(Quoted, CutsLongText) {
  const std::string quoted = Quoted(std::string(10'000, 'x'));
  EXPECT_LT(quoted.size(), 80u);
  EXPECT_TRUE(quoted.ends_with("…\""));
}

TEST(ClosestTo, FindsSlipsAndPrefixesAndNothingElse) {
  constexpr std::array<std::string_view, 5> kNames = {"memory", "mount", "profile", "pids", "json"};
  EXPECT_EQ(ClosestTo("memroy", kNames), "memory");
  EXPECT_EQ(ClosestTo("mem", kNames), "memory");
  EXPECT_EQ(ClosestTo("proflie", kNames), "profile");
  EXPECT_EQ(ClosestTo("pid", kNames), "pids");
  EXPECT_EQ(ClosestTo("gpu", kNames), "");
  EXPECT_EQ(ClosestTo("", kNames), "");
  EXPECT_EQ(ClosestTo("x", kNames), "");
  EXPECT_EQ(ClosestTo(std::string(100'000, 'm'), kNames), "");
}

TEST(Wrap, BreaksAtSpacesWithinTheWidth) {
  EXPECT_EQ(Wrap("one two three", 0, 8), "one two\nthree");
  EXPECT_EQ(Wrap("one two three", 2, 9), "one two\n  three");
  EXPECT_EQ(Wrap("unbreakably long", 0, 4), "unbreakably\nlong");
  EXPECT_EQ(Wrap("a\nb", 2, 20), "a\n  b");
  EXPECT_EQ(Wrap("", 2, 20), "");
  EXPECT_EQ(Wrap("äöü äöü", 0, 7), "äöü äöü");  // columns, not bytes
}

}  // namespace
}  // namespace caisson
