// JSON text to values and back. The values are Boost.JSON's; reading and writing are ours, because
// requests deserve exact numbers, no doubtful input, and messages that say where.
//
// Parsing is strict: RFC 8259, valid UTF-8, no byte order mark, no comments, no trailing bytes, no
// name twice in one object, and bounds on size and depth. A number without fraction and exponent
// that fits 64 bits is an int64 (or, above its range, a uint64); every other number is the nearest
// double, and one beyond a double's range is refused.
//
// Pure functions, thread-safe. To read the fields of a request, see json/reader.h.
#pragma once

#include <boost/json/value.hpp>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace caisson::json {

using Value = boost::json::value;
using Object = boost::json::object;
using Array = boost::json::array;
using String = boost::json::string;

struct ParseLimits {
  size_t max_bytes = size_t{16} << 20;
  size_t max_depth = 64;  // [[1]] has depth 2
};

// Errors are kInvalidArgument: "invalid JSON at line 3, column 7: …". Columns count bytes.
Result<Value> Parse(std::string_view text, ParseLimits limits = {});

// Compact, on one line. Bytes of strings that are not UTF-8 become U+FFFD, so that the text is
// always valid. Doubles are the shortest decimals that read back as the same double, with a
// fraction or an exponent (0.1, 1.0, 1e+30); infinities and NaN, which JSON lacks, are null.
std::string Write(const Value& value);

// The same over several lines, indented by two spaces, with a newline at the end.
std::string WriteIndented(const Value& value);

// `text` as a JSON string with its quotes, and `number` as Write does them, appended to `out`:
// for those who write many small objects and need no values for it.
void AppendString(std::string& out, std::string_view text);
void AppendNumber(std::string& out, double number);

}  // namespace caisson::json
