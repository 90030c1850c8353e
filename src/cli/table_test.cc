#include "cli/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "cli/leave_keys.h"
#include "cli/output.h"
#include "cli/progress.h"

namespace caisson::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

Table Sample() {
  Table table({{"ID"}, {"NAME", Align::kLeft, Fit::kCut}, {"AGE", Align::kRight}});
  table.Add({"a1", "a name that is rather long", "3m"});
  table.Add({"b22", "", Cell("12h", Tint::kGood)});
  return table;
}

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  EXPECT_EQ(Sample().Show(std::nullopt, Colour::kNo),
            "ID   NAME                        AGE\n"
            "a1   a name that is rather long   3m\n"
            "b22  -                           12h\n");
}

TEST(Table, NoLineIsWiderThanTheTerminal) {
  for (const size_t width : {24u, 30u, 36u}) {
    std::string text = Sample().Show(width, Colour::kNo);
    for (size_t end; (end = text.find('\n')) != std::string::npos; text.erase(0, end + 1))
      EXPECT_LE(DisplayWidth(text.substr(0, end)), width) << text.substr(0, end);
  }
  EXPECT_THAT(Sample().Show(24, Colour::kNo), HasSubstr("a name that i…"));
}

TEST(Table, WhatOthersWroteCannotMoveTheCursor) {
  Table table({{"NAME"}});
  table.Add(
      {"a\x1b[2Jb\nc\xc2\x9b"
       "d"});
  const std::string text = table.Show(std::nullopt, Colour::kYes);
  EXPECT_THAT(text, HasSubstr("a?[2Jb c?d"));
}

TEST(Table, ColoursStandAroundTheTextOnly) {
  EXPECT_THAT(Sample().Show(std::nullopt, Colour::kYes), HasSubstr("\x1b[32m12h\x1b[0m\n"));
  EXPECT_THAT(Sample().Show(std::nullopt, Colour::kNo), Not(HasSubstr("\x1b")));
}

TEST(Times, AreReadAndShownInTheirLargestUnit) {
  EXPECT_EQ(ParseTime("1970-01-02T00:00:01.500Z"), 86401.5);
  EXPECT_EQ(ParseTime("1970-01-02T00:00:01Z"), 86401.0);
  EXPECT_EQ(ParseTime("1970-01-02T00:00:01"), std::nullopt);
  EXPECT_EQ(ParseTime("yesterday"), std::nullopt);
  EXPECT_EQ(Span(59.9), "59s");
  EXPECT_EQ(Span(3600), "1h");
  EXPECT_EQ(Span(-1), "-");
}

TEST(Progress, TellsPartAndRateWithinTheWidth) {
  const std::string line = Progress::Line("data.bin", 512 << 10, 1 << 20, 1024, 80);
  EXPECT_EQ(line, "data.bin  [==========>         ]  50%  512K of 1M  1K/s");
  EXPECT_THAT(Progress::Line("data.bin", 2048, std::nullopt, 1024, 80), "data.bin  2K  1K/s");
  for (const size_t width : {10u, 40u, 60u, 64u})
    EXPECT_LE(DisplayWidth(Progress::Line("/a/very/long/päth/to/some/file.bin", 1, 2, 3, width)),
              width);
}

TEST(LeaveKeys, AreFoundAlsoWhenTheyComeOneByOne) {
  LeaveKeys keys;
  EXPECT_EQ(keys.Take("ls\r").bytes, "ls\r");
  EXPECT_EQ(keys.Take("\x10").bytes, "");
  const auto passed = keys.Take("\x11rest");
  EXPECT_TRUE(passed.leave);
  EXPECT_EQ(passed.bytes, "");
}

TEST(LeaveKeys, ACtrlPThatIsFollowedByAnythingElseReachesTheCommand) {
  LeaveKeys keys;
  EXPECT_EQ(keys.Take("\x10").bytes, "");
  const auto passed = keys.Take("a\x10\x10\x11");
  EXPECT_EQ(passed.bytes,
            "\x10"
            "a\x10");
  EXPECT_TRUE(passed.leave);
  EXPECT_FALSE(LeaveKeys().Take("\x11").leave);
}

}  // namespace
}  // namespace caisson::cli
