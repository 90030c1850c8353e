#include "base/options.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"
#include "base/units.h"

namespace caisson {
namespace {

Error Invalid(std::string message) {
  return Error(ErrorCode::kInvalidArgument, std::move(message));
}

Option AsOption(const Positional& positional) {
  return {.name = positional.name,
          .kind = positional.kind,
          .occurs = positional.arity >= Arity::kMany ? Occurs::kMany : Occurs::kOnce,
          .choices = positional.choices,
          .help = positional.help};
}

}  // namespace

Surroundings Surroundings::OfThisProcess() {
  return {.env = [](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    if (value == nullptr) return std::nullopt;
    return value;
  }};
}

const Parsed::Entry& Parsed::Find(std::string_view name) const {
  const auto entry = std::ranges::find(entries_, name, &Entry::name);
  if (entry == entries_.end()) AbortOnMisuse(name, "is in no table of this verb");
  return *entry;
}

void Parsed::AbortOnMisuse(std::string_view name, std::string_view what) {
  std::fprintf(stderr, "option %.*s %.*s\n", static_cast<int>(name.size()), name.data(),
               static_cast<int>(what.size()), what.data());
  std::abort();
}

// Reads one command line: options and positionals in order, then environment, configuration and
// defaults for what is missing. Rows are kept in `rows_`, their values at the same index of
// `parsed_.entries_`.
class CommandLineParser {
 public:
  CommandLineParser(const Program& program, std::span<const std::string_view> args,
                    const Surroundings& surroundings)
      : program_(program), args_(args), surroundings_(surroundings) {
    AddRows(program.globals);
  }

  Result<Invocation> Run() {
    if (args_.empty()) return Invocation{.request = Request::kHelp};
    while (next_ < args_.size()) {
      CAISSON_TRY(Step());
      if (request_ != Request::kRun) return Invocation{.request = request_, .verb = verb_};
    }
    if (verb_ == nullptr) return Invalid("no command given").WithRemedy(SeeHelp());
    CAISSON_TRY(CheckPositionalCount());
    for (size_t row = 0; row < rows_.size(); ++row) {
      if (parsed_.entries_[row].values.empty()) CAISSON_TRY(FillIn(row));
    }
    return Invocation{.verb = verb_, .parsed = std::move(parsed_)};
  }

 private:
  static constexpr size_t kNoRow = static_cast<size_t>(-1);

  void AddRows(std::span<const Option> options) {
    for (const Option& option : options) AddRow(option);
  }
  void AddRow(const Option& option) {
    rows_.push_back(option);
    parsed_.entries_.push_back({.name = option.name});
  }

  // Takes the next argument and what belongs to it.
  Status Step() {
    const std::string_view arg = args_[next_++];
    if (only_positionals_ || arg == "-" || !arg.starts_with('-')) return TakeWord(arg);
    if (arg == "--") {
      if (verb_ == nullptr) return Invalid("no command before `--`").WithRemedy(SeeHelp());
      only_positionals_ = true;
      return {};
    }
    return arg.starts_with("--") ? TakeLong(arg.substr(2)) : TakeShort(arg.substr(1));
  }

  Status TakeWord(std::string_view word) {
    if (verb_ == nullptr) return TakeVerb(word);
    if (positional_ < verb_->positionals.size() &&
        verb_->positionals[positional_].arity == Arity::kBeforeDashes &&
        (only_positionals_ || next_ == args_.size() || args_[next_] != "--")) {
      ++positional_;
    }
    if (positional_ == verb_->positionals.size()) return TooMany(word);
    const Positional& positional = verb_->positionals[positional_];
    const size_t row = first_positional_row_ + positional_;
    if (positional.arity == Arity::kRest) only_positionals_ = true;
    if (positional.arity < Arity::kMany) ++positional_;
    return Store(row, word, Shown(positional));
  }

  Status TakeVerb(std::string_view word) {
    if (word == "help") return TakeHelp();
    std::vector<std::string_view> names = {"help"};
    for (const Verb& verb : program_.verbs) {
      names.push_back(verb.name);
      if (verb.name == word) verb_ = &verb;
    }
    if (verb_ == nullptr) {
      const auto close = ClosestTo(word, names);
      return Invalid(Quoted(word) + " is not a command")
          .WithRemedy(close.empty() ? Concat({"see `", program_.name, " --help` for the commands"})
                                    : Concat({"did you mean `", program_.name, " ", close, "`?"}));
    }
    AddRows(verb_->options);
    first_positional_row_ = rows_.size();
    for (const Positional& positional : verb_->positionals) AddRow(AsOption(positional));
    return {};
  }

