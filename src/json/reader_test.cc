#include "json/reader.h"

#include <gtest/gtest.h>

namespace caisson::json {
namespace {

enum class Colour { kRed, kGreen };
constexpr Choice<Colour> kColours[] = {{"red", Colour::kRed}, {"green", Colour::kGreen}};

// What Finish() says after `read` has read `text`: "message | remedy", or "fine".
template <typename Read>
std::string Verdict(std::string_view text, Read read) {
  const auto value = Parse(text);
  EXPECT_TRUE(value) << text;
  Reader in(*value);
  read(in);
  const auto status = in.Finish();
  if (status) return "fine";
  EXPECT_EQ(status.error().code(), ErrorCode::kInvalidArgument);
  return status.error().message() + " | " + status.error().remedy();
}

TEST(JsonReader, ReadsEveryType) {
  const auto value = Parse(
      R"({"s":"x","b":true,"i":-5,"u":18446744073709551615,"d":0.5,"whole":3.0,"n":null,"e":"green",
          "l":["a","b"],"m":{"k":"v"},"any":[1],"size":"2K","bytes":10,"time":"1m","seconds":1.5,
          "cpus":0.5,"o":{"x":1},"os":[{"y":1},{"y":2}]})");
  ASSERT_TRUE(value);
  Reader in(*value);
  EXPECT_EQ(in.Required<std::string>("s"), "x");
  EXPECT_TRUE(in.Required<bool>("b"));
  EXPECT_EQ(in.Required<int32_t>("i"), -5);
  EXPECT_EQ(in.Required<uint64_t>("u"), UINT64_MAX);
  EXPECT_EQ(in.Required<double>("d"), 0.5);
  EXPECT_EQ(in.Optional<int64_t>("whole"), 3);
  EXPECT_EQ(in.Optional<std::string>("n"), std::nullopt);
  EXPECT_EQ(in.Optional<std::string>("absent"), std::nullopt);
  EXPECT_EQ(in.RequiredEnum<Colour>("e", kColours), Colour::kGreen);
  EXPECT_EQ(in.RequiredList<std::string>("l"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(in.OptionalMap("m"), (StringMap{{"k", "v"}}));
  EXPECT_TRUE(in.Any("any")->is_array());
  EXPECT_EQ(in.OptionalSize("size"), 2048u);
  EXPECT_EQ(in.OptionalSize("bytes"), 10u);
  EXPECT_EQ(in.OptionalDuration("time"), std::chrono::minutes(1));
  EXPECT_EQ(in.OptionalDuration("seconds"), std::chrono::milliseconds(1500));
  EXPECT_EQ(in.OptionalCpus("cpus"), 500u);
  int64_t x = 0, sum = 0;
  EXPECT_TRUE(in.OptionalObject("o", [&](Reader& o) { x = o.Required<int64_t>("x"); }));
  EXPECT_TRUE(in.OptionalObjects("os", [&](Reader& o) { sum += o.Required<int64_t>("y"); }));
  EXPECT_FALSE(in.OptionalObject("absent", [&](Reader&) { FAIL(); }));
  EXPECT_EQ(x, 1);
  EXPECT_EQ(sum, 3);
  const auto status = in.Finish();
  EXPECT_TRUE(status) << status.error().message();
}

TEST(JsonReader, UnknownFieldsAreNamedWithTheLikelyOne) {
  const auto read = [](Reader& in) {
    in.Optional<std::string>("command");
    in.OptionalObject("limits", [](Reader& limits) { limits.OptionalSize("memory"); });
  };
  EXPECT_EQ(Verdict(R"({"comand":"ls"})", read),
            "unknown field \"comand\" | did you mean command?");
  EXPECT_EQ(Verdict(R"({"zzz":1})", read), "unknown field \"zzz\" | leave it out");
  EXPECT_EQ(Verdict(R"({"limits":{"memroy":1}})", read),
            "unknown field \"memroy\" in limits | did you mean limits.memory?");
  EXPECT_EQ(Verdict(R"({"zzz":null})", read), "unknown field \"zzz\" | leave it out");
}

TEST(JsonReader, MissingFields) {
  const auto read = [](Reader& in) { in.Required<std::string>("name"); };
  EXPECT_EQ(Verdict("{}", read), "name: is missing | give name");
  EXPECT_EQ(Verdict(R"({"name":null})", read), "name: is missing | give name");
  // The slip says more than the gap it leaves.
  EXPECT_EQ(Verdict(R"({"nmae":"x"})", read), "unknown field \"nmae\" | did you mean name?");
}

TEST(JsonReader, WrongTypesSayWhatWasExpectedAndWhatCame) {
  const auto verdict = [](std::string_view text) {
    return Verdict(text, [](Reader& in) {
      in.Optional<std::string>("s", {.min = 1, .max = 3});
      in.Optional<int64_t>("i", {.min = 1, .max = 10});
      in.Optional<uint32_t>("u");
      in.Optional<double>("d", {.min = 0});
      in.Optional<bool>("b");
      in.OptionalEnum<Colour>("e", kColours);
      in.OptionalSize("size", {.min = 4096});
      in.OptionalDuration("time", {.max = std::chrono::hours(1)});
      in.OptionalCpus("cpus");
    });
  };
  EXPECT_EQ(verdict(R"({"s":5})"),
            "s: expected a string from 1 to 3 bytes, got 5 | give s as a string from 1 to 3 bytes");
  EXPECT_TRUE(
      verdict(R"({"s":"long"})").starts_with("s: expected a string from 1 to 3 bytes, got"));
  EXPECT_TRUE(verdict(R"({"i":0})").starts_with("i: expected a whole number from 1 to 10, got 0"));
  EXPECT_TRUE(verdict(R"({"i":1.5})").starts_with("i: expected a whole number from 1 to 10"));
  EXPECT_TRUE(verdict(R"({"i":"1"})").starts_with("i: expected a whole number"));
  EXPECT_TRUE(verdict(R"({"u":-1})")
                  .starts_with("u: expected a whole number from 0 to 4294967295, got -1"));
  EXPECT_TRUE(verdict(R"({"u":4294967296})").starts_with("u: expected a whole number from 0"));
  EXPECT_TRUE(verdict(R"({"u":{}})").starts_with("u: expected a whole number, got an object"));
  EXPECT_TRUE(
      verdict(R"({"d":-0.5})").starts_with("d: expected a number of at least 0.0, got -0.5"));
  EXPECT_TRUE(verdict(R"({"b":"true"})").starts_with("b: expected true or false, got \"true\""));
  EXPECT_EQ(verdict(R"({"e":"gren"})"),
            "e: expected one of red, green, got \"gren\" | did you mean green?");
  EXPECT_EQ(verdict(R"({"e":[]})"),
            "e: expected one of red, green, got a list | give e as one of red, green");
  EXPECT_TRUE(verdict(R"({"size":"12Q"})").starts_with("size: expected a size (in bytes, or like"));
  EXPECT_TRUE(verdict(R"({"size":1})").find("of at least 4K, got 1 |") != std::string::npos);
  EXPECT_TRUE(verdict(R"({"size":-1})").find("got -1 |") != std::string::npos);
  EXPECT_TRUE(verdict(R"({"time":"2h"})").find("of at most 1h, got \"2h\" |") != std::string::npos);
  EXPECT_TRUE(verdict(R"({"cpus":0})").starts_with("cpus: expected a number of cores"));
  EXPECT_EQ(verdict(R"({"s":"abc","i":10,"u":0,"d":0,"b":false,"time":"1h","size":4096})"), "fine");
}

TEST(JsonReader, PathsReachIntoListsAndMaps) {
  const auto read = [](Reader& in) {
    in.OptionalObjects("mounts", [](Reader& mount) { mount.Required<std::string>("source"); },
                       {.max = 3});
    in.OptionalList<std::string>("argv", {.min = 1});
    in.OptionalMap("env", {.max = 1});
  };
  EXPECT_EQ(Verdict(R"({"mounts":[{"source":"/a"},{"source":3}]})", read),
            "mounts[1].source: expected a string, got 3 | give mounts[1].source as a string");
  EXPECT_EQ(Verdict(R"({"mounts":[7]})", read),
            "mounts[0]: expected an object, got 7 | give mounts[0] as an object");
  EXPECT_TRUE(Verdict(R"({"mounts":[{},{},{},{}]})", read)
                  .starts_with("mounts: expected a list of at most 3 elements, got 4"));
  EXPECT_TRUE(Verdict(R"({"argv":[]})", read)
                  .starts_with("argv: expected a list of at least 1 elements, got 0"));
  EXPECT_TRUE(
      Verdict(R"({"argv":["a",null]})", read).starts_with("argv[1]: expected a string, got null"));
  EXPECT_TRUE(
      Verdict(R"({"env":{"A":1}})", read).starts_with("env[\"A\"]: expected a string, got 1"));
  EXPECT_TRUE(Verdict(R"({"env":{"A":"1","B":"2"}})", read)
                  .starts_with("env: expected an object of at most 1 members, got 2"));
}

TEST(JsonReader, TheRequestItselfIsAnObject) {
  EXPECT_EQ(Verdict("[1]", [](Reader& in) { in.Required<std::string>("name"); }),
            "the request: expected an object, got a list | give the request as an object");
}

TEST(JsonReader, TheFirstErrorIsKept) {
  EXPECT_TRUE(Verdict(R"({"a":1,"b":2})", [](Reader& in) {
                in.Optional<std::string>("a");
                in.Optional<std::string>("b");
                in.Refuse("b", "cannot be", "change it");
              }).starts_with("a: "));
  EXPECT_EQ(Verdict(R"({"b":2})",
                    [](Reader& in) {
                      in.Optional<int32_t>("b");
                      in.Refuse("b", "cannot be even", "make it odd");
                    }),
            "b: cannot be even | make it odd");
}

}  // namespace
}  // namespace caisson::json
