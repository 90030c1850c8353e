// Table: rows of text in columns, as wide as they need and as the terminal allows.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/colour.h"

namespace caisson::cli {

enum class Align { kLeft, kRight };
// kCut: when the line is too wide, this column gives way first, and ends in "…".
enum class Fit { kWhole, kCut };

struct Column {
  std::string_view title;
  Align align = Align::kLeft;
  Fit fit = Fit::kWhole;
};

enum class Tint { kNone, kGood, kBad, kFaint };

struct Cell {
  Cell(std::string text, Tint tint = Tint::kNone)  // NOLINT: implicit
      : text(std::move(text)), tint(tint) {}
  Cell(const char* text) : text(text) {}  // NOLINT: implicit
  std::string text;
  Tint tint = Tint::kNone;
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // As many cells as there are columns. Texts are made harmless (see OneLine); an empty one is "-".
  void Add(std::vector<Cell> cells);
  bool empty() const { return rows_.empty(); }
  size_t size() const { return rows_.size(); }

  // The title line and the rows, no line wider than `width`; without one, nothing is cut.
  std::string Show(std::optional<size_t> width, Colour colour) const;

 private:
  std::vector<size_t> Widths(std::optional<size_t> width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

// Names and values in two columns, for one object.
class Sheet {
 public:
  void Add(std::string_view name, Cell value) { rows_.push_back({std::string(name), value}); }
  void Heading(std::string_view title);
  std::string Show(Colour colour) const;

 private:
  struct Row {
    std::string name;
    std::optional<Cell> value;  // a heading has none
  };
  std::vector<Row> rows_;
};

// The tint of a session's state.
Tint TintOfState(std::string_view state);

}  // namespace caisson::cli
