#include <algorithm>
#include <array>

#include "base/options.h"
#include "base/text.h"

namespace caisson {
namespace {

Error Wrong(std::string_view where, std::string_view what) {
  return Error(ErrorCode::kInternal, Concat({where, ": ", what}));
}

// Lower-case words joined by dashes.
bool IsName(std::string_view name) {
  const auto fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !name.empty() && name.front() != '-' && name.back() != '-' &&
         std::ranges::all_of(name, fine);
}

bool IsBounded(ValueKind kind) {
  constexpr std::array kKinds = {ValueKind::kInt, ValueKind::kSize, ValueKind::kDuration,
                                 ValueKind::kCpus, ValueKind::kPercent};
  return std::ranges::find(kKinds, kind) != kKinds.end();
}

Status CheckRow(const Option& option, std::string_view where) {
  const Option plain;
  if (!IsName(option.name)) return Wrong(where, "name is not lower-case words with dashes");
  if (option.name == "help" || option.short_name == 'h') return Wrong(where, "help is built in");
  if (option.name == "version") return Wrong(where, "version is built in");
  if (option.help.empty()) return Wrong(where, "no help text");
  if ((option.kind == ValueKind::kEnum) != !option.choices.empty()) {
    return Wrong(where, "choices belong to kEnum, and kEnum needs them");
  }
  const bool bounds = option.min != plain.min || option.max != plain.max;
  if (bounds && !IsBounded(option.kind)) return Wrong(where, "bounds on a kind that has none");
  if (option.min > option.max) return Wrong(where, "bounds leave no value");
  if (option.kind == ValueKind::kFlag && option.occurs == Occurs::kMany) {
    return Wrong(where, "a flag occurs once");
  }
  if (!option.default_text.empty()) {
    auto value = ParseValue(option, option.default_text);
    if (!value) return std::move(value).error().Because(Concat({where, ": default"}));
  }
  return {};
}

// Every row is fine by itself and shares no name, letter, variable or key with another. (A key or
// variable may be shared across verbs: the rows of one verb are what is compared.)
Status CheckOptions(std::span<const Option> globals, std::span<const Option> own,
                    std::string_view verb) {
  std::vector<const Option*> seen;
  for (const auto table : {globals, own}) {
    for (const Option& option : table) {
      const std::string where = Concat({verb, " --", option.name});
      CAISSON_TRY(CheckRow(option, where));
      for (const Option* other : seen) {
        const auto same = [](std::string_view a, std::string_view b) {
          return !a.empty() && a == b;
        };
        if (option.name == other->name) return Wrong(where, "name is taken");
        if (option.short_name != 0 && option.short_name == other->short_name) {
          return Wrong(where, "short name is taken");
        }
        if (same(option.env, other->env)) return Wrong(where, "variable is taken");
        if (same(option.config_key, other->config_key)) return Wrong(where, "key is taken");
      }
      seen.push_back(&option);
    }
  }
  return {};
}

Status CheckPositionals(const Verb& verb, std::span<const Option> globals) {
  bool optional_seen = false;
  for (size_t i = 0; i < verb.positionals.size(); ++i) {
    const Positional& positional = verb.positionals[i];
    const std::string where = Concat({verb.name, " ", positional.name});
    const auto clashes = [&](const auto& row) { return row.name == positional.name; };
    if (!IsName(positional.name)) return Wrong(where, "name is not lower-case words with dashes");
    if (positional.help.empty()) return Wrong(where, "no help text");
    if ((positional.kind == ValueKind::kEnum) != !positional.choices.empty()) {
      return Wrong(where, "choices belong to kEnum, and kEnum needs them");
    }
    if (positional.kind == ValueKind::kFlag) return Wrong(where, "a positional is not a flag");
    if (std::ranges::any_of(verb.options, clashes) || std::ranges::any_of(globals, clashes) ||
        std::ranges::any_of(verb.positionals.first(i), clashes)) {
      return Wrong(where, "name is taken");
    }
    const bool required = positional.arity == Arity::kOne || positional.arity == Arity::kMany;
    if (required && optional_seen) return Wrong(where, "required after an optional one");
    if (positional.arity >= Arity::kMany && i + 1 != verb.positionals.size()) {
      return Wrong(where, "only the last positional takes many");
    }
    optional_seen = optional_seen || !required;
  }
  return {};
}

}  // namespace

Status CheckTables(const Program& program) {
  CAISSON_TRY(CheckOptions(program.globals, {}, program.name));
  std::vector<std::string_view> names = {"help"};
  for (const Verb& verb : program.verbs) {
    if (!IsName(verb.name)) return Wrong(verb.name, "name is not lower-case words with dashes");
    if (std::ranges::find(names, verb.name) != names.end())
      return Wrong(verb.name, "name is taken");
    names.push_back(verb.name);
    if (verb.summary.empty()) return Wrong(verb.name, "no summary");
    if (verb.run == nullptr) return Wrong(verb.name, "no function to run");
    CAISSON_TRY(CheckOptions(program.globals, verb.options, verb.name));
    CAISSON_TRY(CheckPositionals(verb, program.globals));
  }
  return {};
}

Status CheckConfigKeys(const Program& program, std::span<const ConfigValue> config) {
  std::vector<std::string_view> keys;
  const auto collect = [&](std::span<const Option> options) {
    for (const Option& option : options) {
      if (!option.config_key.empty()) keys.push_back(option.config_key);
    }
  };
  collect(program.globals);
  for (const Verb& verb : program.verbs) collect(verb.options);
  for (size_t i = 0; i < config.size(); ++i) {
    const ConfigValue& value = config[i];
    const auto same = [&](const ConfigValue& other) { return other.key == value.key; };
    if (std::ranges::any_of(config.first(i), same)) {
      return Error(ErrorCode::kInvalidArgument,
                   Concat({value.origin, ": key ", Quoted(value.key), " is given more than once"}))
          .WithRemedy("keep one of them");
    }
    if (std::ranges::find(keys, value.key) != keys.end()) continue;
    const auto close = ClosestTo(value.key, keys);
    return Error(ErrorCode::kInvalidArgument,
                 Concat({value.origin, ": unknown key ", Quoted(value.key)}))
        .WithRemedy(close.empty() ? "remove it" : Concat({"did you mean ", close, "?"}));
  }
  return {};
}

}  // namespace caisson
