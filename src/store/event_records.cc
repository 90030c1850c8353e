#include "store/event_records.h"

#include "store/cursor.h"

namespace caisson::store {

Result<int64_t> InsertEvent(Database& database, const EventRecord& record) {
  return database.Number(
      "INSERT INTO events (time_ms, tenant, session_id, type, body) VALUES (?,?,?,?,?) "
      "RETURNING seq",
      {record.time_ms, record.tenant, record.session_id, record.type, record.body});
}

Result<std::vector<EventRecord>> ListEvents(Database& database, const EventFilter& filter) {
  CAISSON_TRY(CheckPageLimit(filter.limit));
  QueryBuilder query(
      "SELECT seq, time_ms, tenant, session_id, type, body FROM events WHERE seq > ?");
  query.Add("", {filter.after_seq});
  if (filter.tenant) query.Add(" AND tenant = ?", {*filter.tenant});
  if (filter.session_id) query.Add(" AND session_id = ?", {*filter.session_id});
  if (!filter.type.empty()) query.Add(" AND type = ?", {filter.type});
  query.Add(" ORDER BY seq LIMIT ?", {filter.limit});
  std::vector<EventRecord> events;
  CAISSON_TRY(query.Each(database, [&events](const Row& row) {
    events.push_back({row.Int(0), row.Int(1), row.Text(2), row.Text(3), row.Text(4), row.Text(5)});
  }));
  return events;
}

Result<int64_t> PurgeEvents(Database& database, int64_t before_ms, int64_t keep) {
  CAISSON_TRY(database.Run(
      "DELETE FROM events WHERE time_ms < ? OR seq <= (SELECT max(seq) FROM events) - ?",
      {before_ms, keep}));
  return database.changes();
}

}  // namespace caisson::store
