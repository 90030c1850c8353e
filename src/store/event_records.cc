#include "store/event_records.h"

#include "store/cursor.h"

namespace caisson::store {

Status InsertEvent(Database& database, const EventRecord& record) {
  return database.Run(
      "INSERT INTO events (seq, time_ms, tenant, session_id, type, body, key_id) "
      "VALUES (?,?,?,?,?,?,?)",
      {record.seq, record.time_ms, record.tenant, record.session_id, record.type, record.body,
       record.key_id});
}

Result<std::vector<EventRecord>> ListEvents(Database& database, const EventRange& range) {
  CAISSON_TRY(CheckPageLimit(range.limit));
  QueryBuilder query(
      "SELECT seq, time_ms, tenant, session_id, type, body, key_id FROM events "
      "WHERE seq BETWEEN ? AND ? AND (type = ? OR (1");
  query.Add("", {range.from, range.to, kEventsMissed});
  if (range.tenant) query.Add(" AND tenant = ?", {*range.tenant});
  if (range.key_id) query.Add(" AND key_id = ?", {*range.key_id});
  if (range.session_id) query.Add(" AND session_id = ?", {*range.session_id});
  for (size_t i = 0; i < range.types.size(); ++i)
    query.Add(i == 0 ? " AND (type = ?" : " OR type = ?", {range.types[i]});
  if (!range.types.empty()) query.Add(")");
  query.Add(")) ORDER BY seq LIMIT ?", {range.limit});
  std::vector<EventRecord> events;
  CAISSON_TRY(query.Each(database, [&events](const Row& row) {
    events.push_back(
        {row.Int(0), row.Int(1), row.Text(2), row.Text(3), row.Text(4), row.Text(5), row.Text(6)});
  }));
  return events;
}

Result<std::optional<int64_t>> OldestEvent(Database& database) {
  CAISSON_ASSIGN(const int64_t oldest, database.Number("SELECT min(seq) FROM events"));
  return oldest == 0 ? std::nullopt : std::optional(oldest);
}

Result<int64_t> NewestEvent(Database& database) {
  return database.Number("SELECT seq FROM sqlite_sequence WHERE name = 'events'");
}

// In the order of their numbers, so that what is left has no hole: after a clock has gone back, an
// event may stay longer, and none goes from the middle.
Result<int64_t> PurgeEvents(Database& database, int64_t before_ms, int64_t keep, int limit) {
  CAISSON_ASSIGN(const int64_t newest, database.Number("SELECT max(seq) FROM events"));
  int64_t last = 0;
  bool old = true;
  CAISSON_TRY(database.Each("SELECT seq, time_ms FROM events ORDER BY seq LIMIT ?", {limit},
                            [&](const Row& row) {
                              old = old && (row.Int(1) < before_ms || row.Int(0) <= newest - keep);
                              if (old) last = row.Int(0);
                            }));
  CAISSON_TRY(database.Run("DELETE FROM events WHERE seq <= ?", {last}));
  return database.changes();
}

}  // namespace caisson::store
