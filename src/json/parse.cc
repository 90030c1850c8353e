#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "base/text.h"
#include "base/utf8.h"
#include "json/json.h"

namespace caisson::json {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

void AppendUtf8(std::string& out, uint32_t point) {
  const auto put = [&](uint32_t byte) { out += static_cast<char>(byte); };
  if (point < 0x80) return put(point);
  if (point < 0x800) {
    put(0xc0 | point >> 6);
  } else if (point < 0x10000) {
    put(0xe0 | point >> 12);
    put(0x80 | (point >> 6 & 0x3f));
  } else {
    put(0xf0 | point >> 18);
    put(0x80 | (point >> 12 & 0x3f));
    put(0x80 | (point >> 6 & 0x3f));
  }
  put(0x80 | (point & 0x3f));
}

// Recursive descent over one text, whose depth the limits bound.
class Parser {
 public:
  Parser(std::string_view text, ParseLimits limits) : text_(text), limits_(limits) {}

  Result<Value> Run() {
    if (text_.size() > limits_.max_bytes) {
      return Error(ErrorCode::kInvalidArgument,
                   "the JSON text has " + std::to_string(text_.size()) + " bytes, but " +
                       std::to_string(limits_.max_bytes) + " are the most allowed")
          .WithRemedy("send less, or send it in parts");
    }
    SkipSpace();
    CAISSON_ASSIGN(Value value, ParseValue(0));
    SkipSpace();
    if (at_ < text_.size()) return Wrong("there is more after the end of the value");
    return value;
  }

 private:
  Result<Value> ParseValue(size_t depth) {
    if (at_ == text_.size()) return Wrong("the text ends where a value belongs");
    switch (text_[at_]) {
      case '{':
        return ParseObject(depth + 1);
      case '[':
        return ParseArray(depth + 1);
      case '"': {
        CAISSON_TRY(ParseString());
        return Value(string_);
      }
      case 't':
        return ParseWord("true", true);
      case 'f':
        return ParseWord("false", false);
      case 'n':
        return ParseWord("null", nullptr);
      default:
        return ParseNumber();
    }
  }

  Result<Value> ParseObject(size_t depth) {
    if (depth > limits_.max_depth) return TooDeep();
    ++at_;
    Object object;
    SkipSpace();
    if (TakeIf('}')) return Value(std::move(object));
    for (;;) {
      if (Peek() != '"') return Wrong("expected a name in double quotes");
      const size_t name_at = at_;
      CAISSON_TRY(ParseString());
      const std::string name = string_;
      if (object.contains(name)) return Wrong("duplicate name " + Quoted(name), name_at);
      SkipSpace();
      if (!TakeIf(':')) return Wrong("expected ':' after the name " + Quoted(name));
      SkipSpace();
      CAISSON_ASSIGN(Value value, ParseValue(depth));
      object.emplace(name, std::move(value));
      SkipSpace();
      if (TakeIf('}')) return Value(std::move(object));
      if (!TakeIf(',')) return Wrong("expected ',' or '}' after a member");
      SkipSpace();
    }
  }

  Result<Value> ParseArray(size_t depth) {
    if (depth > limits_.max_depth) return TooDeep();
    ++at_;
    Array array;
    SkipSpace();
    if (TakeIf(']')) return Value(std::move(array));
    for (;;) {
      CAISSON_ASSIGN(Value value, ParseValue(depth));
      array.push_back(std::move(value));
      SkipSpace();
      if (TakeIf(']')) return Value(std::move(array));
      if (!TakeIf(',')) return Wrong("expected ',' or ']' after an element");
      SkipSpace();
    }
  }

  template <typename T>
  Result<Value> ParseWord(std::string_view word, T value) {
    if (!text_.substr(at_).starts_with(word)) return Wrong("expected a value");
    at_ += word.size();
    return Value(value);
  }

  Result<Value> ParseNumber() {
    const size_t start = at_;
    TakeIf('-');
    if (!IsDigit(Peek())) {
      at_ = start;
      return Wrong("expected a value");
    }
    if (TakeIf('0')) {
      if (IsDigit(Peek())) return Wrong("a number starts with a needless 0", start);
    } else {
      SkipDigits();
    }
    bool whole = true;
    if (TakeIf('.')) {
      whole = false;
      if (!SkipDigits()) return Wrong("a digit belongs after the decimal point");
    }
    if (Peek() == 'e' || Peek() == 'E') {
      whole = false;
      ++at_;
      if (Peek() == '+' || Peek() == '-') ++at_;
      if (!SkipDigits()) return Wrong("a digit belongs into the exponent");
    }
    return NumberOf(text_.substr(start, at_ - start), whole ? Form::kWhole : Form::kReal, start);
  }

