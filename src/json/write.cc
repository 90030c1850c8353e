#include <charconv>
#include <cmath>

#include "base/utf8.h"
#include "json/json.h"

namespace caisson::json {
namespace {

enum class Layout { kCompact, kIndented };

void AppendEscaped(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[static_cast<unsigned char>(c) & 15];
  }
}

void AppendValid(std::string& out, std::string_view text) {
  out += '"';
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte != '"' && byte != '\\' && byte != 0x7f) continue;
    out.append(text, start, i - start);
    AppendEscaped(out, text[i]);
    start = i + 1;
  }
  out.append(text, start);
  out += '"';
}

template <typename Integer>
void AppendInteger(std::string& out, Integer number) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  out.append(digits, end);
}

class Writer {
 public:
  explicit Writer(Layout layout) : layout_(layout) {}

  std::string Run(const Value& value) && {
    Put(value);
    if (layout_ == Layout::kIndented) out_ += '\n';
    return std::move(out_);
  }

 private:
  void Put(const Value& value) {
    switch (value.kind()) {
      case boost::json::kind::null:
        out_ += "null";
        return;
      case boost::json::kind::bool_:
        out_ += value.get_bool() ? "true" : "false";
        return;
      case boost::json::kind::int64:
        return AppendInteger(out_, value.get_int64());
      case boost::json::kind::uint64:
        return AppendInteger(out_, value.get_uint64());
      case boost::json::kind::double_:
        return AppendNumber(out_, value.get_double());
      case boost::json::kind::string:
        return AppendString(out_, value.get_string());
      case boost::json::kind::array:
        return PutArray(value.get_array());
      case boost::json::kind::object:
        return PutObject(value.get_object());
    }
  }

  void PutArray(const Array& array) {
    Open('[');
    for (const Value& value : array) {
      if (&value != &array.front()) out_ += ',';
      NewLine();
      Put(value);
    }
    Close(']', array.size());
  }

  void PutObject(const Object& object) {
    Open('{');
    for (const auto& member : object) {
      if (&member != object.begin()) out_ += ',';
      NewLine();
      AppendString(out_, member.key());
      out_ += layout_ == Layout::kIndented ? ": " : ":";
      Put(member.value());
    }
    Close('}', object.size());
  }

  void Open(char bracket) {
    out_ += bracket;
    ++depth_;
  }
  void Close(char bracket, size_t members) {
    --depth_;
    if (members > 0) NewLine();
    out_ += bracket;
  }
  void NewLine() {
    if (layout_ == Layout::kCompact) return;
    out_ += '\n';
    out_.append(depth_ * 2, ' ');
  }

  Layout layout_;
  size_t depth_ = 0;
  std::string out_;
};

}  // namespace

std::string Write(const Value& value) { return Writer(Layout::kCompact).Run(value); }

std::string WriteIndented(const Value& value) { return Writer(Layout::kIndented).Run(value); }

void AppendString(std::string& out, std::string_view text) {
  if (IsUtf8(text)) {
    AppendValid(out, text);
  } else {
    AppendValid(out, ToUtf8(text));
  }
}

void AppendNumber(std::string& out, double number) {
  if (!std::isfinite(number)) {
    out += "null";
    return;
  }
  const double size = std::abs(number);
  const auto format = size == 0 || (size >= 1e-6 && size < 1e21) ? std::chars_format::fixed
                                                                 : std::chars_format::scientific;
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, number, format).ptr;
  const std::string_view text(digits, static_cast<size_t>(end - digits));
  out += text;
  if (text.find_first_of(".e") == std::string_view::npos) out += ".0";
}

}  // namespace caisson::json
