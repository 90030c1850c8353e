#include "json/json.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace caisson::json {
namespace {

std::string Refusal(std::string_view text, ParseLimits limits = {}) {
  const auto value = Parse(text, limits);
  if (value) return "accepted";
  EXPECT_EQ(value.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(value.error().remedy().empty());
  return value.error().message();
}

std::string RoundTrip(std::string_view text) {
  const auto value = Parse(text);
  return value ? Write(*value) : value.error().message();
}

TEST(Json, EscapesWhereverTheyAreNeeded) {
  for (int byte = 0; byte < 0x80; ++byte)
    for (size_t at = 0; at < 20; ++at) {
      std::string text(20, 'x');
      text[at] = static_cast<char>(byte);
      const std::string written = Write(Value(text));
      const bool plain = byte >= 0x20 && byte != '"' && byte != '\\' && byte != 0x7f;
      EXPECT_EQ(written == "\"" + text + "\"", plain) << byte << " at " << at;
      EXPECT_EQ(Parse(written)->as_string(), text) << byte << " at " << at;
    }
}

TEST(Json, LongTextReadsBackAsItWas) {
  std::mt19937 random(1);
  for (const size_t size : {511u, 512u, 513u, 5000u}) {
    std::string text(size, '\0');
    for (char& c : text) c = static_cast<char>(random() % 0x80);
    EXPECT_EQ(Parse(Write(Value(text)))->as_string(), text) << size;
    EXPECT_EQ(Parse(Write(Value(std::string(size, '\0'))))->as_string(), std::string(size, '\0'));
  }
}

TEST(Json, ValuesReadAndWrite) {
  for (const std::string_view text :
       {"null", "true", "false", "0", "-1", "9223372036854775807", "18446744073709551615", "0.5",
        "-0.0", "1.0", R"("")", R"("a\"b\\c\n")", "[]", "{}", "[1,[2,{}],[]]",
        R"({"a":1,"b":{"c":[true,null]}})", "\"\xc3\xa9\xf0\x9f\x98\x80\""}) {
    EXPECT_EQ(RoundTrip(text), text);
  }
  EXPECT_EQ(RoundTrip(" { \"a\" :\t[ 1 , 2 ]\r\n} "), R"({"a":[1,2]})");
}

TEST(Json, KindsOfNumbers) {
  EXPECT_TRUE(Parse("1")->is_int64());
  EXPECT_TRUE(Parse("9223372036854775808")->is_uint64());
  EXPECT_TRUE(Parse("18446744073709551616")->is_double());
  EXPECT_TRUE(Parse("1.0")->is_double());
  EXPECT_TRUE(std::signbit(Parse("-0")->as_double()));
  EXPECT_EQ(Parse("1e-400")->as_double(), 0.0);
  EXPECT_EQ(Refusal("1e400"), "invalid JSON at line 1, column 1: the number does not fit a double");
}

TEST(Json, DoublesArePlainAndShort) {
  const auto written = [](double number) {
    std::string out;
    AppendNumber(out, number);
    return out;
  };
  EXPECT_EQ(written(0.1), "0.1");
  EXPECT_EQ(written(1.0), "1.0");
  EXPECT_EQ(written(0.0001), "0.0001");
  EXPECT_EQ(written(123456789.25), "123456789.25");
  EXPECT_EQ(written(1e20), "100000000000000000000.0");
  EXPECT_EQ(written(1e30), "1e+30");
  EXPECT_EQ(written(5e-324), "5e-324");
  EXPECT_EQ(written(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(written(std::nan("")), "null");
}

TEST(Json, EveryDoubleComesBackExactly) {
  std::mt19937_64 random(42);
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t bits = random();
    const auto number = std::bit_cast<double>(bits);
    if (!std::isfinite(number)) continue;
    const auto again = Parse(Write(number));
    ASSERT_TRUE(again && again->is_double()) << number;
    ASSERT_EQ(std::bit_cast<uint64_t>(again->get_double()), bits) << number;
  }
}

TEST(Json, Escapes) {
  EXPECT_EQ(Parse(R"("\u0041\u00e9\u20ac\ud83d\ude00\/\b\f")")->as_string(),
            "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80/\b\f");
  EXPECT_EQ(Parse(R"("a\u0000b")")->as_string().size(), 3u);
  EXPECT_EQ(Write(Value("\x01\x7f\x1f")), R"("\u0001\u007f\u001f")");
  EXPECT_EQ(Write(Value("bad\xff\xfe")), "\"bad\xef\xbf\xbd\xef\xbf\xbd\"");
  for (const char* half : {R"("\ud800")", R"("\udc00")", R"("\ud800\u0041")", R"("\ud800\n")"}) {
    EXPECT_NE(Refusal(half).find("half of a surrogate pair"), std::string::npos) << half;
  }
  EXPECT_NE(Refusal(R"("\x41")").find("unknown escape"), std::string::npos);
  EXPECT_NE(Refusal(R"("\u12g4")").find("four hexadecimal digits"), std::string::npos);
}

TEST(Json, RefusesWhatIsNotJson) {
  for (const char* text : {"",
                           " ",
                           "tru",
                           "nul",
                           "+1",
                           "01",
                           "-",
                           "1.",
                           ".5",
                           "1e",
                           "1e+",
                           "NaN",
                           "Infinity",
                           "'a'",
                           "[1,]",
                           "[1 2]",
                           "[,1]",
                           "[",
                           "{",
                           "{\"a\"}",
                           "{\"a\":}",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{\"a\":1 \"b\":2}",
                           "\"abc",
                           "\"a\nb\"",
                           "// no\n1",
                           "1 2",
                           "{} x",
                           "\xef\xbb\xbf{}",
                           "\"\xff\"",
                           "\"\xc0\x80\"",
                           "\"\xed\xa0\x80\"",
                           "\x01"}) {
    EXPECT_TRUE(Refusal(text).starts_with("invalid JSON at line ")) << text;
  }
  EXPECT_TRUE(Refusal(std::string_view("1\0", 2)).starts_with("invalid JSON at line "));
}

TEST(Json, SaysWhere) {
  EXPECT_EQ(Refusal("{\n  \"a\": 1,\n  \"b\" 2\n}"),
            "invalid JSON at line 3, column 7: expected ':' after the name \"b\"");
  EXPECT_EQ(Refusal(R"({"a":1,"b":2,"a":3})"),
            "invalid JSON at line 1, column 14: duplicate name \"a\"");
  EXPECT_EQ(Refusal("[\"abc"), "invalid JSON at line 1, column 2: this string does not end");
  EXPECT_EQ(Refusal(R"({"a":1,"\u0061":2})"),
            "invalid JSON at line 1, column 8: duplicate name \"a\"");
}

TEST(Json, DepthAndSizeAreBounded) {
  const auto nested = [](size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(Refusal(nested(64)), "accepted");
  EXPECT_EQ(Refusal(nested(65)), "invalid JSON at line 1, column 65: nested more than 64 deep");
  EXPECT_NE(Refusal(std::string(1 << 20, '[')).find("nested more"), std::string::npos);
  EXPECT_NE(Refusal(R"({"a":{"b":[]}})", {.max_depth = 2}).find("nested more"), std::string::npos);
  EXPECT_EQ(Refusal("[1]", {.max_bytes = 3}), "accepted");
  EXPECT_EQ(Refusal("[1 ]", {.max_bytes = 3}),
            "the JSON text has 4 bytes, but 3 are the most allowed");
}

TEST(Json, IndentedForPeople) {
  EXPECT_EQ(WriteIndented(*Parse(R"({"a":[1,2],"b":{},"c":[]})")),
            "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {},\n  \"c\": []\n}\n");
}

}  // namespace
}  // namespace caisson::json