  enum class Form { kWhole, kReal };

  Result<Value> NumberOf(std::string_view text, Form form, size_t start) const {
    const char* end = text.data() + text.size();
    if (form == Form::kWhole && text != "-0") {
      int64_t number = 0;
      if (std::from_chars(text.data(), end, number).ec == std::errc()) return Value(number);
      uint64_t large = 0;
      if (std::from_chars(text.data(), end, large).ec == std::errc()) return Value(large);
    }
    double number = 0;
    if (std::from_chars(text.data(), end, number).ec == std::errc()) return Value(number);
    // Too large or too small; from_chars does not tell which. The process runs in the C locale.
    number = std::strtod(std::string(text).c_str(), nullptr);
    if (std::isinf(number)) return Wrong("the number does not fit a double", start);
    return Value(number);
  }

  // Reads a string to `string_`.
  Status ParseString() {
    const size_t opening = at_++;
    string_.clear();
    for (;;) {
      const size_t start = at_;
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
             static_cast<unsigned char>(text_[at_]) >= 0x20) {
        ++at_;
      }
      const std::string_view plain = text_.substr(start, at_ - start);
      if (!IsUtf8(plain)) return Wrong("a string has bytes that are not UTF-8", start);
      string_ += plain;
      if (at_ == text_.size()) return Wrong("this string does not end", opening);
      if (TakeIf('"')) return {};
      if (text_[at_] != '\\') return Wrong("a control character stands in a string unescaped");
      CAISSON_TRY(ParseEscape());
    }
  }

  Status ParseEscape() {
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const size_t start = at_++;
    if (TakeIf('u')) return ParseCodePoint(start);
    const size_t letter = kLetters.find(Peek());
    if (at_ == text_.size() || letter == std::string_view::npos) {
      return Wrong("unknown escape in a string", start);
    }
    string_ += kMeanings[letter];
    ++at_;
    return {};
  }

  // After "\u" at `start`: one code point, which may take a pair of escapes.
  Status ParseCodePoint(size_t start) {
    const int32_t unit = ParseHex();
    if (unit < 0) return Wrong("four hexadecimal digits belong after \\u", start);
    uint32_t point = static_cast<uint32_t>(unit);
    if (unit >= 0xdc00 && unit < 0xe000) return Wrong("half of a surrogate pair", start);
    if (unit >= 0xd800 && unit < 0xdc00) {
      int32_t low = -1;
      if (TakeIf('\\') && TakeIf('u')) low = ParseHex();
      if (low < 0xdc00 || low >= 0xe000) return Wrong("half of a surrogate pair", start);
      point = 0x10000 + (static_cast<uint32_t>(unit - 0xd800) << 10) +
              static_cast<uint32_t>(low - 0xdc00);
    }
    AppendUtf8(string_, point);
    return {};
  }

  int32_t ParseHex() {
    int32_t unit = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const int digit = HexDigit(Peek());
      if (digit < 0) return -1;
      unit = unit * 16 + digit;
    }
    return unit;
  }

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool TakeIf(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void SkipSpace() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
      ++at_;
    }
  }
  bool SkipDigits() {
    const size_t start = at_;
    while (IsDigit(Peek())) ++at_;
    return at_ > start;
  }

  Error TooDeep() const {
    return Wrong("nested more than " + std::to_string(limits_.max_depth) + " deep");
  }
  Error Wrong(std::string_view what) const { return Wrong(what, at_); }
  Error Wrong(std::string_view what, size_t at) const {
    size_t line = 1, line_start = 0;
    for (size_t i = 0; i < at; ++i) {
      if (text_[i] == '\n') {
        ++line;
        line_start = i + 1;
      }
    }
    return Error(ErrorCode::kInvalidArgument,
                 Concat({"invalid JSON at line ", std::to_string(line), ", column ",
                         std::to_string(at - line_start + 1), ": ", what}))
        .WithRemedy("send valid JSON (RFC 8259) in UTF-8");
  }

  std::string_view text_;
  ParseLimits limits_;
  size_t at_ = 0;
  std::string string_;
};

}  // namespace

Result<Value> Parse(std::string_view text, ParseLimits limits) {
  return Parser(text, limits).Run();
}

}  // namespace caisson::json
