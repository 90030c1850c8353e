#include "cli/dispatch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/help.h"

namespace caisson::cli {
namespace {

using testing::HasSubstr;

Result<int> RunSeven(const Parsed& parsed) { return parsed.Flag("stats") ? 8 : 7; }
Result<int> RunBadly(const Parsed&) {
  return Error(ErrorCode::kNotFound, "no \x1b[2Jsandbox").WithRemedy("make one");
}

constexpr Option kOptions[] = {
    {.name = "memory", .kind = ValueKind::kSize, .help = "memory"},
    {.name = "stats", .kind = ValueKind::kFlag, .help = "print usage"},
};
constexpr Verb kVerbs[] = {
    {.name = "exec", .summary = "run a command", .options = kOptions, .run = RunSeven},
    {.name = "fail", .summary = "fail", .run = RunBadly},
};
constexpr Program kProgram = {
    .name = "caisson", .version = "1.2.3", .summary = "boxes", .verbs = kVerbs};

// Exit status, standard output and standard error of a dispatched command line.
struct Ran {
  int status;
  std::string out;
  std::string err;
};
Ran Dispatched(std::vector<std::string_view> args) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int status = Dispatch(kProgram, args, {});
  return {status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

TEST(Dispatch, RunsTheVerbAndGivesItsStatus) {
  EXPECT_EQ(Dispatched({"exec"}).status, 7);
  EXPECT_EQ(Dispatched({"exec", "--stats"}).status, 8);
}

TEST(Dispatch, ShowsErrorsWithTheirRemedyAndExitCode) {
  const Ran ran = Dispatched({"exec", "--memory", "12Q"});
  EXPECT_EQ(ran.status, 125);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err,
            "caisson exec: --memory: \"12Q\" is not a size\n"
            "  write a size such as 512M, 2G, 1GiB or 1048576\n");
  EXPECT_THAT(Dispatched({"exce"}).err, HasSubstr("caisson: \"exce\" is not a command\n"));
  const Ran failed = Dispatched({"fail"});
  EXPECT_EQ(failed.status, 125);
  EXPECT_EQ(failed.err, "caisson fail: no ?[2Jsandbox\n  make one\n");
}

TEST(Dispatch, AnswersHelpAndVersionOnStandardOutput) {
  EXPECT_EQ(Dispatched({"--version"}).out, "caisson 1.2.3\n");
  EXPECT_EQ(Dispatched({}).out, ProgramHelp(kProgram));
  EXPECT_EQ(Dispatched({"exec", "--help"}).out, VerbHelp(kProgram, kVerbs[0]));
  EXPECT_EQ(Dispatched({"help", "exec"}).out, VerbHelp(kProgram, kVerbs[0]));
  EXPECT_EQ(Dispatched({"help", "--json"}).out, DescribeAsJson(kProgram));
  EXPECT_EQ(Dispatched({"exec", "--help"}).status, 0);
}

}  // namespace
}  // namespace caisson::cli
