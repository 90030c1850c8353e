// Where a page of a list ends: the time and id of its last row, as opaque text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace caisson::store {

struct Cursor {
  int64_t time_ms = 0;
  std::string id;
};

std::string EncodeCursor(const Cursor& cursor);
// kInvalidArgument when the text is no cursor.
Result<Cursor> DecodeCursor(std::string_view text);

// kInvalidArgument unless 1 ≤ limit ≤ 1000.
Status CheckPageLimit(int limit);

}  // namespace caisson::store
