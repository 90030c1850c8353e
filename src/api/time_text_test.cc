#include "api/time_text.h"

#include <gtest/gtest.h>

namespace caisson::api {
namespace {

TEST(TimeTextTest, TimesReadBackAsTheyWereWritten) {
  EXPECT_EQ(ParseTime("t", "1970-01-01").value(), 0);
  EXPECT_EQ(ParseTime("t", "2024-02-29T12:30:05Z").value(), 1709209805000);
  EXPECT_EQ(ParseTime("t", "2024-02-29T12:30:05.25Z").value(), 1709209805250);
  EXPECT_EQ(TimeText(1709209805250), "2024-02-29T12:30:05.250Z");
  EXPECT_EQ(ParseTime("t", TimeText(1709209805250)).value(), 1709209805250);
}

TEST(TimeTextTest, WhatIsNoTimeIsRefused) {
  for (const char* text :
       {"", "now", "2023-02-29", "2024-13-01", "2024-1-1", "2024-02-29T", "2024-02-29T12:30Z",
        "2024-02-29T24:00:00Z", "2024-02-29T12:60:00Z", "2024-02-29T12:30:05", "-024-02-29",
        "2024-02-29T12:30:05.Z", "2024-02-29T12:30:05.1234Z", "2024-02-29 12:30:05Z", "1709209805"})
    EXPECT_FALSE(ParseTime("t", text)) << text;
}

}  // namespace
}  // namespace caisson::api
