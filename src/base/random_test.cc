#include "base/random.h"

#include <gtest/gtest.h>

#include <set>

#include "base/encoding.h"

namespace caisson {
namespace {

TEST(Random, BytesHaveTheLengthAskedForAndDiffer) {
  EXPECT_EQ(RandomBytes(0), "");
  EXPECT_EQ(RandomBytes(4096).size(), 4096U);
  EXPECT_NE(RandomBytes(16), RandomBytes(16));
}

TEST(Random, Base62UsesEveryDigit) {
  const std::string text = RandomBase62(20'000);
  EXPECT_EQ(text.size(), 20'000U);
  EXPECT_TRUE(IsBase62(text));
  EXPECT_EQ(std::set<char>(text.begin(), text.end()).size(), 62U);
}

}  // namespace
}  // namespace caisson