  // `help [VERB]`. Rows are not needed any more.
  Status TakeHelp() {
    const size_t topic = next_;
    next_ = args_.size();
    if (topic < args_.size() && !args_[topic].starts_with('-')) CAISSON_TRY(TakeVerb(args_[topic]));
    request_ = Request::kHelp;
    return {};
  }

  Status TakeLong(std::string_view text) {
    const size_t equals = text.find('=');
    const std::string_view name = text.substr(0, equals);
    std::optional<std::string_view> attached;
    if (equals != std::string_view::npos) attached = text.substr(equals + 1);
    if (name == "help") return Ask(Request::kHelp);
    if (!attached && name == "version" && verb_ == nullptr) return Ask(Request::kVersion);
    const size_t row = FindRow([&](const Option& option) { return option.name == name; });
    if (row == kNoRow) return Unknown(name);
    return TakeOption(row, Concat({"--", name}), attached);
  }

  Status TakeShort(std::string_view cluster) {
    while (!cluster.empty()) {
      const char letter = cluster[0];
      cluster.remove_prefix(1);
      if (letter == 'h') return Ask(Request::kHelp);
      const size_t row = FindRow([&](const Option& option) { return option.short_name == letter; });
      if (row == kNoRow) {
        return Invalid(Concat({"unknown option ", Quoted(std::string{'-', letter})}))
            .WithRemedy(SeeHelp());
      }
      const std::string shown = {'-', letter};
      if (rows_[row].kind == ValueKind::kFlag && !cluster.starts_with('=')) {
        CAISSON_TRY(TakeOption(row, shown, std::nullopt));
        continue;
      }
      if (cluster.empty()) return TakeOption(row, shown, std::nullopt);
      if (cluster.starts_with('=')) cluster.remove_prefix(1);
      return TakeOption(row, shown, cluster);
    }
    return {};
  }

  Status TakeOption(size_t row, std::string_view shown, std::optional<std::string_view> attached) {
    const Option& option = rows_[row];
    if (option.occurs == Occurs::kOnce && !parsed_.entries_[row].values.empty()) {
      return Invalid(Concat({shown, " is given more than once"}))
          .WithRemedy(Concat({"keep one --", option.name}));
    }
    if (attached) return Store(row, *attached, shown);
    if (option.kind == ValueKind::kFlag) return Store(row, "true", shown);
    if (next_ < args_.size() && LooksLikeValue(option, args_[next_])) {
      return Store(row, args_[next_++], shown);
    }
    std::string remedy = Concat({"write --", option.name, "=VALUE"});
    if (next_ < args_.size()) {
      remedy = Concat({"if ", Quoted(args_[next_]),
                       " is the value, write it with an equals sign: --", option.name, "=…"});
    }
    return Invalid(Concat({shown, " needs a value"})).WithRemedy(std::move(remedy));
  }

  static bool LooksLikeValue(const Option& option, std::string_view arg) {
    if (!arg.starts_with('-') || arg == "-") return true;
    return option.kind == ValueKind::kInt && ParseInteger(arg).has_value();
  }

  Status Ask(Request request) {
    request_ = request;
    return {};
  }

  Status Store(size_t row, std::string_view text, std::string_view shown) {
    return Store(row, text, shown, ValueSource::kCommandLine);
  }
  Status Store(size_t row, std::string_view text, std::string_view shown, ValueSource source) {
    auto value = ParseValue(rows_[row], text);
    if (!value) return std::move(value).error().Because(shown);
    Parsed::Entry& entry = parsed_.entries_[row];
    entry.source = source;
    entry.origin = shown;
    entry.texts.emplace_back(text);
    entry.values.push_back(*std::move(value));
    return {};
  }

