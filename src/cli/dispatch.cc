#include "cli/dispatch.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"
#include "cli/configuration.h"
#include "cli/help.h"

namespace caisson::cli {
namespace {

// Control characters other than newline become '?': messages quote what users and guests wrote.
std::string Harmless(std::string_view text) {
  std::string safe(text);
  for (char& c : safe) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7F) c = '?';
  }
  return safe;
}

int Fail(const Program& program, const Verb* verb, const Error& error) {
  const std::string shown = ShowError(program, verb, error);
  std::fwrite(shown.data(), 1, shown.size(), stderr);
  return InfoOf(error.code()).exit_code;
}

int Print(const Program& program, const Verb* verb, std::string_view text) {
  if (WriteOut(text)) return 0;
  return Fail(program, verb, Error::FromErrno("cannot write to standard output"));
}

// The verb that `args` is about, for the prefix of a parse error.
const Verb* VerbIn(const Program& program, std::span<const std::string_view> args) {
  for (const auto arg : args) {
    const auto verb = std::ranges::find(program.verbs, arg, &Verb::name);
    if (verb != program.verbs.end()) return &*verb;
    if (!arg.starts_with('-')) return nullptr;
  }
  return nullptr;
}

}  // namespace

bool WriteOut(std::string_view text) {
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
         std::fflush(stdout) == 0;
}

std::string ShowError(const Program& program, const Verb* verb, const Error& error) {
  std::string out(program.name);
  if (verb != nullptr) out += Concat({" ", verb->name});
  out += Concat({": ", Harmless(error.message()), "\n"});
  if (!error.remedy().empty()) out += Concat({"  ", Harmless(error.remedy()), "\n"});
  return out;
}

int Dispatch(const Program& program, std::span<const std::string_view> args,
             const Surroundings& surroundings) {
  const auto configuration = LoadConfiguration(program, args, surroundings);
  if (!configuration) return Fail(program, VerbIn(program, args), configuration.error());
  auto invocation = Parse(program, args, configuration->Around(surroundings));
  if (!invocation) return Fail(program, VerbIn(program, args), invocation.error());
  const Verb* verb = invocation->verb;
  switch (invocation->request) {
    case Request::kVersion:
      return Print(program, verb, Concat({program.name, " ", program.version, "\n"}));
    case Request::kHelp:
      if (args.size() > 1 && args.front() == "help" && args.back() == "--json") {
        return Print(program, verb, DescribeAsJson(program));
      }
      return Print(program, verb, verb ? VerbHelp(program, *verb) : ProgramHelp(program));
    case Request::kRun:
      break;
  }
  const auto status = verb->run(invocation->parsed);
  return status ? *status : Fail(program, verb, status.error());
}

}  // namespace caisson::cli
