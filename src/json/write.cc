#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/utf8.h"
#include "json/json.h"

namespace caisson::json {
namespace {

enum class Layout { kCompact, kIndented };

constexpr size_t kMaxEscape = 6;  // bytes of \u0000

bool NeedsEscape(unsigned char byte) {
  return byte < 0x20 || byte == '"' || byte == '\\' || byte == 0x7f;
}

// Writes one character's escape; gives where it ends.
char* PutEscape(char* to, char c) {
  constexpr char kHex[] = "0123456789abcdef";
  *to++ = '\\';
  switch (c) {
    case '"':
    case '\\':
      *to++ = c;
      return to;
    case '\n':
      *to++ = 'n';
      return to;
    case '\r':
      *to++ = 'r';
      return to;
    case '\t':
      *to++ = 't';
      return to;
    default:
      memcpy(to, "u00", 3);
      to[3] = kHex[static_cast<unsigned char>(c) >> 4];
      to[4] = kHex[static_cast<unsigned char>(c) & 15];
      return to + kMaxEscape - 1;
  }
}

// The high bit of the first of eight bytes (in memory) that needs an escape is the lowest one set;
// those above it may be wrong. 0 when there is none. ("Bit Twiddling Hacks", S. E. Anderson: a
// byte that is zero, a byte that is less than 0x20.)
uint64_t EscapesIn(uint64_t word) {
  static_assert(std::endian::native == std::endian::little);
  constexpr uint64_t kOnes = 0x0101010101010101, kHighBits = 0x80 * kOnes;
  const auto equal = [word](uint64_t byte) {
    const uint64_t difference = word ^ (byte * kOnes);
    return (difference - kOnes) & ~difference;
  };
  const uint64_t control = (word - 0x20 * kOnes) & ~word;
  return (control | equal('"') | equal('\\') | equal(0x7f)) & kHighBits;
}

// Copies `text`, escaped, to where there is room for kMaxEscape bytes for each; gives the end.
char* CopyEscaped(char* to, std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  uint64_t word;
  while (end - at >= static_cast<ptrdiff_t>(sizeof word)) {
    memcpy(&word, at, sizeof word);
    memcpy(to, &word, sizeof word);
    const uint64_t found = EscapesIn(word);
    const int plain = found == 0 ? static_cast<int>(sizeof word) : std::countr_zero(found) / 8;
    at += plain;
    to += plain;
    if (found != 0) to = PutEscape(to, *at++);
  }
  for (; at != end; ++at) {
    if (NeedsEscape(static_cast<unsigned char>(*at)))
      to = PutEscape(to, *at);
    else
      *to++ = *at;
  }
  return to;
}

void AppendValid(std::string& out, std::string_view text) {
  constexpr size_t kBlock = 512;  // so that the room for the worst case is small
  out += '"';
  while (!text.empty()) {
    const std::string_view block = text.substr(0, kBlock);
    const size_t before = out.size();
    out.resize_and_overwrite(before + block.size() * kMaxEscape, [&](char* data, size_t) {
      return static_cast<size_t>(CopyEscaped(data + before, block) - data);
    });
    text.remove_prefix(block.size());
  }
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
