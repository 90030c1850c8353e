#include <algorithm>

#include "base/text.h"
#include "base/utf8.h"
#include "cli/configuration.h"

namespace caisson::cli {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view Trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

bool IsVariableName(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && letter(name[0]) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

// The value behind '=' of one line.
class ValueReader {
 public:
  ValueReader(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  Result<std::string> Run() {
    if (text_.starts_with('\'')) return Single();
    if (text_.starts_with('"')) return Double();
    const size_t comment = std::min(text_.find(" #"), text_.find("\t#"));
    return std::string(Trimmed(text_.substr(0, comment)));
  }

 private:
  Result<std::string> Single() {
    const size_t end = text_.find('\'', 1);
    if (end == std::string_view::npos) return NoEnd();
    CAISSON_TRY(CheckRest(end + 1));
    return std::string(text_.substr(1, end - 1));
  }

  Result<std::string> Double() {
    std::string value;
    for (size_t i = 1; i < text_.size(); ++i) {
      if (text_[i] == '"') {
        CAISSON_TRY(CheckRest(i + 1));
        return value;
      }
      if (text_[i] != '\\') {
        value += text_[i];
        continue;
      }
      constexpr std::string_view kLetters = "nt\"\\$";
      constexpr std::string_view kMeanings = "\n\t\"\\$";
      const size_t letter = ++i < text_.size() ? kLetters.find(text_[i]) : std::string_view::npos;
      if (letter == std::string_view::npos) {
        return Wrong("unknown escape", "use \\n, \\t, \\\", \\\\ or \\$, or single quotes");
      }
      value += kMeanings[letter];
    }
    return NoEnd();
  }

  Status CheckRest(size_t at) const {
    const std::string_view rest = Trimmed(text_.substr(at));
    if (rest.empty() || rest.starts_with('#')) return {};
    return Wrong("there is more after the quotes", "quote the whole value");
  }
  Error NoEnd() const { return Wrong("the quotes do not end", "end them on the same line"); }
  Error Wrong(std::string_view what, std::string remedy) const {
    return Error(ErrorCode::kInvalidArgument, Concat({where_, ": ", what}))
        .WithRemedy(std::move(remedy));
  }

  std::string_view text_;
  std::string_view where_;
};

}  // namespace

Result<std::vector<FileVariable>> ParseEnvFile(std::string_view text, std::string_view origin) {
  std::vector<FileVariable> variables;
  for (int line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view entry = Trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (entry.empty() || entry.starts_with('#')) continue;
    const std::string where = Concat({origin, ":", std::to_string(line)});
    if (entry.starts_with("export ")) entry = Trimmed(entry.substr(7));
    const size_t equals = entry.find('=');
    const std::string_view name = Trimmed(entry.substr(0, equals));
    if (equals == std::string_view::npos || !IsVariableName(name) || !IsUtf8(entry)) {
      return Error(ErrorCode::kInvalidArgument, Concat({where, ": the line is no NAME=VALUE"}))
          .WithRemedy("write NAME=VALUE, or # before a comment");
    }
    if (std::ranges::find(variables, name, &FileVariable::name) != variables.end()) {
      return Error(ErrorCode::kInvalidArgument,
                   Concat({where, ": ", name, " is given more than once"}))
          .WithRemedy("keep one of them");
    }
    CAISSON_ASSIGN(std::string value, ValueReader(Trimmed(entry.substr(equals + 1)), where).Run());
    variables.push_back({std::string(name), std::move(value), where});
  }
  return variables;
}

}  // namespace caisson::cli
