#include "base/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace caisson {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

Result<int> RunNothing(const Parsed&) { return 0; }

Status NoColon(std::string_view text) {
  if (!text.contains(':')) return {};
  return Error(ErrorCode::kInvalidArgument, "a colon is not allowed").WithRemedy("leave it out");
}

constexpr Option kGlobals[] = {
    {.name = "log-level",
     .kind = ValueKind::kEnum,
     .choices = "debug|info|error",
     .default_text = "info",
     .env = "CAISSON_LOG_LEVEL",
     .help = "how much to log"},
    {.name = "verbose", .short_name = 'v', .kind = ValueKind::kFlag, .help = "say more"},
};
constexpr Option kExecOptions[] = {
    {.name = "memory",
     .short_name = 'm',
     .kind = ValueKind::kSize,
     .default_text = "512M",
     .env = "CAISSON_MEMORY",
     .config_key = "limits.memory",
     .min = 1 << 20,
     .help = "memory"},
    {.name = "cpus", .kind = ValueKind::kCpus, .max = 4000, .help = "cores"},
    {.name = "timeout", .short_name = 't', .kind = ValueKind::kDuration, .help = "wall time"},
    {.name = "share", .kind = ValueKind::kPercent, .help = "share"},
    {.name = "nice", .kind = ValueKind::kInt, .min = -20, .max = 19, .help = "niceness"},
    {.name = "profile",
     .kind = ValueKind::kEnum,
     .choices = "default|strict",
     .default_text = "default",
     .help = "profile"},
    {.name = "env",
     .short_name = 'e',
     .occurs = Occurs::kMany,
     .env = "CAISSON_ENV",
     .config_key = "env",
     .help = "variables"},
    {.name = "cwd", .kind = ValueKind::kPath, .check = NoColon, .help = "directory"},
    {.name = "stats",
     .short_name = 's',
     .kind = ValueKind::kFlag,
     .env = "CAISSON_STATS",
     .help = "print usage"},
    {.name = "json", .short_name = 'j', .kind = ValueKind::kFlag, .help = "as JSON"},
};
constexpr Positional kExecPositionals[] = {
    {.name = "command", .arity = Arity::kRest, .help = "what to run"}};
constexpr Positional kCompletionPositionals[] = {
    {.name = "shell", .kind = ValueKind::kEnum, .choices = "bash|zsh|fish", .help = "the shell"},
    {.name = "file", .arity = Arity::kOptional, .kind = ValueKind::kPath, .help = "the file"}};
constexpr Positional kRemovePositionals[] = {
    {.name = "id", .arity = Arity::kMany, .help = "what to remove"}};
constexpr Positional kEnterPositionals[] = {
    {.name = "session",
     .arity = Arity::kBeforeDashes,
     .kind = ValueKind::kSession,
     .help = "where"},
    {.name = "command", .arity = Arity::kRest, .help = "what to run"}};
constexpr Verb kVerbs[] = {
    {.name = "exec",
     .summary = "run",
     .options = kExecOptions,
     .positionals = kExecPositionals,
     .run = RunNothing},
    {.name = "completion",
     .summary = "complete",
     .positionals = kCompletionPositionals,
     .run = RunNothing},
    {.name = "remove", .summary = "remove", .positionals = kRemovePositionals, .run = RunNothing},
    {.name = "enter",
     .summary = "enter",
     .options = kExecOptions,
     .positionals = kEnterPositionals,
     .run = RunNothing},
};
constexpr Program kProgram = {
    .name = "caisson", .version = "1", .summary = "boxes", .verbs = kVerbs, .globals = kGlobals};

using Args = std::vector<std::string_view>;
using Env = std::map<std::string, std::string, std::less<>>;

Result<Invocation> Read(const Args& args, const Env& env = {},
                        std::span<const ConfigValue> config = {}) {
  const auto lookup = [&](std::string_view name) -> std::optional<std::string> {
    const auto found = env.find(name);
    return found == env.end() ? std::nullopt : std::optional(found->second);
  };
  return Parse(kProgram, args, {.env = lookup, .config = config});
}

