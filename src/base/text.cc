#include "base/text.h"

#include <algorithm>
#include <vector>

namespace caisson {
namespace {

constexpr size_t kQuotedMax = 64;

// The length of the well-formed, printable UTF-8 sequence at the front of `text`, or 0. C1 controls
// (U+0080..U+009F) and bidirectional overrides count as unprintable: a terminal acts on them.
size_t PrintableUtf8(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto tail = [&](size_t i) { return i < text.size() && (at(i) & 0xC0) == 0x80; };
  const unsigned char lead = at(0);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7F ? 1 : 0;
  if (lead >= 0xC2 && lead <= 0xDF && tail(1)) return lead == 0xC2 && at(1) < 0xA0 ? 0 : 2;
  if (lead >= 0xE0 && lead <= 0xEF && tail(1) && tail(2)) {
    if (lead == 0xE0 && at(1) < 0xA0) return 0;   // overlong
    if (lead == 0xED && at(1) >= 0xA0) return 0;  // surrogates
    const bool override_mark = lead == 0xE2 && ((at(1) == 0x80 && at(2) >= 0xA8 && at(2) <= 0xAE) ||
                                                (at(1) == 0x81 && at(2) >= 0xA6 && at(2) <= 0xA9));
    return override_mark ? 0 : 3;
  }
  if (lead >= 0xF0 && lead <= 0xF4 && tail(1) && tail(2) && tail(3)) {
    if (lead == 0xF0 && at(1) < 0x90) return 0;
    if (lead == 0xF4 && at(1) >= 0x90) return 0;
    return 4;
  }
  return 0;
}

void AppendEscaped(std::string& out, char c) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  switch (c) {
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\r':
      out += "\\r";
      return;
    default:
      break;
  }
  out += "\\x";
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

// Edits (insert, delete, replace, swap of neighbours) between two short words.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string Concat(std::initializer_list<std::string_view> parts) {
  size_t size = 0;
  for (const auto part : parts) size += part.size();
  std::string joined;
  joined.reserve(size);
  for (const auto part : parts) joined += part;
  return joined;
}

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  size_t taken = 0;
  while (taken < text.size() && taken < kQuotedMax) {
    const std::string_view left = text.substr(taken);
    const size_t length = PrintableUtf8(left);
    if (length == 0) {
      AppendEscaped(out, left[0]);
    } else {
      if (left[0] == '"' || left[0] == '\\') out += '\\';
      out.append(left.substr(0, length));
    }
    taken += std::max<size_t>(length, 1);
  }
  if (taken < text.size()) out += "…";
  return out += '"';
}

std::string_view ClosestTo(std::string_view word, std::span<const std::string_view> candidates) {
  constexpr size_t kLongest = 64;  // bounds the work on hostile input
  if (word.empty() || word.size() > kLongest) return {};
  std::string_view best;
  size_t best_distance = word.size() / 3 + 2;  // a candidate must be closer than this
  for (const std::string_view candidate : candidates) {
    if (word.size() >= 3 && candidate.starts_with(word)) return candidate;
    if (candidate.size() > kLongest) continue;
    const size_t distance = EditDistance(word, candidate);
    if (distance < best_distance && distance < std::max(word.size(), candidate.size())) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

size_t DisplayWidth(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string Wrap(std::string_view text, size_t indent, size_t width) {
  std::string out;
  size_t column = indent;
  const auto break_line = [&] {
    out += '\n';
    out.append(indent, ' ');
    column = indent;
  };
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::string_view word = text.substr(0, end);
    const bool first = column == indent;
    if (!word.empty()) {
      const size_t cells = DisplayWidth(word);
      if (!first && column + 1 + cells > width) {
        break_line();
      } else if (!first) {
        out += ' ';
        ++column;
      }
      out.append(word);
      column += cells;
    }
    if (end == text.size()) break;
    if (text[end] == '\n') break_line();
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace caisson
