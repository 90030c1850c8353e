#include "cli/help.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "base/text.h"

namespace caisson::cli {
namespace {

using testing::HasSubstr;

Result<int> RunNothing(const Parsed&) { return 0; }

constexpr Option kOptions[] = {
    {.name = "memory",
     .short_name = 'm',
     .kind = ValueKind::kSize,
     .default_text = "512M",
     .env = "CAISSON_MEMORY",
     .config_key = "memory",
     .min = 4096,
     .section = "Limits",
     .help = "most memory the command may use, together with all it starts, its files in memory "
             "and its part of the kernel"},
    {.name = "mount",
     .occurs = Occurs::kMany,
     .placeholder = "SRC:DST[:ro]",
     .section = "Files",
     .help = "a \"host\" directory"},
    {.name = "profile", .kind = ValueKind::kEnum, .choices = "default|strict", .help = "how tight"},
    {.name = "stats", .kind = ValueKind::kFlag, .help = "print usage"},
};
constexpr Positional kPositionals[] = {
    {.name = "command", .arity = Arity::kRest, .help = "what to run"}};
constexpr Example kExamples[] = {{"caisson exec -- true", "the shortest one"}};
constexpr Verb kVerbs[] = {
    {.name = "exec",
     .summary = "run a command",
     .options = kOptions,
     .positionals = kPositionals,
     .examples = kExamples,
     .run = RunNothing},
    {.name = "fail", .summary = "fail", .run = RunNothing},
};
constexpr Program kProgram = {
    .name = "caisson", .version = "1.2.3", .summary = "boxes", .verbs = kVerbs};

TEST(Help, OfAVerbShowsEveryRowOfItsTables) {
  const std::string help = VerbHelp(kProgram, kVerbs[0]);
  for (const auto* part :
       {"Usage: caisson exec [OPTIONS] [--] [COMMAND...]", "Limits:\n", "Files:\n", "Options:\n",
        "-m, --memory SIZE", "    --mount SRC:DST[:ro]", "    --profile default|strict",
        "[default 512M; env", "[can be repeated]", "-h, --help",
        "  # the shortest one\n  caisson exec -- true"}) {
    EXPECT_THAT(help, HasSubstr(part));
  }
}

TEST(Help, StaysWithinAHundredColumns) {
  std::istringstream lines(VerbHelp(kProgram, kVerbs[0]) + ProgramHelp(kProgram));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(DisplayWidth(line), 100u) << line;
}

TEST(Help, OfTheProgramListsTheVerbs) {
  EXPECT_THAT(ProgramHelp(kProgram), HasSubstr("  exec  run a command\n  fail  fail\n  help  "));
}

TEST(Help, DescriptionForMachinesIsJsonWithEveryRow) {
  const std::string json = DescribeAsJson(kProgram);
  EXPECT_THAT(json, HasSubstr(R"({"name":"memory","short":"m","kind":"size","placeholder":"SIZE",)"
                              R"("repeatable":false,"default":"512M","env":"CAISSON_MEMORY",)"
                              R"("config":"memory","section":"Limits","min":4096,"help":)"));
  EXPECT_THAT(json, HasSubstr(R"("choices":["default","strict"])"));
  EXPECT_THAT(json, HasSubstr(R"(a \"host\" directory)"));
  EXPECT_THAT(json, HasSubstr(R"("errors":[{"name":"invalid_argument",)"));
}

}  // namespace
}  // namespace caisson::cli
