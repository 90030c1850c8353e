#include "cli/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

namespace caisson::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

Result<int> RunNothing(const Parsed&) { return 0; }

constexpr Option kGlobals[] = {{.name = "log-level",
                                .kind = ValueKind::kEnum,
                                .choices = "debug|info",
                                .help = "the log's level"}};
constexpr Option kExecOptions[] = {
    {.name = "memory", .short_name = 'm', .kind = ValueKind::kSize, .help = "memory [bytes]: all"},
    {.name = "profile",
     .short_name = 'p',
     .kind = ValueKind::kEnum,
     .choices = "default|strict",
     .help = "the sandbox's profile"},
    {.name = "rootfs", .kind = ValueKind::kPath, .help = "root"},
    {.name = "mount", .occurs = Occurs::kMany, .help = "mount"},
    {.name = "stats", .kind = ValueKind::kFlag, .help = "usage"},
};
constexpr Positional kExecPositionals[] = {
    {.name = "session",
     .arity = Arity::kBeforeDashes,
     .kind = ValueKind::kSession,
     .help = "where to run it"},
    {.name = "command", .arity = Arity::kRest, .help = "what to run"}};
constexpr Positional kCompletionPositionals[] = {
    {.name = "shell", .kind = ValueKind::kEnum, .choices = "bash|zsh|fish", .help = "shell"}};
constexpr Positional kLoadPositionals[] = {
    {.name = "file", .arity = Arity::kMany, .kind = ValueKind::kPath, .help = "files"}};
constexpr Positional kStopPositionals[] = {
    {.name = "session", .arity = Arity::kMany, .kind = ValueKind::kSession, .help = "sessions"}};
constexpr Verb kVerbs[] = {
    {.name = "stop", .summary = "stop it", .positionals = kStopPositionals, .run = RunNothing},
    {.name = "exec",
     .summary = "run a command: it's boxed",
     .options = kExecOptions,
     .positionals = kExecPositionals,
     .run = RunNothing},
    {.name = "completion",
     .summary = "print a script",
     .positionals = kCompletionPositionals,
     .run = RunNothing},
    {.name = "load", .summary = "load files", .positionals = kLoadPositionals, .run = RunNothing},
};
constexpr Program kProgram = {
    .name = "caisson", .version = "1", .summary = "boxes", .verbs = kVerbs, .globals = kGlobals};

// A directory with the script in it and two files to complete, removed with everything at the end.
class CompletionTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/caisson-completion-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    dir_ = path;
    Write("alpha one", "");
    Write("alpine", "");
  }
  void TearDown() override {
    for (const auto& name : files_) ::unlink((dir_ + "/" + name).c_str());
    ::rmdir(dir_.c_str());
  }
  void Write(const std::string& name, std::string_view text) {
    std::ofstream(dir_ + "/" + name) << text;
    files_.push_back(name);
  }
  // Standard output of `command`, run in the directory by bash.
  std::vector<std::string> Lines(const std::string& command) {
    Write("command", command);
    const std::string run = "cd " + dir_ + " && bash --norc --noprofile ./command 2>&1";
    std::vector<std::string> lines;
    std::FILE* pipe = ::popen(run.c_str(), "r");
    if (pipe == nullptr) return {"popen failed"};
    char line[4096];
    while (std::fgets(line, sizeof line, pipe) != nullptr) {
      lines.emplace_back(line);
      if (lines.back().ends_with('\n')) lines.back().pop_back();
    }
    if (::pclose(pipe) != 0) lines.emplace_back("command failed");
    return lines;
  }
  // What bash offers for the last of `words`, which are as bash splits them.
  std::vector<std::string> Bash(const std::string& words) {
    Write("script", CompletionScript(kProgram, Shell::kBash));
    return Lines("set -u; source ./script; COMP_WORDS=(caisson " + words +
                 "); COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )); _caisson; "
                 "(( ${#COMPREPLY[@]} == 0 )) || printf '%s\\n' \"${COMPREPLY[@]}\"");
  }
  bool Installed(const std::string& shell) {
    return Lines("command -v " + shell + " >/dev/null && echo yes || true") ==
           std::vector<std::string>{"yes"};
  }

  std::string dir_;
  std::vector<std::string> files_;
};

TEST_F(CompletionTest, BashOffersVerbsFirst) {
  EXPECT_THAT(Bash("''"), UnorderedElementsAre("help", "exec", "completion", "load", "stop"));
  EXPECT_THAT(Bash("ex"), ElementsAre("exec"));
  EXPECT_THAT(Bash("--log-level info ex"), ElementsAre("exec"));
  EXPECT_THAT(Bash("help co"), ElementsAre("completion"));
  EXPECT_THAT(Bash("--v"), ElementsAre("--version"));
}

