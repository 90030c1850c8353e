#include "store/usage_records.h"

namespace caisson::store {

int64_t DayOf(int64_t time_ms) { return time_ms / (24LL * 3600 * 1000); }

Status AddUsage(Database& database, const UsageRecord& record) {
  return database.Run(
      "INSERT INTO usage (tenant, key_id, day, requests, creates, execs, cpu_us, sandbox_ms, "
      "bytes_in, bytes_out) VALUES (?,?,?,?,?,?,?,?,?,?) "
      "ON CONFLICT (tenant, key_id, day) DO UPDATE SET "
      "requests = requests + excluded.requests, creates = creates + excluded.creates, "
      "execs = execs + excluded.execs, cpu_us = cpu_us + excluded.cpu_us, "
      "sandbox_ms = sandbox_ms + excluded.sandbox_ms, bytes_in = bytes_in + excluded.bytes_in, "
      "bytes_out = bytes_out + excluded.bytes_out",
      {record.tenant, record.key_id, record.day, record.requests, record.creates, record.execs,
       record.cpu_us, record.sandbox_ms, record.bytes_in, record.bytes_out});
}

Result<std::vector<UsageRecord>> ListUsage(Database& database, const UsageFilter& filter) {
  QueryBuilder query(
      "SELECT tenant, key_id, day, requests, creates, execs, cpu_us, sandbox_ms, bytes_in, "
      "bytes_out FROM usage WHERE day BETWEEN ? AND ?");
  query.Add("", {filter.first_day, filter.last_day});
  if (filter.tenant) query.Add(" AND tenant = ?", {*filter.tenant});
  if (filter.key_id) query.Add(" AND key_id = ?", {*filter.key_id});
  query.Add(" ORDER BY day, tenant, key_id");
  std::vector<UsageRecord> usage;
  CAISSON_TRY(query.Each(database, [&usage](const Row& row) {
    usage.push_back({row.Text(0), row.Text(1), row.Int(2), row.Int(3), row.Int(4), row.Int(5),
                     row.Int(6), row.Int(7), row.Int(8), row.Int(9)});
  }));
  return usage;
}

Status PurgeUsage(Database& database, int64_t before_day) {
  return database.Run("DELETE FROM usage WHERE day < ?", {before_day});
}

}  // namespace caisson::store
