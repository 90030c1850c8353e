#include "cli/configuration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "cli/settings.h"

namespace caisson::cli {
namespace {

using testing::HasSubstr;

Result<int> RunNothing(const Parsed&) { return 0; }

constexpr Option kServeOptions[] = {
    kConfigOption,
    kEnvFileOption,
    {.name = "listen",
     .default_text = "127.0.0.1:8000",
     .env = "CAISSON_LISTEN",
     .config_key = "listen",
     .help = "where"},
    {.name = "cpu-limit",
     .kind = ValueKind::kCpus,
     .config_key = "resource_limits.cpu_limit",
     .help = "cores"},
    {.name = "memory-limit",
     .kind = ValueKind::kSize,
     .env = "CAISSON_MEMORY_LIMIT",
     .config_key = "resource_limits.memory_limit",
     .help = "bytes"},
    {.name = "allow",
     .occurs = Occurs::kMany,
     .env = "CAISSON_ALLOW",
     .config_key = "allow",
     .help = "who"},
};
constexpr Verb kVerbs[] = {
    {.name = "serve", .summary = "serve", .options = kServeOptions, .run = RunNothing},
    {.name = "version", .summary = "version", .run = RunNothing},
};
constexpr Program kProgram = {
    .name = "caisson", .version = "1", .summary = "boxes", .verbs = kVerbs};

// A folder of its own for each test, which is also the working directory's stand-in: every path is
// given, so that no file of the machine is looked at.
class ConfigurationTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(mkdtemp(folder_), nullptr); }
  void TearDown() override {
    for (const auto& path : made_) unlink(path.c_str());
    rmdir(folder_);
  }

  std::string Make(const std::string& name, std::string_view text) {
    const std::string path = std::string(folder_) + "/" + name;
    FILE* file = fopen(path.c_str(), "we");
    fwrite(text.data(), 1, text.size(), file);
    fclose(file);
    made_.push_back(path);
    return path;
  }

  Surroundings Process() {
    return {.env = [this](std::string_view name) -> std::optional<std::string> {
      const auto found = env_.find(name);
      return found == env_.end() ? std::nullopt : std::optional(found->second);
    }};
  }

  // `serve` with these further arguments, files and environment.
  Result<Parsed> Serve(std::vector<std::string_view> args) {
    args.insert(args.begin(), "serve");
    const Surroundings process = Process();
    CAISSON_ASSIGN(configuration_, LoadConfiguration(kProgram, args, process));
    CAISSON_ASSIGN(Invocation invocation, Parse(kProgram, args, configuration_.Around(process)));
    return std::move(invocation.parsed);
  }
  std::string Refusal(std::vector<std::string_view> args) {
    const auto parsed = Serve(std::move(args));
    return parsed ? "accepted" : parsed.error().message() + " | " + parsed.error().remedy();
  }

  char folder_[32] = "/tmp/caisson-config-XXXXXX";
  std::vector<std::string> made_;
  std::map<std::string, std::string, std::less<>> env_;
  Configuration configuration_;
};

TEST_F(ConfigurationTest, TheTableMakesSense) {
  const auto status = CheckTables(kProgram);
  EXPECT_TRUE(status) << status.error().message();
}

TEST_F(ConfigurationTest, EachSourceBeatsTheNext) {
  const std::string config = Make("c.yaml",
                                  "listen: from-file\n"
                                  "resource_limits: {cpu_limit: 2.0, memory_limit: \"2G\"}\n"
                                  "allow:\n  - a\n  - b\n");
  const std::string variables =
      Make(".env", "CAISSON_MEMORY_LIMIT=3G\nCAISSON_LISTEN=from-env-file\nOTHER=x\n");
  env_ = {{"CAISSON_CONFIG", config}, {"CAISSON_ENV_FILE", variables}};
  auto parsed = Serve({});
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->Get<uint32_t>("cpu-limit"), 2000u);
  EXPECT_EQ(parsed->SourceOf("cpu-limit"), ValueSource::kConfig);
  EXPECT_EQ(parsed->OriginOf("cpu-limit"), config + ":2");
  EXPECT_EQ(parsed->Get<uint64_t>("memory-limit"), uint64_t{3} << 30);
  EXPECT_EQ(parsed->OriginOf("memory-limit"), variables + ":1");
  EXPECT_EQ(parsed->SourceOf("memory-limit"), ValueSource::kEnvFile);
  EXPECT_EQ(parsed->All<std::string>("allow"), (std::vector<std::string>{"a", "b"}));
  env_["CAISSON_LISTEN"] = "from-environment";
  EXPECT_EQ(Serve({})->Get<std::string>("listen"), "from-environment");
  EXPECT_EQ(Serve({"--listen", "from-flag"})->Get<std::string>("listen"), "from-flag");
}

TEST_F(ConfigurationTest, AVariableOfTheFileMayNameTheConfiguration) {
  const std::string config = Make("c.yaml", "listen: deep\n");
  const std::string variables = Make("v", "CAISSON_CONFIG=" + config + "\n");
  EXPECT_EQ(Serve({"--env-file", variables})->Get<std::string>("listen"), "deep");
}