TEST_F(CompletionTest, BashOffersTheVerbsOptions) {
  EXPECT_THAT(Bash("exec --m"), UnorderedElementsAre("--memory", "--mount"));
  EXPECT_THAT(Bash("exec --memory 1G --st"), ElementsAre("--stats"));
  EXPECT_THAT(Bash("exec --memory = 1G --st"), ElementsAre("--stats"));
  EXPECT_THAT(Bash("exec --mount a : b --st"), ElementsAre("--stats"));
  EXPECT_THAT(Bash("exec -"), Contains("-m"));
  EXPECT_THAT(Bash("completion --m"), IsEmpty());
}

TEST_F(CompletionTest, BashOffersValues) {
  EXPECT_THAT(Bash("exec --profile ''"), UnorderedElementsAre("default", "strict"));
  EXPECT_THAT(Bash("exec -p s"), ElementsAre("strict"));
  EXPECT_THAT(Bash("exec --profile = s"), ElementsAre("strict"));
  EXPECT_THAT(Bash("exec --profile ="), UnorderedElementsAre("default", "strict"));
  EXPECT_THAT(Bash("exec --memory ''"), IsEmpty());
  EXPECT_THAT(Bash("exec --rootfs al"), UnorderedElementsAre("alpha one", "alpine"));
  EXPECT_THAT(Bash("--log-level d"), ElementsAre("debug"));
  EXPECT_THAT(Bash("exec --log-level d"), ElementsAre("debug"));
}

TEST_F(CompletionTest, BashOffersPositionals) {
  EXPECT_THAT(Bash("completion z"), ElementsAre("zsh"));
  EXPECT_THAT(Bash("completion zsh f"), IsEmpty());
  EXPECT_THAT(Bash("load alpine alpi"), ElementsAre("alpine"));
}

TEST_F(CompletionTest, BashTreatsTheRestAsACommandOfItsOwn) {
  EXPECT_THAT(Bash("exec --stats bas"), Contains("bash"));
  EXPECT_THAT(Bash("exec --stats -- bas"), Contains("bash"));
  EXPECT_THAT(Bash("exec -- cat alpi"), ElementsAre("alpine"));
  EXPECT_THAT(Bash("exec cat --sta"), IsEmpty());
  EXPECT_THAT(Bash("exec -- --sta"), Not(Contains("--stats")));
}

TEST_F(CompletionTest, BashAsksForTheNamesOfSessions) {
  const std::string program =
      "caisson() { [[ \"$*\" == 'ls --names' ]] && printf 'web\\nwest\\nmail\\n'; };";
  const auto offered = [&](const std::string& words) {
    Write("script", program + CompletionScript(kProgram, Shell::kBash));
    return Lines("set -u; source ./script; COMP_WORDS=(caisson " + words +
                 "); COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 )); _caisson; "
                 "(( ${#COMPREPLY[@]} == 0 )) || printf '%s\\n' \"${COMPREPLY[@]}\"");
  };
  EXPECT_THAT(offered("stop we"), ElementsAre("web", "west"));
  EXPECT_THAT(offered("stop web ma"), ElementsAre("mail"));
  EXPECT_THAT(offered("exec web"), Contains("web"));
  EXPECT_THAT(offered("exec bas"), Contains("bash"));
  EXPECT_THAT(offered("exec web -- bas"), Contains("bash"));
  EXPECT_THAT(offered("exec web -- mai"), Not(Contains("mail")));
  EXPECT_THAT(offered("exec -- we"), Not(Contains("web")));
}

TEST_F(CompletionTest, BashScriptRegistersItself) {
  Write("script", CompletionScript(kProgram, Shell::kBash));
  EXPECT_THAT(Lines("source ./script; complete -p caisson"),
              ElementsAre("complete -F _caisson caisson"));
}

TEST_F(CompletionTest, OtherShellsReadTheirScripts) {
  for (const auto& [name, shell] : {std::pair("zsh", Shell::kZsh), {"fish", Shell::kFish}}) {
    if (!Installed(name)) continue;
    Write("script", CompletionScript(kProgram, shell));
    EXPECT_THAT(Lines(std::string(name) + " -n ./script"), IsEmpty());
  }
  if (Installed("fish")) {
    EXPECT_THAT(Lines("fish --no-config -c 'source ./script; complete -C \"caisson exec --pro\"'"),
                ElementsAre("--profile\tthe sandbox's profile"));
  }
}

TEST_F(CompletionTest, HelpTextsAreQuotedForEachShell) {
  EXPECT_THAT(CompletionScript(kProgram, Shell::kZsh),
              testing::HasSubstr("memory \\[bytes\\]\\: all"));
  EXPECT_THAT(CompletionScript(kProgram, Shell::kZsh), testing::HasSubstr("sandbox'\\''s profile"));
  EXPECT_THAT(CompletionScript(kProgram, Shell::kFish), testing::HasSubstr("sandbox\\'s profile"));
}

TEST(Shells, AreKnownByName) {
  EXPECT_EQ(*ParseShell("zsh"), Shell::kZsh);
  EXPECT_FALSE(ParseShell("csh"));
  EXPECT_FALSE(ParseShell(""));
}

}  // namespace
}  // namespace caisson::cli
