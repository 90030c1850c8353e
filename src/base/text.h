// Small text helpers for messages that people read. Pure functions, thread-safe.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace caisson {

// The parts one after another.
std::string Concat(std::initializer_list<std::string_view> parts);

// `text` in double quotes, fit for a message or a terminal: control characters, quotes and
// backslashes are escaped, invalid bytes become \xNN, and anything past 64 bytes is cut ("…").
std::string Quoted(std::string_view text);

// The candidate that `word` is most likely a slip of, or an empty view when none is close.
// A candidate that starts with `word` (of three letters or more) counts as close. The view is the
// candidate's own.
std::string_view ClosestTo(std::string_view word, std::span<const std::string_view> candidates);

// The number of columns that UTF-8 `text` takes, counting one per code point.
size_t DisplayWidth(std::string_view text);

// Breaks `text` at spaces into lines of at most `width` columns, each after the first preceded by
// `indent` spaces. The first line is taken to start at column `indent`. A word longer than the
// width stands alone. Newlines in `text` are kept.
std::string Wrap(std::string_view text, size_t indent, size_t width);

}  // namespace caisson
