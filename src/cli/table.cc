#include "cli/table.h"

#include <algorithm>
#include <numeric>

#include "base/text.h"
#include "cli/output.h"

namespace caisson::cli {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kNarrowest = 6;  // what a cut column keeps

std::string Painted(std::string_view text, Tint tint, Colour colour) {
  if (colour == Colour::kNo || tint == Tint::kNone) return std::string(text);
  const std::string_view code = tint == Tint::kGood  ? "\x1b[32m"
                                : tint == Tint::kBad ? "\x1b[31m"
                                                     : "\x1b[2m";
  return Concat({code, text, "\x1b[0m"});
}

// The first `width` columns of UTF-8 text, the last of them "…" when there is more.
std::string Cut(std::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  size_t bytes = 0;
  for (size_t columns = 0; bytes < text.size(); ++bytes) {
    const bool begins = (static_cast<unsigned char>(text[bytes]) & 0xc0) != 0x80;
    if (begins && columns++ + 1 >= width) break;
  }
  return Concat({text.substr(0, bytes), "…"});
}

std::string Padded(std::string_view text, size_t width, Align align, Tint tint, Colour colour) {
  const std::string cut = Cut(text, width);
  const std::string blanks(width - std::min(width, DisplayWidth(cut)), ' ');
  const std::string painted = Painted(cut, tint, colour);
  return align == Align::kLeft ? painted + blanks : blanks + painted;
}

}  // namespace

void Table::Add(std::vector<Cell> cells) {
  for (Cell& cell : cells) {
    cell.text = OneLine(cell.text);
    if (cell.text.empty()) cell.text = "-";
  }
  cells.resize(columns_.size(), Cell("-"));
  rows_.push_back(std::move(cells));
}

std::vector<size_t> Table::Widths(std::optional<size_t> width) const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t widest = DisplayWidth(columns_[i].title);
    for (const auto& row : rows_) widest = std::max(widest, DisplayWidth(row[i].text));
    widths.push_back(widest);
  }
  if (!width || widths.empty()) return widths;
  const size_t gaps = kGap * (columns_.size() - 1);
  // The widest column that may be cut gives way, one column at a time; then any.
  for (const Fit fit : {Fit::kCut, Fit::kWhole}) {
    while (std::accumulate(widths.begin(), widths.end(), gaps) > *width) {
      size_t widest = columns_.size();
      for (size_t i = 0; i < columns_.size(); ++i) {
        const bool may = widths[i] > kNarrowest && (fit == Fit::kWhole || columns_[i].fit == fit);
        if (may && (widest == columns_.size() || widths[i] > widths[widest])) widest = i;
      }
      if (widest == columns_.size()) break;
      --widths[widest];
    }
  }
  return widths;
}

std::string Table::Show(std::optional<size_t> width, Colour colour) const {
  const std::vector<size_t> widths = Widths(width);
  std::string out;
  const auto line = [&](auto text_of, auto tint_of) {
    std::string made;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const bool last = i + 1 == columns_.size() && columns_[i].align == Align::kLeft;
      const size_t fill = last ? std::min(widths[i], DisplayWidth(text_of(i))) : widths[i];
      made += Padded(text_of(i), fill, columns_[i].align, tint_of(i), colour);
      if (i + 1 < columns_.size()) made.append(kGap, ' ');
    }
    out += made + "\n";
  };
  line([&](size_t i) { return columns_[i].title; }, [](size_t) { return Tint::kFaint; });
  for (const auto& row : rows_) {
    line([&](size_t i) { return std::string_view(row[i].text); },
         [&](size_t i) { return row[i].tint; });
  }
  return out;
}

void Sheet::Heading(std::string_view title) { rows_.push_back({std::string(title), {}}); }

std::string Sheet::Show(Colour colour) const {
  size_t widest = 0;
  for (const Row& row : rows_)
    if (row.value) widest = std::max(widest, DisplayWidth(OneLine(row.name)));
  std::string out;
  for (const Row& row : rows_) {
    const std::string name = OneLine(row.name);
    if (!row.value) {
      out += Concat({"\n", Painted(name, Tint::kFaint, colour), "\n"});
      continue;
    }
    const std::string value = OneLine(row.value->text);
    out += Padded(name, widest + kGap, Align::kLeft, Tint::kNone, colour) +
           Painted(value.empty() ? "-" : value, row.value->tint, colour) + "\n";
  }
  return out;
}

Tint TintOfState(std::string_view state) {
  if (state == "running") return Tint::kGood;
  if (state == "failed" || state == "lost") return Tint::kBad;
  return state == "paused" || state == "destroyed" ? Tint::kFaint : Tint::kNone;
}

}  // namespace caisson::cli
