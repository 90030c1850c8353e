// logs: what the commands of a session said, also after its end.
#include <unistd.h>

#include "base/text.h"
#include "cli/api_client.h"
#include "cli/output.h"
#include "cli/verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kOwn[] = {
    {.name = "follow",
     .short_name = 'f',
     .kind = ValueKind::kFlag,
     .help = "go on with what comes, until the session ends"},
    {.name = "process",
     .kind = ValueKind::kInt,
     .placeholder = "PROCESS",
     .min = 0,
     .help = "only this command, by its process_id"},
    {.name = "raw",
     .kind = ValueKind::kFlag,
     .section = "Output",
     .help = "only what the commands wrote, without marks"},
};
constexpr auto kOptions = Joined(kOwn, kJsonOption, kConnectionOptions);
constexpr Positional kWords[] = {
    {.name = "session", .kind = ValueKind::kSession, .help = "a session, by name or id"}};
constexpr Example kExamples[] = {{"caisson logs web", "all that is kept"},
                                 {"caisson logs -f web", "and what comes"},
                                 {"caisson logs --raw --process 3 web", "one command's output"}};

// Several lines of a guest's that cannot move the cursor of the terminal they are shown on.
std::string Lines(std::string_view text) {
  std::string lines;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines += OneLine(line);
    if (end < text.size()) lines += '\n';
    at = end + 1;
  }
  return lines;
}

// Entries of the log as text. A mark stands on a line of its own, wherever the output before it
// ended.
enum class Form { kMarked, kRaw };

class LogText {
 public:
  explicit LogText(Form form) : raw_(form == Form::kRaw) {}

  std::string Take(const json::Value& entry) {
    const std::string event = TextAt(entry, "event");
    if (event == "stdout" || event == "stderr") return Output(entry);
    if (raw_) return "";
    if (event == "gap") return Mark("some output is not kept any more");
    const std::string process = "[" + Shown(At(entry, "process")) + "] ";
    if (event == "started") return Mark(process + "$ " + OneLine(TextAt(entry, "command")));
    if (event != "ended") return "";
    std::string how = OneLine(TextAt(entry, "status")) + " " + Shown(At(entry, "exit_code"));
    const std::string reason = OneLine(TextAt(entry, "reason"));
    if (!reason.empty()) how += ": " + reason;
    return Mark(process + how);
  }

 private:
  std::string Output(const json::Value& entry) {
    const std::string data = TextAt(entry, "data");
    const json::Value& cut = At(entry, "cut");
    std::string text = raw_ ? data : Lines(data);
    if (!text.empty()) line_open_ = !text.ends_with('\n');
    if (!raw_ && cut.is_bool() && cut.as_bool()) text += Mark("the rest of it is not kept");
    return text;
  }
  std::string Mark(std::string_view text) {
    const std::string_view before = line_open_ ? "\n" : "";
    line_open_ = false;
    if (ColourOfOutput() == Colour::kYes) return Concat({before, "\x1b[2m", text, "\x1b[0m\n"});
    return Concat({before, text, "\n"});
  }

  const bool raw_;
  bool line_open_ = false;
};

Task<Result<int>> Logs(ApiClient* api, const Parsed* parsed) {
  const std::string session = *parsed->Get<std::string>("session");
  const auto process = parsed->Get<int64_t>("process");
  CAISSON_CO_ASSIGN(const auto lines,
                    co_await api->Lines(SessionTarget(session, "/logs") +
                                        (parsed->Flag("follow") ? "?follow=true" : "")));
  LogText text(parsed->Flag("raw") ? Form::kRaw : Form::kMarked);
  for (;;) {
    CAISSON_CO_ASSIGN(const auto entry, co_await lines->Next());
    if (!entry) co_return 0;
    if (process && CountAt(*entry, "process") != static_cast<uint64_t>(*process)) continue;
    if (parsed->Flag("json")) {
      CAISSON_CO_TRY(PrintJson(*entry));
    } else {
      CAISSON_CO_TRY(Print(text.Take(*entry)));
    }
  }
}

Result<int> Run(const Parsed& parsed) {
  if (parsed.Flag("raw") && parsed.Flag("json"))
    return Error(ErrorCode::kInvalidArgument, "--raw and --json contradict each other")
        .WithRemedy("give one of the two");
  return RunWithServer(parsed, Logs);
}

}  // namespace

Verb LogsVerb() {
  return {.name = "logs",
          .summary = "show what ran in a session and what it said, also after its end",
          .options = kOptions,
          .positionals = kWords,
          .examples = kExamples,
          .run = Run};
}

}  // namespace caisson::cli
