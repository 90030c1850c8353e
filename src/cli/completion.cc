#include "cli/completion.h"

#include <vector>

#include "base/text.h"

namespace caisson::cli {
namespace {

// `text` with every one of `special` preceded by a backslash.
std::string Escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.contains(c)) out += '\\';
    out += c;
  }
  return out;
}

// `text` in single quotes, as bash and zsh read them.
std::string ShellQuoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out += '\'';
}

std::string Words(std::string_view choices) {
  std::string out;
  for (const auto choice : ChoicesOf(choices)) out += Concat({out.empty() ? "" : " ", choice});
  return out;
}

std::vector<const Option*> OptionsOf(const Program& program, const Verb& verb) {
  std::vector<const Option*> all;
  for (const Option& option : verb.options) all.push_back(&option);
  for (const Option& option : program.globals) all.push_back(&option);
  return all;
}

std::string VerbNames(const Program& program) {
  std::string names = "help";
  for (const Verb& verb : program.verbs) names += Concat({" ", verb.name});
  return names;
}

// "--memory -m" of an option.
std::string BashNames(const Option& option) {
  std::string names = Concat({"--", option.name});
  if (option.short_name != 0) names += std::string{' ', '-', option.short_name};
  return names;
}

// What completes a value: "choices a b", "files", "sessions" or "none".
std::string BashSource(ValueKind kind, std::string_view choices) {
  if (kind == ValueKind::kEnum) return "choices " + Words(choices);
  if (kind == ValueKind::kSession) return "sessions";
  return kind == ValueKind::kPath ? "files" : "none";
}

// What completes each positional of a verb, as the elements of a bash array.
std::string BashPlaces(std::span<const Positional> positionals) {
  std::string places;
  for (const Positional& positional : positionals) {
    std::string source = BashSource(positional.kind, positional.choices);
    if (positional.arity == Arity::kRest) source = "command";
    if (positional.arity == Arity::kMany) source = "many " + source;
    if (positional.arity == Arity::kBeforeDashes) source = "before " + source;
    places += Concat({places.empty() ? "" : " ", ShellQuoted(source)});
  }
  return places;
}

// One arm of the case that tells a verb's option names, what completes their values, and places.
std::string BashArm(std::string_view pattern, std::string_view builtins,
                    const std::vector<const Option*>& options, std::string_view places) {
  std::string names(builtins);
  std::string values;
  for (const Option* option : options) {
    names += " " + BashNames(*option);
    if (option->kind == ValueKind::kFlag) continue;
    const std::string source = ShellQuoted(BashSource(option->kind, option->choices));
    values += Concat({"        [--", option->name, "]=", source, "\n"});
    if (option->short_name != 0) {
      values += Concat({"        [-", {&option->short_name, 1}, "]=", source, "\n"});
    }
  }
  return Concat({"    ", pattern, ")\n      options=", ShellQuoted(names), "\n      values=(\n",
                 values, "      )\n      places=(", places, ")\n      ;;\n"});
}

constexpr std::string_view kBashTail = R"bash(
# _NAME_offer SOURCE: fills COMPREPLY with what SOURCE offers for $current.
_NAME_offer() {
  case "$1" in
    choices\ *) COMPREPLY=($(compgen -W "${1#choices }" -- "$current")) ;;
    sessions) COMPREPLY=($(compgen -W "$(NAME ls --names 2>/dev/null)" -- "$current")) ;;
    files)
      compopt -o filenames 2>/dev/null
      local IFS=$'\n'
      COMPREPLY=($(compgen -f -- "$current"))
      ;;
    command)
      if (( COMP_CWORD == at )); then
        COMPREPLY=($(compgen -c -- "$current"))
      elif declare -F _command_offset >/dev/null; then
        _command_offset "$at"
      else
        _NAME_offer files
      fi
      ;;
  esac
}