Parsed Good(const Args& args, const Env& env = {}, std::span<const ConfigValue> config = {}) {
  auto invocation = Read(args, env, config);
  if (!invocation) {
    ADD_FAILURE() << invocation.error().message() << " / " << invocation.error().remedy();
    std::abort();
  }
  EXPECT_EQ(invocation->request, Request::kRun);
  return std::move(invocation->parsed);
}

// "message | remedy" of a refused command line.
std::string Bad(const Args& args, const Env& env = {}, std::span<const ConfigValue> config = {}) {
  auto invocation = Read(args, env, config);
  if (invocation) return "accepted";
  EXPECT_EQ(invocation.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_FALSE(invocation.error().remedy().empty()) << invocation.error().message();
  return invocation.error().message() + " | " + invocation.error().remedy();
}

TEST(Options, AWordThatDashesFollowIsWhatStandsBeforeThem) {
  const auto session = [](const Args& args) {
    return Good(args).Get<std::string>("session").value_or("none");
  };
  const auto command = [](const Args& args) { return Good(args).All<std::string>("command"); };
  EXPECT_EQ(session({"enter", "web", "--", "ls", "-l"}), "web");
  EXPECT_THAT(command({"enter", "web", "--", "ls", "-l"}), ElementsAre("ls", "-l"));
  EXPECT_EQ(session({"enter", "-s", "web", "--", "ls", "--", "x"}), "web");
  EXPECT_THAT(command({"enter", "web", "--", "ls", "--", "x"}), ElementsAre("ls", "--", "x"));
  EXPECT_EQ(session({"enter", "--", "grep", "--", "x"}), "none");
  EXPECT_THAT(command({"enter", "--", "grep", "--", "x"}), ElementsAre("grep", "--", "x"));
  EXPECT_EQ(session({"enter", "ls", "-l"}), "none");
  EXPECT_THAT(command({"enter", "ls", "-l"}), ElementsAre("ls", "-l"));
  EXPECT_EQ(session({"enter", "web", "--"}), "web");
  EXPECT_EQ(session({"enter"}), "none");
  EXPECT_THAT(Bad({"enter", "", "--", "ls"}), HasSubstr("session has no name"));
}

TEST(Options, TheTablesOfThisTestAreSound) {
  const auto status = CheckTables(kProgram);
  EXPECT_TRUE(status) << status.error().message();
}

TEST(Options, ValuesAreTypedInEverySpelling) {
  for (const Args& args : {Args{"exec", "--memory", "1G"}, Args{"exec", "--memory=1G"},
                           Args{"exec", "-m", "1G"}, Args{"exec", "-m1G"}, Args{"exec", "-m=1G"},
                           Args{"exec", "-sm", "1G"}, Args{"exec", "-sjm1G"}}) {
    EXPECT_EQ(Good(args).Get<uint64_t>("memory"), 1ull << 30) << args[1];
  }
  const Parsed parsed = Good({"exec", "--cpus=0.5", "-t", "1m30s", "--share", "12.5%", "--nice",
                              "-5", "--profile", "strict", "--cwd=/a b", "--stats"});
  EXPECT_EQ(parsed.Get<uint32_t>("cpus"), 500u);
  EXPECT_EQ(parsed.Get<std::chrono::nanoseconds>("timeout"), 90s);
  EXPECT_EQ(parsed.Get<uint32_t>("share"), 1250u);
  EXPECT_EQ(parsed.Get<int64_t>("nice"), -5);
  EXPECT_EQ(parsed.Get<std::string>("profile"), "strict");
  EXPECT_EQ(parsed.Get<std::string>("cwd"), "/a b");
  EXPECT_TRUE(parsed.Flag("stats"));
  EXPECT_FALSE(parsed.Flag("json"));
}

TEST(Options, MissingValuesAreNothingAndDefaultsAreMarked) {
  const Parsed parsed = Good({"exec"});
  EXPECT_EQ(parsed.Get<uint32_t>("cpus"), std::nullopt);
  EXPECT_EQ(parsed.SourceOf("cpus"), ValueSource::kNone);
  EXPECT_EQ(parsed.Get<uint64_t>("memory"), 512ull << 20);
  EXPECT_EQ(parsed.SourceOf("memory"), ValueSource::kDefault);
  EXPECT_FALSE(parsed.Given("memory"));
  EXPECT_THAT(parsed.All<std::string>("env"), IsEmpty());
}

TEST(Options, CommandLineBeatsEnvironmentBeatsConfigurationBeatsDefault) {
  const Env env = {{"CAISSON_MEMORY", "64M"}};
  const ConfigValue config[] = {{"limits.memory", {"32M"}, "c.yaml:1"}};
  EXPECT_EQ(Good({"exec", "-m", "128M"}, env, config).Get<uint64_t>("memory"), 128u << 20);
  EXPECT_EQ(Good({"exec"}, env, config).Get<uint64_t>("memory"), 64u << 20);
  EXPECT_EQ(Good({"exec"}, {}, config).Get<uint64_t>("memory"), 32u << 20);
  EXPECT_EQ(Good({"exec"}, {{"CAISSON_MEMORY", ""}}).Get<uint64_t>("memory"), 512u << 20);
  EXPECT_EQ(Good({"exec"}, env, config).SourceOf("memory"), ValueSource::kEnvironment);
  EXPECT_EQ(Good({"exec"}, {}, config).SourceOf("memory"), ValueSource::kConfig);
}

TEST(Options, RepeatableOptionsKeepOrderAndTakeListsFromEverywhere) {
  EXPECT_THAT(Good({"exec", "-eA=1", "--env", "B=2", "--env=C"}).All<std::string>("env"),
              ElementsAre("A=1", "B=2", "C"));
  EXPECT_THAT(Good({"exec"}, {{"CAISSON_ENV", "A=1,B=2"}}).All<std::string>("env"),
              ElementsAre("A=1", "B=2"));
  const ConfigValue config[] = {{"env", {"A=1", "B=2,3"}, "c.yaml:1"}};
  EXPECT_THAT(Good({"exec"}, {}, config).All<std::string>("env"), ElementsAre("A=1", "B=2,3"));
}

TEST(Options, FlagsTakeTruthValues) {
  const Env env = {{"CAISSON_STATS", "yes"}};
  EXPECT_TRUE(Good({"exec"}, env).Flag("stats"));
  EXPECT_FALSE(Good({"exec", "--stats=false"}, env).Flag("stats"));
  EXPECT_FALSE(Good({"exec", "-s=0"}, env).Flag("stats"));
  EXPECT_THAT(Bad({"exec", "--stats=maybe"}), HasSubstr("--stats: \"maybe\" is neither"));
  EXPECT_THAT(Bad({"exec"}, {{"CAISSON_STATS", "2"}}), HasSubstr("variable CAISSON_STATS"));
}

TEST(Options, RestBelongsToTheCommand) {
  EXPECT_THAT(Good({"exec", "ls", "-l", "--memory"}).All<std::string>("command"),
              ElementsAre("ls", "-l", "--memory"));
  EXPECT_THAT(Good({"exec", "-s", "--", "--version", "--"}).All<std::string>("command"),
              ElementsAre("--version", "--"));
  EXPECT_THAT(Good({"exec", "--", "", "-h"}).All<std::string>("command"), ElementsAre("", "-h"));
}

TEST(Options, GlobalsStandBeforeAndAfterTheVerb) {
  EXPECT_EQ(Good({"--log-level=debug", "exec"}).Get<std::string>("log-level"), "debug");
  EXPECT_EQ(Good({"exec", "--log-level", "error"}).Get<std::string>("log-level"), "error");
  EXPECT_TRUE(Good({"-v", "exec"}).Flag("verbose"));
}

TEST(Options, HelpAndVersionAreRequests) {
  const auto request = [](const Args& args) { return Read(args)->request; };
  EXPECT_EQ(request({}), Request::kHelp);
  EXPECT_EQ(request({"--help"}), Request::kHelp);
  EXPECT_EQ(request({"help"}), Request::kHelp);
  EXPECT_EQ(request({"--version"}), Request::kVersion);
  EXPECT_EQ(Read({"help", "exec"})->verb, &kVerbs[0]);
  EXPECT_EQ(Read({"exec", "-m", "1G", "-h"})->verb, &kVerbs[0]);
  EXPECT_EQ(request({"completion", "--help"}), Request::kHelp);  // a required positional is missing
  EXPECT_THAT(Bad({"help", "exce"}), HasSubstr("did you mean `caisson exec`?"));
}

TEST(Options, WhatIsUnknownIsRefusedWithASuggestion) {
  EXPECT_THAT(Bad({"exec", "--memroy", "1G"}),
              AllOf(HasSubstr("unknown option \"--memroy\""), HasSubstr("did you mean --memory?")));
  EXPECT_THAT(Bad({"exec", "--mem=1G"}), HasSubstr("did you mean --memory?"));
  EXPECT_THAT(Bad({"exec", "--command=ls"}), HasSubstr("unknown option"));  // a positional's name
  EXPECT_THAT(Bad({"exec", "--zzz"}), HasSubstr("see `caisson exec --help`"));
  EXPECT_THAT(Bad({"exec", "-x"}), HasSubstr("unknown option \"-x\""));
  EXPECT_THAT(Bad({"exec", "-sx"}), HasSubstr("unknown option \"-x\""));
  EXPECT_THAT(Bad({"exec", "--=1"}), HasSubstr("unknown option"));
  EXPECT_THAT(Bad({"exe"}), HasSubstr("did you mean `caisson exec`?"));
  EXPECT_THAT(Bad({"--memory", "1G", "exec"}), HasSubstr("unknown option"));  // not a global
  EXPECT_THAT(Bad({"-v"}), HasSubstr("no command given"));
  EXPECT_THAT(Bad({"--", "exec"}), HasSubstr("no command"));
  EXPECT_THAT(Bad({""}), HasSubstr("is not a command"));
}

TEST(Options, MissingValuesAreRefused) {
  EXPECT_THAT(Bad({"exec", "--memory"}), HasSubstr("--memory needs a value"));
  EXPECT_THAT(Bad({"exec", "-m"}), HasSubstr("-m needs a value"));
  EXPECT_THAT(Bad({"exec", "--memory", "--stats"}), HasSubstr("write it with an equals sign"));
  EXPECT_THAT(Bad({"exec", "--env", "--", "ls"}), HasSubstr("--env needs a value"));
  EXPECT_EQ(Good({"exec", "--env=-x"}).Get<std::string>("env"), "-x");
  EXPECT_EQ(Good({"exec", "--cwd", "-"}).Get<std::string>("cwd"), "-");
}

TEST(Options, DuplicatesAreRefusedUnlessRepeatable) {
  EXPECT_THAT(Bad({"exec", "-m", "1G", "--memory=2G"}),
              HasSubstr("--memory is given more than once"));
  EXPECT_THAT(Bad({"exec", "-ss"}), HasSubstr("-s is given more than once"));
  EXPECT_THAT(Bad({"-v", "exec", "-v"}), HasSubstr("more than once"));
}

TEST(Options, BadValuesNameTheirOption) {
  EXPECT_THAT(Bad({"exec", "-m", "12Q"}),
              AllOf(HasSubstr("-m: \"12Q\" is not a size"), HasSubstr("512M")));
  EXPECT_THAT(Bad({"exec", "--memory=1K"}),
              AllOf(HasSubstr("too small"), HasSubstr("the least allowed is 1M")));
  EXPECT_THAT(Bad({"exec", "--memory=8E"}), HasSubstr("too large"));
  EXPECT_THAT(Bad({"exec", "--cpus=4.001"}), HasSubstr("the most allowed is 4"));
  EXPECT_THAT(Bad({"exec", "--nice=20"}), HasSubstr("the most allowed is 19"));
  EXPECT_THAT(Bad({"exec", "--nice", "-21"}), HasSubstr("the least allowed is -20"));
  EXPECT_THAT(Bad({"exec", "--profile=strikt"}),
              AllOf(HasSubstr("did you mean strict?"), HasSubstr("default, strict")));
  EXPECT_THAT(Bad({"exec", "--profile="}), HasSubstr("not one of the choices"));
  EXPECT_THAT(Bad({"exec", "--cwd="}), HasSubstr("--cwd: the path is empty"));
  EXPECT_THAT(Bad({"exec", "--cwd=a:b"}), HasSubstr("--cwd: a colon is not allowed"));
  EXPECT_THAT(Bad({"exec", std::string_view("--env=a\0b", 9)}), HasSubstr("NUL"));
  EXPECT_THAT(Bad({"exec"}, {{"CAISSON_MEMORY", "x"}}),
              HasSubstr("environment variable CAISSON_MEMORY: \"x\""));
  const ConfigValue config[] = {{"limits.memory", {"x"}, "c.yaml:7"}};
  EXPECT_THAT(Bad({"exec"}, {}, config), HasSubstr("c.yaml:7: limits.memory: \"x\""));
  const ConfigValue list[] = {{"limits.memory", {"1G", "2G"}, "c.yaml:7"}};
  EXPECT_THAT(Bad({"exec"}, {}, list), HasSubstr("is a list"));
}

TEST(Options, PositionalsAreCountedAndChecked) {
  EXPECT_EQ(Good({"completion", "zsh"}).Get<std::string>("shell"), "zsh");
  EXPECT_EQ(Good({"completion", "zsh", "f"}).Get<std::string>("file"), "f");
  EXPECT_THAT(Bad({"completion"}), HasSubstr("SHELL is missing | give one of bash|zsh|fish"));
  EXPECT_THAT(Bad({"completion", "csh"}), HasSubstr("SHELL: \"csh\""));
  EXPECT_THAT(Bad({"completion", "zsh", "a", "b"}), HasSubstr("unexpected argument \"b\""));
  EXPECT_THAT(Good({"remove", "a", "-v", "b"}).All<std::string>("id"), ElementsAre("a", "b"));
  EXPECT_THAT(Bad({"remove"}), HasSubstr("ID is missing"));
}

TEST(Options, ConfigurationKeysAreKnownAndUnique) {
  const ConfigValue good[] = {{"limits.memory", {"1G"}, "c:1"}, {"env", {}, "c:2"}};
  EXPECT_TRUE(CheckConfigKeys(kProgram, good));
  const ConfigValue unknown[] = {{"limits.memroy", {"1G"}, "c:1"}};
  const auto slip = CheckConfigKeys(kProgram, unknown);
  ASSERT_FALSE(slip);
  EXPECT_THAT(slip.error().message(), HasSubstr("c:1: unknown key \"limits.memroy\""));
  EXPECT_THAT(slip.error().remedy(), HasSubstr("limits.memory"));
  const ConfigValue twice[] = {{"env", {"a"}, "c:1"}, {"env", {"b"}, "c:2"}};
  EXPECT_FALSE(CheckConfigKeys(kProgram, twice));
}

TEST(Options, UnsoundTablesAreFound) {
  const auto refused = [](const Option& option) {
    const Verb verbs[] = {
        {.name = "go", .summary = "go", .options = {&option, 1}, .run = RunNothing}};
    return !CheckTables(
        {.name = "p", .version = "1", .summary = "s", .verbs = verbs, .globals = kGlobals});
  };
  EXPECT_FALSE(refused({.name = "fine", .help = "h"}));
  EXPECT_TRUE(refused({.name = "no-help"}));
  EXPECT_TRUE(refused({.name = "Upper", .help = "h"}));
  EXPECT_TRUE(refused({.name = "help", .help = "h"}));
  EXPECT_TRUE(refused({.name = "host", .short_name = 'h', .help = "h"}));
  EXPECT_TRUE(refused({.name = "verbose", .help = "h"}));
  EXPECT_TRUE(refused({.name = "vast", .short_name = 'v', .help = "h"}));
  EXPECT_TRUE(refused({.name = "pick", .kind = ValueKind::kEnum, .help = "h"}));
  EXPECT_TRUE(refused({.name = "text", .choices = "a|b", .help = "h"}));
  EXPECT_TRUE(refused({.name = "text", .min = 1, .help = "h"}));
  EXPECT_TRUE(
      refused({.name = "size", .kind = ValueKind::kSize, .default_text = "much", .help = "h"}));
  EXPECT_TRUE(refused({.name = "level", .env = "CAISSON_LOG_LEVEL", .help = "h"}));
}

TEST(OptionsDeathTest, MisuseOfParsedAborts) {
  const Parsed parsed = Good({"exec"});
  EXPECT_DEATH((void)parsed.Get<std::string>("nonsense"), "is in no table");
  EXPECT_DEATH((void)parsed.Get<std::string>("memory"), "another type");
}

}  // namespace
}  // namespace caisson
