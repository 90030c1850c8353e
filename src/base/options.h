// The option table: one declarative row per option, one table per verb, from which the command
// line, environment variables, configuration file keys, --help, shell completion and the reference
// documentation all come.
//
// Theory of operation. A Program is a list of Verbs; a Verb is a name, tables of Options and
// Positionals, and a function to run. Parse() reads a command line against these tables. A value
// comes from the first of: command line, environment, a file of variables, configuration, the row's
// default. Every value is checked, whatever its source, before Parse() returns, so a Verb's
// function sees typed values within their bounds or is not called at all.
//
// Command lines: --name value, --name=value, -n value, -nvalue, -n=value, flags in clusters (-ab),
// `--` ends the options. A flag may be given a truth value: --stats=false. An argument that starts
// with '-' is a value only in the --name=value form (or when it is a negative number where a number
// belongs): `--memory --cpus 2` is a missing value, not a strange memory size. Names are never
// abbreviated. Once a positional of Arity::kRest has begun, all that follows belongs to it.
//
// Tables are constants: all views in them outlive what Parse() returns. No global state; every
// function is thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace caisson {

// What a value is, and the C++ type that Parsed gives it as.
enum class ValueKind {
  kFlag,      // bool
  kString,    // std::string
  kPath,      // std::string, not empty; completed as a file name
  kSession,   // std::string, not empty; completed as the name of a session
  kInt,       // int64_t
  kSize,      // uint64_t, bytes
  kDuration,  // std::chrono::nanoseconds
  kCpus,      // uint32_t, thousandths of a core
  kPercent,   // uint32_t, hundredths of a percent
  kEnum,      // std::string, one of `choices`
};

enum class Occurs { kOnce, kMany };

using OptionValue =
    std::variant<bool, int64_t, uint64_t, uint32_t, std::chrono::nanoseconds, std::string>;

struct Option {
  std::string_view name;  // "memory": --memory
  char short_name = 0;    // 'm': -m; 0 for none
  ValueKind kind = ValueKind::kString;
  Occurs occurs = Occurs::kOnce;
  std::string_view placeholder = "";   // in help: "SRC:DST[:ro]"; by default the kind's own
  std::string_view choices = "";       // kEnum: "default|strict"
  std::string_view default_text = "";  // read like a given value; empty: no value
  std::string_view env = "";           // environment variable; unset and empty are the same
  std::string_view config_key = "";    // key in the configuration file
  int64_t min = std::numeric_limits<int64_t>::min();  // bounds of kInt, kSize (bytes),
  int64_t max = std::numeric_limits<int64_t>::max();  // kDuration (ns), kCpus, kPercent
  Status (*check)(std::string_view text) = nullptr;   // further conditions on the text
  std::string_view section = "";                      // heading in help; "Options" by default
  std::string_view help;
};

enum class Arity {
  kOne,       // required
  kOptional,  // none or one
  // none or one: a word that `--` follows at once, so `exec web -- ls` has it and `exec -- ls` not
  kBeforeDashes,
  kMany,  // one or more
  kRest,  // none or more; options end where it begins, so `exec ls -l` needs no `--`
};

struct Positional {
  std::string_view name;  // "shell"
  Arity arity = Arity::kOne;
  ValueKind kind = ValueKind::kString;
  std::string_view choices = "";
  std::string_view help;
};

struct Example {
  std::string_view command;
  std::string_view meaning;
};

class Parsed;

struct Verb {
  std::string_view name;
  std::string_view summary;       // one line
  std::string_view details = "";  // paragraphs for the verb's own help
  std::span<const Option> options = {};
  std::span<const Positional> positionals = {};
  std::span<const Example> examples = {};
  // Runs the verb; gives the process' exit status. An Error is shown by the caller.
  Result<int> (*run)(const Parsed& parsed) = nullptr;
};

struct Program {
  std::string_view name;
  std::string_view version;
  std::string_view summary;
  std::span<const Verb> verbs;
  std::span<const Option> globals = {};  // accepted before and after the verb
  std::string_view footer = "";          // last paragraph of the program's help
};

