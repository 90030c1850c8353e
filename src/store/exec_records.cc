#include "store/exec_records.h"

#include "base/text.h"
#include "store/cursor.h"

namespace caisson::store {
namespace {

#define EXEC_COLUMNS                                                                              \
  "session_id, id, command, key_id, status, reason, exit_code, cpu_us, memory_peak, stdout_end, " \
  "stderr_end, started_ms, ended_ms, usage"

ExecRecord RecordOf(const Row& row) {
  ExecRecord record;
  record.session_id = row.Text(0);
  record.id = row.Text(1);
  record.command = row.Text(2);
  record.key_id = row.Text(3);
  record.status = row.Text(4);
  record.reason = row.Text(5);
  if (!row.IsNull(6)) record.exit_code = static_cast<int>(row.Int(6));
  record.cpu_us = row.Int(7);
  record.memory_peak = row.Int(8);
  record.stdout_end = row.Int(9);
  record.stderr_end = row.Int(10);
  record.started_ms = row.Int(11);
  record.ended_ms = row.OptionalInt(12);
  record.usage = row.Text(13);
  return record;
}

}  // namespace

Status InsertExec(Database& database, const ExecRecord& record) {
  return database.Run(
      "INSERT INTO execs (" EXEC_COLUMNS ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
      {record.session_id, record.id, record.command, record.key_id, record.status, record.reason,
       record.exit_code, record.cpu_us, record.memory_peak, record.stdout_end, record.stderr_end,
       record.started_ms, record.ended_ms, record.usage});
}

Status FinishExec(Database& database, const ExecRecord& record) {
  CAISSON_TRY(database.Run(
      "UPDATE execs SET status = ?, reason = ?, exit_code = ?, cpu_us = ?, memory_peak = ?, "
      "stdout_end = ?, stderr_end = ?, ended_ms = ?, usage = ? "
      "WHERE session_id = ? AND id = ? AND ended_ms IS NULL",
      {record.status, record.reason, record.exit_code, record.cpu_us, record.memory_peak,
       record.stdout_end, record.stderr_end, record.ended_ms, record.usage, record.session_id,
       record.id}));
  if (database.changes() == 1) return {};
  CAISSON_ASSIGN(const auto found, FindExec(database, record.session_id, record.id));
  if (!found) return Error(ErrorCode::kNotFound, Concat({"no exec ", Quoted(record.id)}));
  return Error(ErrorCode::kConflict, Concat({"exec ", Quoted(record.id), " has ended already"}));
}

Result<std::optional<ExecRecord>> FindExec(Database& database, std::string_view session_id,
                                           std::string_view id) {
  std::optional<ExecRecord> found;
  CAISSON_TRY(database.Each("SELECT " EXEC_COLUMNS " FROM execs WHERE session_id = ? AND id = ?",
                            {session_id, id}, [&](const Row& row) { found = RecordOf(row); }));
  return found;
}

Result<std::vector<ExecRecord>> OpenExecs(Database& database) {
  std::vector<ExecRecord> execs;
  CAISSON_TRY(database.Each("SELECT " EXEC_COLUMNS
                            " FROM execs WHERE ended_ms IS NULL ORDER BY started_ms, id",
                            {}, [&](const Row& row) { execs.push_back(RecordOf(row)); }));
  return execs;
}

Result<ExecPage> ListEndedExecs(Database& database, std::string_view session_id,
                                std::string_view cursor, int limit) {
  CAISSON_TRY(CheckPageLimit(limit));
  QueryBuilder query("SELECT " EXEC_COLUMNS
                     " FROM execs WHERE session_id = ? AND ended_ms IS NOT NULL");
  query.Add("", {session_id});
  Cursor after;
  if (!cursor.empty()) {
    CAISSON_ASSIGN(after, DecodeCursor(cursor));
    query.Add(" AND (started_ms, id) < (?, ?)", {after.time_ms, after.id});
  }
  query.Add(" ORDER BY started_ms DESC, id DESC LIMIT ?", {limit + 1});
  ExecPage page;
  CAISSON_TRY(query.Each(database, [&](const Row& row) { page.execs.push_back(RecordOf(row)); }));
  if (page.execs.size() > static_cast<size_t>(limit)) {
    page.execs.pop_back();
    page.next_cursor = EncodeCursor({page.execs.back().started_ms, page.execs.back().id});
  }
  return page;
}

}  // namespace caisson::store
