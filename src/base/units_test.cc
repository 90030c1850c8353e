#include "base/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace caisson {
namespace {

using std::chrono::nanoseconds;
using testing::HasSubstr;
using namespace std::chrono_literals;

// What parsing `text` gives, or nothing when it is refused as it should be: an invalid argument
// whose message quotes the text and whose remedy shows an example.
template <typename T>
std::optional<T> Accepted(Result<T> result, std::string_view text) {
  if (result) return *result;
  EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(result.error().message(), HasSubstr(std::string(text.substr(0, 20))));
  EXPECT_THAT(result.error().remedy(), HasSubstr("such as"));
  return std::nullopt;
}
std::optional<uint64_t> Size(std::string_view text) { return Accepted(ParseSize(text), text); }
std::optional<nanoseconds> Time(std::string_view text) {
  return Accepted(ParseDuration(text), text);
}
std::optional<uint32_t> Cpus(std::string_view text) { return Accepted(ParseCpus(text), text); }
std::optional<uint32_t> Percent(std::string_view text) {
  return Accepted(ParsePercent(text), text);
}
std::optional<int64_t> Integer(std::string_view text) { return Accepted(ParseInteger(text), text); }

TEST(Units, SizesAreReadInBinaryAndDecimalUnits) {
  EXPECT_EQ(Size("0"), 0u);
  EXPECT_EQ(Size("1048576"), 1048576u);
  EXPECT_EQ(Size("100B"), 100u);
  EXPECT_EQ(Size("512M"), 512ull << 20);
  EXPECT_EQ(Size("512m"), 512ull << 20);
  EXPECT_EQ(Size("2G"), 2ull << 30);
  EXPECT_EQ(Size("1GiB"), 1ull << 30);
  EXPECT_EQ(Size("1gib"), 1ull << 30);
  EXPECT_EQ(Size("1GB"), 1'000'000'000u);
  EXPECT_EQ(Size("1.5K"), 1536u);
  EXPECT_EQ(Size("0.3K"), 307u);  // 307.2, cut
  EXPECT_EQ(Size("15E"), 15ull << 60);
  EXPECT_EQ(Size("18446744073709551615"), std::numeric_limits<uint64_t>::max());
}

TEST(Units, SizesThatAreNotSizesAreRefused) {
  for (const auto* text : {"",
                           " ",
                           "M",
                           "-1",
                           "+1",
                           "1 M",
                           " 1M",
                           "1M ",
                           "12Q",
                           "1.M",
                           ".5M",
                           "1.5",
                           "1.5B",
                           "1KiBs",
                           "1Ki",
                           "0x10",
                           "1e3",
                           "nan",
                           "16E",
                           "18446744073709551616",
                           "99999999999999999999999",
                           "1..5M",
                           "1,5M",
                           "1.0000000001G",
                           "１M"}) {
    EXPECT_EQ(Size(text), std::nullopt) << text;
  }
}

TEST(Units, SizesAreShownInTheLargestUnitThatFits) {
  EXPECT_EQ(FormatSize(0), "0B");
  EXPECT_EQ(FormatSize(1023), "1023B");
  EXPECT_EQ(FormatSize(1024), "1K");
  EXPECT_EQ(FormatSize(1536), "1.5K");
  EXPECT_EQ(FormatSize(512ull << 20), "512M");
  EXPECT_EQ(FormatSize((1ull << 20) - 1), "1M");  // not "1024K"
  EXPECT_EQ(FormatSize(std::numeric_limits<uint64_t>::max()), "16E");
}

TEST(Units, DurationsAreRead) {
  EXPECT_EQ(Time("5s"), 5s);
  EXPECT_EQ(Time("5"), 5s);
  EXPECT_EQ(Time("0"), 0s);
  EXPECT_EQ(Time("0.25"), 250ms);
  EXPECT_EQ(Time("250ms"), 250ms);
  EXPECT_EQ(Time("1h30m"), 90min);
  EXPECT_EQ(Time("1.5h"), 90min);
  EXPECT_EQ(Time("1d2h3m4s5ms6us7ns"), 24h + 2h + 3min + 4s + 5ms + 6us + 7ns);
  EXPECT_EQ(Time("9223372036854775807ns"), nanoseconds::max());
}

TEST(Units, DurationsThatAreNotDurationsAreRefused) {
  for (const auto* text : {"", "s", "-5s", "+5s", "5 s", "5x", "30m1h", "1h1h", "5S", "1h30", "1w",
                           "..5s", "5s ", "1.s", "9223372036854775808ns", "300000d",
                           "18446744073709551616s", "18446744073709551615d"}) {
    EXPECT_EQ(Time(text), std::nullopt) << text;
  }
}

TEST(Units, ShownDurationsAreReadBackExactly) {
  EXPECT_EQ(FormatDuration(0s), "0s");
  EXPECT_EQ(FormatDuration(90min), "1h30m");
  EXPECT_EQ(FormatDuration(250ms), "250ms");
  EXPECT_EQ(FormatDuration(2500ms), "2.5s");
  EXPECT_EQ(FormatDuration(1min + 5ms), "1m0.005s");
  EXPECT_EQ(FormatDuration(-1500us), "-1.5ms");
  EXPECT_EQ(FormatDuration(nanoseconds::min()), "-106751d23h47m16.854775808s");
  for (const nanoseconds value : {nanoseconds(1), nanoseconds(1001), nanoseconds(999'999'999),
                                  nanoseconds(86'400'000'000'001), nanoseconds::max()}) {
    EXPECT_EQ(Time(FormatDuration(value)), value) << FormatDuration(value);
  }
}

TEST(Units, CpuCountsAreThousandthsOfACore) {
  EXPECT_EQ(Cpus("2"), 2000u);
  EXPECT_EQ(Cpus("0.5"), 500u);
  EXPECT_EQ(Cpus("500m"), 500u);
  EXPECT_EQ(Cpus("0.001"), 1u);
  EXPECT_EQ(Cpus("8192"), 8'192'000u);
  for (const auto* text : {"", "0", "0m", "-1", "0.0001", "0.5m", "1.5.1", "2c", "8193", "inf",
                           "4294967296", "18446744073709551616"}) {
    EXPECT_EQ(Cpus(text), std::nullopt) << text;
  }
  EXPECT_EQ(FormatCpus(500), "0.5");
  EXPECT_EQ(FormatCpus(2000), "2");
  EXPECT_EQ(FormatCpus(1), "0.001");
}

TEST(Units, PercentagesAreHundredthsOfAPercent) {
  EXPECT_EQ(Percent("50%"), 5000u);
  EXPECT_EQ(Percent("50"), 5000u);
  EXPECT_EQ(Percent("12.5%"), 1250u);
  EXPECT_EQ(Percent("0%"), 0u);
  EXPECT_EQ(Percent("100%"), 10'000u);
  for (const auto* text : {"", "%", "-1%", "100.01%", "101", "1.001%", "50%%", "50 %"}) {
    EXPECT_EQ(Percent(text), std::nullopt) << text;
  }
  EXPECT_EQ(FormatPercent(1250), "12.5%");
}

TEST(Units, IntegersAreReadWithinTheirRange) {
  EXPECT_EQ(Integer("0"), 0);
  EXPECT_EQ(Integer("-42"), -42);
  EXPECT_EQ(Integer("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Integer("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  for (const auto* text : {"", "-", "+1", "--1", "1.0", "1k", "0x1", " 1", "9223372036854775808",
                           "-9223372036854775809"}) {
    EXPECT_EQ(Integer(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace caisson