// One value of a configuration file; `origin` names the place in messages ("caisson.yaml:12").
struct ConfigValue {
  std::string key;
  std::vector<std::string> values;  // several only for options that occur many times
  std::string origin;
};

// A variable that a file sets, as .env files do. The environment itself comes before it.
struct FileVariable {
  std::string name;
  std::string value;
  std::string origin;  // ".env:3"
};

// Where values come from besides the command line.
struct Surroundings {
  // The value of an environment variable; nothing when unset. Not called with unnamed variables.
  std::function<std::optional<std::string>(std::string_view)> env;
  std::span<const FileVariable> variables = {};
  std::span<const ConfigValue> config = {};

  static Surroundings OfThisProcess();  // the process' environment, no configuration
};

enum class ValueSource { kNone, kDefault, kConfig, kEnvFile, kEnvironment, kCommandLine };

// Typed values of one command line. Asking for a name that is in none of the verb's tables, or with
// another type than the row's kind gives, is a programming error and aborts.
class Parsed {
 public:
  // The value, or nothing when it was not given and has no default. The last one of many.
  template <typename T>
  std::optional<T> Get(std::string_view name) const {
    const auto& values = Find(name).values;
    if (values.empty()) return std::nullopt;
    return As<T>(name, values.back());
  }
  // Every value of an option or positional that occurs many times, in order.
  template <typename T>
  std::vector<T> All(std::string_view name) const {
    std::vector<T> all;
    for (const auto& value : Find(name).values) all.push_back(As<T>(name, value));
    return all;
  }
  bool Flag(std::string_view name) const { return Get<bool>(name).value_or(false); }
  ValueSource SourceOf(std::string_view name) const { return Find(name).source; }
  // Where the value stands: "--memory", "environment variable X", "caisson.yaml:12".
  std::string_view OriginOf(std::string_view name) const { return Find(name).origin; }
  // The values as they were written.
  const std::vector<std::string>& TextsOf(std::string_view name) const { return Find(name).texts; }
  // Given by the user in any way, rather than by default.
  bool Given(std::string_view name) const { return SourceOf(name) > ValueSource::kDefault; }

 private:
  friend class CommandLineParser;
  struct Entry {
    std::string_view name;
    ValueSource source = ValueSource::kNone;
    std::string origin;
    std::vector<std::string> texts;
    std::vector<OptionValue> values;
  };
  const Entry& Find(std::string_view name) const;
  template <typename T>
  static const T& As(std::string_view name, const OptionValue& value) {
    const T* typed = std::get_if<T>(&value);
    if (typed == nullptr) AbortOnMisuse(name, "is asked for with another type than its row's");
    return *typed;
  }
  [[noreturn]] static void AbortOnMisuse(std::string_view name, std::string_view what);

  std::vector<Entry> entries_;
};

enum class Request { kRun, kHelp, kVersion };

struct Invocation {
  Request request = Request::kRun;
  const Verb* verb = nullptr;  // set for kRun; for kHelp when a verb's help is wanted
  Parsed parsed;               // filled for kRun
};

// Reads `args` (without the program's own name). `--help`, `-h`, `help [VERB]`, `--version` and no
// argument at all are requests of their own. Errors are kInvalidArgument; the message names the
// flag, variable or file line, and the remedy what to write instead.
Result<Invocation> Parse(const Program& program, std::span<const std::string_view> args,
                         const Surroundings& surroundings);

// One value as the row describes it, bounds and checks included. The error does not name the
// option.
Result<OptionValue> ParseValue(const Option& option, std::string_view text);

// Every key of `config` belongs to some option of the program and stands there once.
Status CheckConfigKeys(const Program& program, std::span<const ConfigValue> config);

// The tables make sense: names are unique and well formed, defaults are valid values, choices stand
// where they belong, required positionals come first and kMany or kRest last. For tests.
Status CheckTables(const Program& program);

// "default|strict" as its parts.
std::vector<std::string_view> ChoicesOf(std::string_view choices);

}  // namespace caisson
