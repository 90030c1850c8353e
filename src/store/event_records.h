// What happened, in order: the history behind the live event stream. Bounded by count and age.
//
// Numbers are never used twice, and a number below the newest is a row, is covered by a row of
// kEventsMissed, or has been purged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace caisson::store {

// The type of a row that stands for numbers whose events were not kept, up to its own; the body is
// {"from": NUMBER}.
inline constexpr std::string_view kEventsMissed = "events.missed";

struct EventRecord {
  int64_t seq = 0;  // given by the caller: counts up, is never used twice
  int64_t time_ms = 0;
  std::string tenant;
  std::string session_id;   // empty when the event is about no session
  std::string type;         // "session.created"
  std::string body = "{}";  // JSON
  std::string key_id;       // of the session's owner
};

// Which rows of a range of numbers; rows of kEventsMissed are always among them.
struct EventRange {
  int64_t from = 0, to = INT64_MAX;  // both included
  std::optional<std::string> tenant;
  std::optional<std::string> key_id;
  std::optional<std::string> session_id;
  std::vector<std::string> types;  // empty: any
  int limit = 100;                 // 1 to 1000
};

// kConflict when there is one of this number.
Status InsertEvent(Database& database, const EventRecord& record);
// Oldest first.
Result<std::vector<EventRecord>> ListEvents(Database& database, const EventRange& range);
// The number of the oldest that is kept; nothing when none is.
Result<std::optional<int64_t>> OldestEvent(Database& database);
// The highest number that ever was kept, also when it has been forgotten; 0 when none was.
Result<int64_t> NewestEvent(Database& database);
// Forgets what is older than `before_ms`, and the oldest beyond `keep`, at most `limit` rows at a
// time. Gives how many.
Result<int64_t> PurgeEvents(Database& database, int64_t before_ms, int64_t keep, int limit);

}  // namespace caisson::store
