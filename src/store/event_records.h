// What happened, in order: the history behind the live event stream. Bounded by count and age.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace caisson::store {

struct EventRecord {
  int64_t seq = 0;  // given by the store: counts up, is never used twice
  int64_t time_ms = 0;
  std::string tenant;
  std::string session_id;   // empty when the event is about no session
  std::string type;         // "session.created"
  std::string body = "{}";  // JSON
};

struct EventFilter {
  std::optional<std::string> tenant;
  std::optional<std::string> session_id;
  std::string type;       // empty: any
  int64_t after_seq = 0;  // only later ones
  int limit = 100;        // 1 to 1000
};

// Gives the event's seq.
Result<int64_t> InsertEvent(Database& database, const EventRecord& record);
// Oldest first.
Result<std::vector<EventRecord>> ListEvents(Database& database, const EventFilter& filter);
// Forgets what is older than `before_ms`, and the oldest beyond `keep`. Gives how many.
Result<int64_t> PurgeEvents(Database& database, int64_t before_ms, int64_t keep);

}  // namespace caisson::store
