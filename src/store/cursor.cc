#include "store/cursor.h"

#include <charconv>
#include <optional>

#include "base/encoding.h"
#include "base/text.h"

namespace caisson::store {

std::string EncodeCursor(const Cursor& cursor) {
  return ToBase64Url(Concat({std::to_string(cursor.time_ms), ":", cursor.id}));
}

Result<Cursor> DecodeCursor(std::string_view text) {
  const auto refuse = [text] {
    return Error(ErrorCode::kInvalidArgument, Concat({"not a cursor: ", Quoted(text)}))
        .WithRemedy("give the cursor of the page before, or none for the first page");
  };
  const std::optional<std::string> plain = text.size() > 512 ? std::nullopt : FromBase64Url(text);
  if (!plain) return refuse();
  Cursor cursor;
  const char* const end = plain->data() + plain->size();
  const auto [rest, failure] = std::from_chars(plain->data(), end, cursor.time_ms);
  if (failure != std::errc{} || rest == end || *rest != ':') return refuse();
  cursor.id.assign(rest + 1, end);
  return cursor;
}

Status CheckPageLimit(int limit) {
  if (limit >= 1 && limit <= 1000) return {};
  return Error(ErrorCode::kInvalidArgument,
               Concat({"a page of ", std::to_string(limit), " entries"}))
      .WithRemedy("ask for 1 to 1000 entries");
}

}  // namespace caisson::store