_NAME() {
  local current="${COMP_WORDS[COMP_CWORD]}" verb="" word options at place=0 pending=""
  local -A values
  local -a places
  COMPREPLY=()
  _NAME_table ""
  # Walks the words before the cursor. bash makes several words of --name=value and of a:b.
  for (( at = 1; at < COMP_CWORD; at++ )); do
    word="${COMP_WORDS[at]}"
    if [[ "$word" == "=" && -n "$pending" ]]; then
      (( at + 1 < COMP_CWORD )) || continue
      pending=""
      (( at++ ))
    elif [[ "$word" == ":" ]]; then
      (( at++ ))
    elif [[ -n "$pending" ]]; then
      pending=""
    elif [[ "$word" == "--" && -n "$verb" ]]; then
      [[ "${places[place]:-}" != before* ]] || (( place++ ))
      (( at++ ))
      break
    elif [[ "$word" == -?* ]]; then
      [[ -z "${values[$word]+set}" ]] || pending="$word"
    elif [[ -z "$verb" ]]; then
      verb="$word"
      _NAME_table "$verb"
    elif [[ "${places[place]:-}" == before* && "${COMP_WORDS[at + 1]:-}" != "--" ]]; then
      (( place++ ))
      break
    elif [[ "${places[place]:-}" == command ]]; then
      break
    elif [[ "${places[place]:-}" != many* ]]; then
      (( place++ ))
    fi
  done
  (( at <= COMP_CWORD )) && [[ "$current" != ":" ]] || return 0
  if [[ -n "$pending" ]]; then
    [[ "$current" != "=" ]] || current=""
    _NAME_offer "${values[$pending]}"
  elif [[ "$current" == -* && "$at" -eq COMP_CWORD && "${COMP_WORDS[at - 1]}" != "--" ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  else
    word="${places[place]:-}"
    if [[ "$word" == before* ]]; then  # or what comes after it
      _NAME_offer "${places[place + 1]:-}"
      local -a others=("${COMPREPLY[@]}")
      _NAME_offer "${word#before }"
      COMPREPLY+=("${others[@]}")
    else
      _NAME_offer "${word#many }"
    fi
  fi
}

complete -F _NAME NAME
)bash";

std::string ReplaceName(std::string_view text, std::string_view name) {
  constexpr std::string_view kMark = "NAME";
  std::string out;
  for (size_t at = text.find(kMark); at != std::string_view::npos; at = text.find(kMark)) {
    out += Concat({text.substr(0, at), name});
    text.remove_prefix(at + kMark.size());
  }
  return out += text;
}

std::string BashScript(const Program& program) {
  std::string out = ReplaceName(
      "# bash completion for NAME. Load it with: source <(NAME completion bash)\n\n"
      "# _NAME_table VERB: sets options, values and places as VERB has them.\n"
      "_NAME_table() {\n  options='' values=() places=()\n  case \"$1\" in\n",
      program.name);
  const std::string verbs = ShellQuoted("choices " + VerbNames(program));
  std::vector<const Option*> globals;
  for (const Option& option : program.globals) globals.push_back(&option);
  out += BashArm("''", "--version --help -h", globals, verbs);
  for (const Verb& verb : program.verbs) {
    out += BashArm(verb.name, "--help -h", OptionsOf(program, verb), BashPlaces(verb.positionals));
  }
  out += BashArm("help", "--json", {}, verbs) + "  esac\n}\n";
  return out + ReplaceName(kBashTail, program.name);
}

// ":message:action" of a value, as _arguments reads it.
std::string ZshValue(std::string_view program, std::string_view name, ValueKind kind,
                     std::string_view choices) {
  const std::string message = Concat({":", name, ":"});
  if (kind == ValueKind::kEnum) return Concat({message, "(", Words(choices), ")"});
  if (kind == ValueKind::kSession) return Concat({message, "_", program, "_sessions"});
  return message + (kind == ValueKind::kPath ? "_files" : " ");
}

// The specs of one option, one per spelling, each naming the spellings it excludes.
std::string ZshOption(const Program& program, const Option& option) {
  const bool many = option.occurs == Occurs::kMany;
  const bool flag = option.kind == ValueKind::kFlag;
  const std::string long_name = Concat({"--", option.name});
  const std::string short_name = option.short_name == 0 ? "" : std::string{'-', option.short_name};
  const std::string tail =
      Concat({"[", Escaped(option.help, "[]:\\"), "]",
              flag ? "" : ZshValue(program.name, option.name, option.kind, option.choices)});
  std::string head = many ? "*" : "";
  if (!many && !short_name.empty()) head = Concat({"(", short_name, " ", long_name, ")"});
  std::string out =
      Concat({"        ", ShellQuoted(Concat({head, long_name, flag ? "" : "=", tail})), " \\\n"});
  if (!short_name.empty()) {
    out += Concat(
        {"        ", ShellQuoted(Concat({head, short_name, flag ? "" : "+", tail})), " \\\n"});
  }
  return out;
}

std::string ZshArm(const Program& program, const Verb& verb) {
  std::string out = Concat({"      ", verb.name, ")\n        _arguments -s -S \\\n"});
  for (const Option* option : OptionsOf(program, verb)) out += ZshOption(program, *option);
  size_t place = 1;
  for (const Positional& positional : verb.positionals) {
    std::string spec = ZshValue(program.name, positional.name, positional.kind, positional.choices);
    switch (positional.arity) {
      case Arity::kOne:
        spec = std::to_string(place) + spec;
        break;
      case Arity::kOptional:
        spec = std::to_string(place) + ":" + spec;
        break;
      case Arity::kBeforeDashes:
        spec = Concat(
            {"1::", positional.name, ":{ _", program.name, "_sessions; _command_names -e }"});
        break;
      case Arity::kMany:
        spec = "*" + spec;
        break;
      case Arity::kRest:
        spec = Concat({"*::", positional.name, ":_normal"});
        break;
    }
    out += Concat({"        ", ShellQuoted(spec), " \\\n"});
    ++place;
  }
  return out + "        '(-h --help)'{-h,--help}'[show help]'\n        ;;\n";
}

std::string ZshScript(const Program& program) {
  std::string out = ReplaceName(
      "#compdef NAME\n# zsh completion for NAME. Put it on your fpath as _NAME.\n\n"
      "_NAME_sessions() {\n  local -a names\n"
      "  names=(${(f)\"$(NAME ls --names 2>/dev/null)\"})\n  compadd -a names\n}\n\n"
      "_NAME() {\n  local curcontext=\"$curcontext\" state line\n  local -a verbs\n  verbs=(\n",
      program.name);
  for (const Verb& verb : program.verbs) {
    out += Concat({"    ", ShellQuoted(Concat({verb.name, ":", verb.summary})), "\n"});
  }
  out += "    'help:show help on a command'\n  )\n  _arguments -C -S \\\n";
  for (const Option& option : program.globals) out += ZshOption(program, option);
  out +=
      "        '(-h --help)'{-h,--help}'[show help]' \\\n        '--version[show the version]' \\\n"
      "        '1:command:->verb' '*::argument:->rest'\n"
      "  case $state in\n    verb) _describe command verbs ;;\n    rest)\n      case $words[1] "
      "in\n";
  for (const Verb& verb : program.verbs) out += ZshArm(program, verb);
  out += "      help) _describe command verbs ;;\n      esac\n      ;;\n  esac\n}\n\n";
  return out + ReplaceName(
                   "if [[ \"${funcstack[1]}\" == _NAME ]]; then\n  _NAME \"$@\"\n"
                   "else\n  compdef _NAME NAME\nfi\n",
                   program.name);
}

std::string FishQuoted(std::string_view text) { return Concat({"'", Escaped(text, "'\\"), "'"}); }

std::string FishOption(std::string_view prefix, const Option& option) {
  std::string out = Concat({prefix, " -l ", option.name});
  if (option.short_name != 0) out += Concat({" -s ", {&option.short_name, 1}});
  if (option.kind == ValueKind::kPath) {
    out += " -r -F";
  } else if (option.kind != ValueKind::kFlag) {
    out += " -x";
  }
  if (option.kind == ValueKind::kEnum) out += " -a " + FishQuoted(Words(option.choices));
  return Concat({out, " -d ", FishQuoted(option.help), "\n"});
}

std::string FishPositional(std::string_view program, std::string_view prefix,
                           const Positional& positional) {
  if (positional.kind == ValueKind::kSession) {
    return Concat({prefix, " -a '(", program, " ls --names 2>/dev/null)' -d ",
                   FishQuoted(positional.help), "\n"});
  }
  if (positional.arity == Arity::kRest) {
    return Concat({prefix, " -a '(__fish_complete_subcommand --fcs-skip=2)'\n"});
  }
  if (positional.kind == ValueKind::kEnum) {
    return Concat({prefix, " -a ", FishQuoted(Words(positional.choices)), " -d ",
                   FishQuoted(positional.help), "\n"});
  }
  return positional.kind == ValueKind::kPath ? Concat({prefix, " -F\n"}) : "";
}

std::string FishScript(const Program& program) {
  std::string out = ReplaceName(
      "# fish completion for NAME. Load it with: NAME completion fish | source\n\n"
      "complete -c NAME -f\ncomplete -c NAME -s h -l help -d 'show help'\n"
      "complete -c NAME -n __fish_use_subcommand -l version -d 'show the version'\n"
      "complete -c NAME -n __fish_use_subcommand -a help -d 'show help on a command'\n",
      program.name);
  for (const Option& option : program.globals) {
    out += FishOption(Concat({"complete -c ", program.name}), option);
  }
  for (const Verb& verb : program.verbs) {
    out += Concat({"\ncomplete -c ", program.name, " -n __fish_use_subcommand -a ", verb.name,
                   " -d ", FishQuoted(verb.summary), "\n"});
    const std::string prefix =
        Concat({"complete -c ", program.name, " -n '__fish_seen_subcommand_from ", verb.name, "'"});
    for (const Option& option : verb.options) out += FishOption(prefix, option);
    for (const Positional& positional : verb.positionals) {
      out += FishPositional(program.name, prefix, positional);
    }
  }
  return out + Concat({"\ncomplete -c ", program.name, " -n '__fish_seen_subcommand_from help' -a ",
                       FishQuoted(VerbNames(program)), "\n"});
}

}  // namespace

Result<Shell> ParseShell(std::string_view name) {
  if (name == "bash") return Shell::kBash;
  if (name == "zsh") return Shell::kZsh;
  if (name == "fish") return Shell::kFish;
  return Error(ErrorCode::kInvalidArgument, Quoted(name) + " is not a shell we know")
      .WithRemedy("the shells are bash, zsh and fish");
}

std::string CompletionScript(const Program& program, Shell shell) {
  switch (shell) {
    case Shell::kBash:
      return BashScript(program);
    case Shell::kZsh:
      return ZshScript(program);
    case Shell::kFish:
      return FishScript(program);
  }
  return "";
}

}  // namespace caisson::cli