  // Environment, then the file of variables, then configuration, then default.
  Status FillIn(size_t row) {
    const Option& option = rows_[row];
    if (!option.env.empty() && surroundings_.env) {
      const auto value = surroundings_.env(option.env);
      if (value && !value->empty()) {
        return FillFromVariable(row, *value, Concat({"environment variable ", option.env}),
                                ValueSource::kEnvironment);
      }
    }
    for (const FileVariable& variable : surroundings_.variables) {
      if (option.env.empty() || variable.name != option.env || variable.value.empty()) continue;
      CAISSON_TRY(FillFromVariable(row, variable.value,
                                   Concat({variable.origin, ": ", variable.name}),
                                   ValueSource::kEnvFile));
      parsed_.entries_[row].origin = variable.origin;
      return {};
    }
    for (const ConfigValue& config : surroundings_.config) {
      if (option.config_key.empty() || config.key != option.config_key) continue;
      const std::string shown = Concat({config.origin, ": ", config.key});
      if (config.values.size() != 1 && option.occurs == Occurs::kOnce) {
        return Invalid(Concat({shown, " is a list"})).WithRemedy("give one value");
      }
      for (const auto& text : config.values) {
        CAISSON_TRY(Store(row, text, shown, ValueSource::kConfig));
      }
      parsed_.entries_[row].source = ValueSource::kConfig;
      parsed_.entries_[row].origin = config.origin;
      return {};
    }
    if (option.default_text.empty()) return {};
    const std::string shown = Concat({"default of --", option.name});
    return Store(row, option.default_text, shown, ValueSource::kDefault);
  }

  // A variable for an option that occurs many times holds values separated by commas.
  Status FillFromVariable(size_t row, std::string_view text, std::string_view shown,
                          ValueSource source) {
    const bool many = rows_[row].occurs == Occurs::kMany;
    for (;;) {
      const size_t end = many ? std::min(text.find(','), text.size()) : text.size();
      CAISSON_TRY(Store(row, text.substr(0, end), shown, source));
      if (end == text.size()) return {};
      text.remove_prefix(end + 1);
    }
  }

  Status CheckPositionalCount() {
    if (positional_ == verb_->positionals.size()) return {};
    const Positional& missing = verb_->positionals[positional_];
    const bool required = missing.arity == Arity::kOne || missing.arity == Arity::kMany;
    const size_t row = first_positional_row_ + positional_;
    if (!required || !parsed_.entries_[row].values.empty()) return {};
    std::string remedy = std::string(missing.help);
    if (!missing.choices.empty()) remedy = Concat({"give one of ", missing.choices});
    return Invalid(Concat({Shown(missing), " is missing"})).WithRemedy(std::move(remedy));
  }

  Error TooMany(std::string_view word) {
    return Invalid(Concat({"unexpected argument ", Quoted(word)})).WithRemedy(SeeHelp());
  }

  Error Unknown(std::string_view name) {
    std::vector<std::string_view> names = {"help"};
    for (size_t row = 0; row < rows_.size() && row < first_positional_row_; ++row) {
      names.push_back(rows_[row].name);
    }
    const auto close = ClosestTo(name, names);
    return Invalid("unknown option " + Quoted(Concat({"--", name})))
        .WithRemedy(close.empty() ? SeeHelp() : Concat({"did you mean --", close, "?"}));
  }

  std::string SeeHelp() const {
    return Concat({"see `", program_.name, verb_ == nullptr ? "" : " ",
                   verb_ == nullptr ? "" : verb_->name, " --help`"});
  }

  static std::string Shown(const Positional& positional) {
    std::string shown;
    for (const char c : positional.name) shown += c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c;
    return shown;
  }

  template <typename Match>
  size_t FindRow(Match match) const {
    const size_t end = std::min(rows_.size(), first_positional_row_);
    for (size_t row = 0; row < end; ++row) {
      if (match(rows_[row])) return row;
    }
    return kNoRow;
  }

  const Program& program_;
  std::span<const std::string_view> args_;
  const Surroundings& surroundings_;
  size_t next_ = 0;
  const Verb* verb_ = nullptr;
  std::vector<Option> rows_;
  size_t first_positional_row_ = kNoRow;
  size_t positional_ = 0;  // index of the positional the next word belongs to
  bool only_positionals_ = false;
  Request request_ = Request::kRun;
  Parsed parsed_;
};

Result<Invocation> Parse(const Program& program, std::span<const std::string_view> args,
                         const Surroundings& surroundings) {
  return CommandLineParser(program, args, surroundings).Run();
}

}  // namespace caisson
