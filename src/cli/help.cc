#include "cli/help.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace caisson::cli {
namespace {

constexpr size_t kWidth = 100;
constexpr size_t kMaxLeft = 30;  // wider left columns get a line of their own

struct Row {
  std::string left;
  std::string right;
};

struct Section {
  std::string title;
  std::vector<Row> rows;
};

// The sections one after another, their rows in two columns that line up over all of them, the
// right one wrapped.
std::string Columns(const std::vector<Section>& sections) {
  size_t left = 0;
  for (const Section& section : sections) {
    for (const Row& row : section.rows) {
      const size_t width = DisplayWidth(row.left);
      if (width <= kMaxLeft) left = std::max(left, width);
    }
  }
  const size_t indent = 2 + left + 2;
  std::string out;
  for (const Section& section : sections) {
    out += Concat({"\n", section.title, ":\n"});
    for (const Row& row : section.rows) {
      const size_t width = DisplayWidth(row.left);
      out += Concat({"  ", row.left});
      if (width > left) {
        out += '\n';
        out.append(indent, ' ');
      } else {
        out.append(left - width + 2, ' ');
      }
      out += Wrap(row.right, indent, kWidth) + "\n";
    }
  }
  return out;
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

std::string ShownPositional(const Positional& positional) {
  std::string name = Upper(positional.name);
  if (positional.arity >= Arity::kMany) name += "...";
  if (positional.arity == Arity::kBeforeDashes) name += " --";
  const bool required = positional.arity == Arity::kOne || positional.arity == Arity::kMany;
  return required ? name : Concat({"[", name, "]"});
}

Row OptionRow(const Option& option) {
  Row row;
  row.left = option.short_name == 0 ? "    " : std::string{'-', option.short_name, ',', ' '};
  row.left += Concat({"--", option.name});
  if (option.kind != ValueKind::kFlag) row.left += " " + Placeholder(option);
  std::string notes;
  const auto note = [&](std::string_view name, std::string_view value) {
    if (!value.empty()) notes += Concat({notes.empty() ? "" : "; ", name, value});
  };
  if (option.occurs == Occurs::kMany) note("can be repeated", " ");
  note("default ", option.default_text);
  note("env ", option.env);
  if (!notes.empty() && notes.back() == ' ') notes.pop_back();
  row.right = std::string(option.help);
  if (!notes.empty()) row.right += Concat({" [", notes, "]"});
  return row;
}

// Options under their headings, in the order in which headings first appear, and the help option
// at the end of the last one.
std::vector<Section> OptionSections(const Program& program, std::span<const Option> options) {
  std::vector<Section> sections;
  const auto add = [&](const Option& option, std::string_view fallback) {
    const std::string_view title = option.section.empty() ? fallback : option.section;
    auto section = std::ranges::find(sections, title, &Section::title);
    if (section == sections.end()) {
      section = sections.insert(section, Section{std::string(title), {}});
    }
    section->rows.push_back(OptionRow(option));
  };
  for (const Option& option : options) add(option, "Options");
  for (const Option& option : program.globals) add(option, "Global options");
  if (program.globals.empty()) sections.push_back({"Global options", {}});
  sections.back().rows.push_back({"-h, --help", "show this help"});
  return sections;
}

// Just enough JSON to describe tables: objects and lists are built in order, commas kept straight.
class JsonText {
 public:
  JsonText& Open(char bracket) { return Comma(), text_ += bracket, fresh_ = true, *this; }
  JsonText& Close(char bracket) { return text_ += bracket, fresh_ = false, *this; }
  JsonText& Key(std::string_view key) {
    String(key);
    text_ += ':';
    fresh_ = true;
    return *this;
  }
  JsonText& Raw(std::string_view value) { return Comma(), text_ += value, *this; }
  JsonText& String(std::string_view value) {
    constexpr std::string_view kHex = "0123456789abcdef";
    Comma();
    text_ += '"';
    for (const char c : value) {
      if (c == '"' || c == '\\') {
        text_ += {'\\', c};
      } else if (static_cast<unsigned char>(c) < 0x20) {
        text_ += Concat({"\\u00", {&kHex[static_cast<size_t>(c) >> 4], 1}, {&kHex[c & 15], 1}});
      } else {
        text_ += c;
      }
    }
    text_ += '"';
    return *this;
  }
  // "key": "value", left out when empty.
  JsonText& Member(std::string_view key, std::string_view value) {
    return value.empty() ? *this : Key(key).String(value);
  }
  std::string Take() && { return std::move(text_); }

 private:
  void Comma() {
    if (!fresh_) text_ += ',';
    fresh_ = false;
  }
  std::string text_;
  bool fresh_ = true;
};

void DescribeChoices(JsonText& json, std::string_view choices) {
  if (choices.empty()) return;
  json.Key("choices").Open('[');
  for (const auto choice : ChoicesOf(choices)) json.String(choice);
  json.Close(']');
}

void DescribeOptions(JsonText& json, std::span<const Option> options) {
  const Option plain;
  json.Key("options").Open('[');
  for (const Option& option : options) {
    json.Open('{').Member("name", option.name);
    if (option.short_name != 0) json.Member("short", {&option.short_name, 1});
    json.Member("kind", KindName(option.kind)).Member("placeholder", Placeholder(option));
    json.Key("repeatable").Raw(option.occurs == Occurs::kMany ? "true" : "false");
    DescribeChoices(json, option.choices);
    json.Member("default", option.default_text).Member("env", option.env);
    json.Member("config", option.config_key).Member("section", option.section);
    if (option.min != plain.min) json.Key("min").Raw(std::to_string(option.min));
    if (option.max != plain.max) json.Key("max").Raw(std::to_string(option.max));
    json.Member("help", option.help).Close('}');
  }
  json.Close(']');
}

std::string_view ArityName(Arity arity) {
  switch (arity) {
    case Arity::kOne:
      return "one";
    case Arity::kOptional:
      return "optional";
    case Arity::kBeforeDashes:
      return "before-dashes";
    case Arity::kMany:
      return "many";
    case Arity::kRest:
      return "rest";
  }
  return "one";
}

void DescribeVerb(JsonText& json, const Program& program, const Verb& verb) {
  json.Open('{').Member("name", verb.name).Member("summary", verb.summary);
  json.Member("details", verb.details).Member("usage", Usage(program, verb));
  DescribeOptions(json, verb.options);
  json.Key("positionals").Open('[');
  for (const Positional& positional : verb.positionals) {
    json.Open('{').Member("name", positional.name).Member("arity", ArityName(positional.arity));
    json.Member("kind", KindName(positional.kind));
    DescribeChoices(json, positional.choices);
    json.Member("help", positional.help).Close('}');
  }
  json.Close(']').Key("examples").Open('[');
  for (const Example& example : verb.examples) {
    json.Open('{').Member("command", example.command).Member("meaning", example.meaning).Close('}');
  }
  json.Close(']').Close('}');
}

}  // namespace

std::string Placeholder(const Option& option) {
  if (!option.placeholder.empty()) return std::string(option.placeholder);
  switch (option.kind) {
    case ValueKind::kFlag:
      return "";
    case ValueKind::kEnum:
      return std::string(option.choices);
    case ValueKind::kString:
      return "TEXT";
    case ValueKind::kInt:
      return "N";
    default:
      return Upper(KindName(option.kind));
  }
}

std::string_view KindName(ValueKind kind) {
  switch (kind) {
    case ValueKind::kFlag:
      return "flag";
    case ValueKind::kString:
      return "string";
    case ValueKind::kPath:
      return "path";
    case ValueKind::kSession:
      return "session";
    case ValueKind::kInt:
      return "int";
    case ValueKind::kSize:
      return "size";
    case ValueKind::kDuration:
      return "duration";
    case ValueKind::kCpus:
      return "cpus";
    case ValueKind::kPercent:
      return "percent";
    case ValueKind::kEnum:
      return "enum";
  }
  return "string";
}

std::string Usage(const Program& program, const Verb& verb) {
  std::string usage = Concat({program.name, " ", verb.name, " [OPTIONS]"});
  bool dashes = false;  // shown already
  for (const Positional& positional : verb.positionals) {
    dashes = dashes || positional.arity == Arity::kBeforeDashes;
    if (positional.arity == Arity::kRest && !dashes) usage += " [--]";
    usage += " " + ShownPositional(positional);
  }
  return usage;
}

std::string ProgramHelp(const Program& program) {
  Section verbs = {"Commands", {}};
  for (const Verb& verb : program.verbs) {
    verbs.rows.push_back({std::string(verb.name), std::string(verb.summary)});
  }
  verbs.rows.push_back({"help", "show help on a command"});
  auto sections = OptionSections(program, {});
  sections.back().rows.push_back({"    --version", "show the version"});
  std::string out = Wrap(Concat({program.name, ": ", program.summary}), 0, kWidth);
  out += Concat({"\n\nUsage: ", program.name, " COMMAND [OPTIONS]\n"});
  out += Columns({verbs}) + Columns(sections);
  out += Concat({"\n`", program.name, " COMMAND --help` says more about a command.\n"});
  if (!program.footer.empty()) out += Wrap(program.footer, 0, kWidth) + "\n";
  return out;
}

std::string VerbHelp(const Program& program, const Verb& verb) {
  std::string out =
      "Usage: " + Usage(program, verb) + "\n\n" + Wrap(verb.summary, 0, kWidth) + "\n";
  if (!verb.details.empty()) out += "\n" + Wrap(verb.details, 0, kWidth) + "\n";
  auto sections = OptionSections(program, verb.options);
  if (!verb.positionals.empty()) {
    Section arguments = {"Arguments", {}};
    for (const Positional& positional : verb.positionals) {
      std::string help(positional.help);
      if (!positional.choices.empty()) help += Concat({" [", positional.choices, "]"});
      arguments.rows.push_back({Upper(positional.name), std::move(help)});
    }
    sections.insert(sections.begin(), std::move(arguments));
  }
  out += Columns(sections);
  if (!verb.examples.empty()) out += "\nExamples:\n";
  for (const Example& example : verb.examples) {
    out += Concat({"  # ", example.meaning, "\n  ", example.command, "\n"});
  }
  return out;
}

std::string DescribeAsJson(const Program& program) {
  JsonText json;
  json.Open('{').Member("program", program.name).Member("version", program.version);
  json.Member("summary", program.summary);
  DescribeOptions(json, program.globals);
  json.Key("verbs").Open('[');
  for (const Verb& verb : program.verbs) DescribeVerb(json, program, verb);
  json.Close(']').Key("errors").Open('[');
  for (const ErrorInfo& error : ErrorTable()) {
    json.Open('{').Member("name", error.name).Member("meaning", error.meaning);
    json.Key("http_status").Raw(std::to_string(error.http_status));
    json.Key("retryable").Raw(error.retryable ? "true" : "false");
    json.Key("exit_code").Raw(std::to_string(error.exit_code)).Close('}');
  }
  json.Close(']').Close('}');
  return std::move(json).Take() + "\n";
}

}  // namespace caisson::cli