TEST_F(ConfigurationTest, ErrorsNameFileAndLine) {
  const std::string variables = Make("v", "");
  const auto refusal = [&](std::string_view text) {
    const std::string path = Make("c.yaml", text);
    return Refusal({"--env-file", variables, "--config", path});
  };
  EXPECT_THAT(refusal("a: [1\n"), HasSubstr("/c.yaml:"));
  EXPECT_THAT(refusal("resource_limits:\n  cpu_limt: 2\n"),
              HasSubstr("/c.yaml:2: unknown key \"resource_limits.cpu_limt\" | did you mean "
                        "resource_limits.cpu_limit?"));
  EXPECT_THAT(refusal("resource_limits:\n  memory_limit: lots\n"),
              HasSubstr("/c.yaml:2: resource_limits.memory_limit: \"lots\" is not a size"));
  EXPECT_THAT(refusal("listen: [a, b]\n"), HasSubstr("/c.yaml:1: listen is a list"));
  EXPECT_THAT(refusal("listen: []\n"), HasSubstr("/c.yaml:1: listen is a list"));
  EXPECT_THAT(refusal("listen:\n"), HasSubstr("/c.yaml:1: listen has no value"));
  EXPECT_THAT(refusal("- a\n"), HasSubstr("/c.yaml:1: expected keys, got a list"));
  EXPECT_THAT(refusal("allow: [{a: b}]\n"), HasSubstr("/c.yaml:1: allow has a map in it"));
  EXPECT_THAT(refusal("database_config: {pool_size: 20}\n"),
              HasSubstr("/c.yaml:1: database_config.pool_size is for a database server"));
  EXPECT_EQ(refusal("# nothing\n"), "accepted");
}

TEST_F(ConfigurationTest, FilesThatAreNamedMustBeThereAndTrusted) {
  const std::string variables = Make("v", "");
  EXPECT_THAT(Refusal({"--env-file", variables, "--config", "/nonexistent.yaml"}),
              HasSubstr("cannot open /nonexistent.yaml: No such file"));
  EXPECT_THAT(Refusal({"--env-file", "/nonexistent.env"}), HasSubstr("cannot open"));
  const std::string config = Make("c.yaml", "listen: x\n");
  chmod(config.c_str(), 0666);
  EXPECT_THAT(Refusal({"--env-file", variables, "--config", config}),
              HasSubstr("may be written by others"));
}

TEST_F(ConfigurationTest, OtherVerbsReadNoFiles) {
  env_ = {{"CAISSON_CONFIG", "/nonexistent"}};
  const std::vector<std::string_view> args = {"version"};
  EXPECT_TRUE(LoadConfiguration(kProgram, args, Process()));
}

TEST_F(ConfigurationTest, SettingsSayWhereTheyComeFrom) {
  const std::string config = Make("c.yaml", "allow: [a, b]\n");
  const std::string variables = Make("v", "");
  const auto parsed = Serve({"--env-file", variables, "--config", config, "--cpu-limit=2"});
  ASSERT_TRUE(parsed) << parsed.error().message();
  const auto settings = SettingsOf(kServeOptions, *parsed);
  const auto shown = [&](std::string_view name) {
    const auto found = std::ranges::find(settings, name, &ShownSetting::name);
    if (found == settings.end()) return std::string("nothing");
    std::string text;
    for (const auto& value : found->values) text += value + " ";
    return text + "from " + found->from;
  };
  EXPECT_EQ(shown("listen"), "127.0.0.1:8000 from default");
  EXPECT_EQ(shown("resource_limits.cpu_limit"), "2 from --cpu-limit");
  EXPECT_EQ(shown("resource_limits.memory_limit"), "from not set");
  EXPECT_EQ(shown("allow"), "a b from " + config + ":1");
  EXPECT_EQ(shown("--config"), config + " from --config");
}

TEST(Settings, SecretsAreNotShownButTheirFilesAre) {
  EXPECT_TRUE(IsSecret({.name = "key"}));
  EXPECT_TRUE(IsSecret({.name = "signing-secret"}));
  EXPECT_FALSE(IsSecret({.name = "tls-key", .kind = ValueKind::kPath}));
  EXPECT_FALSE(IsSecret({.name = "listen"}));
}

TEST(EnvFile, ReadsWhatShellsRead) {
  const auto variables = ParseEnvFile(
      "# comment\n\nA=1\nexport B = two words # comment\nC='as $is \\n'\nD=\"a\\tb\\\"c\" # "
      "x\nE=\r\n",
      "f");
  ASSERT_TRUE(variables) << variables.error().message();
  ASSERT_EQ(variables->size(), 5u);
  EXPECT_EQ(variables->at(0).value, "1");
  EXPECT_EQ(variables->at(1).name, "B");
  EXPECT_EQ(variables->at(1).value, "two words");
  EXPECT_EQ(variables->at(1).origin, "f:4");
  EXPECT_EQ(variables->at(2).value, "as $is \\n");
  EXPECT_EQ(variables->at(3).value, "a\tb\"c");
  EXPECT_EQ(variables->at(4).value, "");
}

TEST(EnvFile, RefusesTheRestWithItsLine) {
  const auto refusal = [](std::string_view text) {
    const auto variables = ParseEnvFile(text, "f");
    return variables ? "accepted" : variables.error().message();
  };
  EXPECT_EQ(refusal("A=1\nsecret words\n"), "f:2: the line is no NAME=VALUE");
  EXPECT_EQ(refusal("1A=x"), "f:1: the line is no NAME=VALUE");
  EXPECT_EQ(refusal("A=1\nA=2"), "f:2: A is given more than once");
  EXPECT_EQ(refusal("A='x"), "f:1: the quotes do not end");
  EXPECT_EQ(refusal("A=\"x\\"), "f:1: unknown escape");
  EXPECT_EQ(refusal("A=\"x\" y"), "f:1: there is more after the quotes");
}

}  // namespace
}  // namespace caisson::cli
