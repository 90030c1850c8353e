#include "store/session_records.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "store/cursor.h"

namespace caisson::store {
namespace {

constexpr std::array<std::string_view, 8> kStateNames = {
    "intent", "creating", "running", "paused", "stopping", "destroyed", "failed", "lost"};

#define SESSION_COLUMNS                                                                          \
  "s.id, s.name, s.tenant, s.owner_key, s.state, s.provider, s.environment, s.sandbox_id, "      \
  "s.boot_id, s.generation, s.spec, s.metadata, s.reason, s.stats, s.created_ms, s.updated_ms, " \
  "s.expires_ms, s.ended_ms"

SessionRecord RecordOf(const Row& row) {
  SessionRecord record;
  record.id = row.Text(0);
  record.name = row.OptionalText(1);
  record.tenant = row.Text(2);
  record.owner_key = row.Text(3);
  record.state = SessionStateFrom(row.Text(4)).value_or(SessionState::kLost);
  record.provider = row.Text(5);
  record.environment = row.Text(6);
  record.sandbox_id = row.Text(7);
  record.boot_id = row.Text(8);
  record.generation = row.Int(9);
  record.spec = row.Text(10);
  record.metadata = row.Text(11);
  record.reason = row.Text(12);
  record.stats = row.Text(13);
  record.created_ms = row.Int(14);
  record.updated_ms = row.Int(15);
  record.expires_ms = row.OptionalInt(16);
  record.ended_ms = row.OptionalInt(17);
  return record;
}

Status ReadLabels(Database& database, SessionRecord& record) {
  return database.Each(
      "SELECT key, value FROM session_labels WHERE session_id = ? ORDER BY key", {record.id},
      [&record](const Row& row) { record.labels.emplace_back(row.Text(0), row.Text(1)); });
}

Status WriteLabels(Database& database, const SessionRecord& record) {
  for (const auto& [key, value] : record.labels) {
    CAISSON_TRY(database.Run(
        "INSERT OR REPLACE INTO session_labels (session_id, key, value) VALUES (?, ?, ?)",
        {record.id, key, value}));
  }
  return {};
}

Status OneChanged(Database& database, std::string_view id) {
  if (database.changes() == 1) return {};
  return Error(ErrorCode::kNotFound, Concat({"no session ", Quoted(id)}));
}

Result<std::optional<SessionRecord>> FindOne(Database& database, std::string_view sql,
                                             std::initializer_list<Value> parameters) {
  std::optional<SessionRecord> found;
  CAISSON_TRY(database.Each(sql, parameters, [&found](const Row& row) { found = RecordOf(row); }));
  if (found) CAISSON_TRY(ReadLabels(database, *found));
  return found;
}

}  // namespace

std::string_view NameOf(SessionState state) { return kStateNames[static_cast<size_t>(state)]; }

std::optional<SessionState> SessionStateFrom(std::string_view name) {
  const auto found = std::ranges::find(kStateNames, name);
  if (found == kStateNames.end()) return std::nullopt;
  return static_cast<SessionState>(found - kStateNames.begin());
}

bool HasEnded(SessionState state) {
  return state == SessionState::kDestroyed || state == SessionState::kFailed ||
         state == SessionState::kLost;
}

Status InsertSession(Database& database, const SessionRecord& record) {
  Status inserted = database.Run(
      "INSERT INTO sessions AS s (id, name, tenant, owner_key, state, provider, environment, "
      "sandbox_id, boot_id, generation, spec, metadata, reason, stats, created_ms, updated_ms, "
      "expires_ms, ended_ms) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
      {record.id, record.name, record.tenant, record.owner_key, NameOf(record.state),
       record.provider, record.environment, record.sandbox_id, record.boot_id, record.generation,
       record.spec, record.metadata, record.reason, record.stats, record.created_ms,
       record.updated_ms, record.expires_ms, record.ended_ms});
  if (!inserted && inserted.error().code() == ErrorCode::kConflict) {
    const std::string_view named = record.name ? std::string_view(*record.name) : record.id;
    return Error(ErrorCode::kConflict, Concat({"a session ", Quoted(named), " exists already"}))
        .WithRemedy("choose another name, or destroy the session that has it");
  }
  CAISSON_TRY(std::move(inserted));
  return WriteLabels(database, record);
}

Status UpdateSession(Database& database, const SessionRecord& record) {
  CAISSON_TRY(database.Run(
      "UPDATE sessions SET name = ?, owner_key = ?, state = ?, provider = ?, environment = ?, "
      "sandbox_id = ?, boot_id = ?, generation = ?, spec = ?, metadata = ?, reason = ?, stats = ?, "
      "updated_ms = ?, expires_ms = ?, ended_ms = ? WHERE id = ?",
      {record.name, record.owner_key, NameOf(record.state), record.provider, record.environment,
       record.sandbox_id, record.boot_id, record.generation, record.spec, record.metadata,
       record.reason, record.stats, record.updated_ms, record.expires_ms, record.ended_ms,
       record.id}));
  CAISSON_TRY(OneChanged(database, record.id));
  CAISSON_TRY(database.Run("DELETE FROM session_labels WHERE session_id = ?", {record.id}));
  return WriteLabels(database, record);
}

Status SetSessionState(Database& database, std::string_view id, SessionState state,
                       std::string_view reason, int64_t now_ms) {
  const std::optional<int64_t> ended = HasEnded(state) ? std::optional(now_ms) : std::nullopt;
  CAISSON_TRY(database.Run(
      "UPDATE sessions SET state = ?, reason = ?, updated_ms = ?, ended_ms = ? WHERE id = ?",
      {NameOf(state), reason, now_ms, ended, id}));
  return OneChanged(database, id);
}

Result<std::optional<SessionRecord>> FindSession(Database& database, std::string_view id) {
  return FindOne(database, "SELECT " SESSION_COLUMNS " FROM sessions s WHERE s.id = ?", {id});
}

Result<std::optional<SessionRecord>> FindSessionByName(Database& database, std::string_view tenant,
                                                       std::string_view name) {
  return FindOne(database,
                 "SELECT " SESSION_COLUMNS
                 " FROM sessions s WHERE s.tenant = ? AND s.name = ? "
                 "ORDER BY s.ended_ms IS NOT NULL, s.created_ms DESC LIMIT 1",
                 {tenant, name});
}

Result<std::vector<SessionRecord>> LiveSessions(Database& database) {
  std::vector<SessionRecord> sessions;
  CAISSON_TRY(database.Each("SELECT " SESSION_COLUMNS
                            " FROM sessions s WHERE s.ended_ms IS NULL ORDER BY s.created_ms, s.id",
                            {}, [&](const Row& row) { sessions.push_back(RecordOf(row)); }));
  for (SessionRecord& session : sessions) CAISSON_TRY(ReadLabels(database, session));
  return sessions;
}

Result<SessionPage> ListSessions(Database& database, const SessionFilter& filter) {
  CAISSON_TRY(CheckPageLimit(filter.limit));
  QueryBuilder query("SELECT " SESSION_COLUMNS " FROM sessions s WHERE 1");
  if (filter.tenant) query.Add(" AND s.tenant = ?", {*filter.tenant});
  if (filter.owner_key) query.Add(" AND s.owner_key = ?", {*filter.owner_key});
  if (!filter.states.empty()) {
    query.Add(" AND s.state IN (");
    for (size_t i = 0; i < filter.states.size(); ++i) {
      query.Add(i == 0 ? "?" : ", ?", {NameOf(filter.states[i])});
    }
    query.Add(")");
  }
  for (const auto& [key, value] : filter.labels) {
    query.Add(
        " AND EXISTS (SELECT 1 FROM session_labels l WHERE l.session_id = s.id "
        "AND l.key = ? AND l.value = ?)",
        {key, value});
  }
  Cursor after;
  if (!filter.cursor.empty()) {
    CAISSON_ASSIGN(after, DecodeCursor(filter.cursor));
    query.Add(" AND (s.created_ms, s.id) < (?, ?)", {after.time_ms, after.id});
  }
  query.Add(" ORDER BY s.created_ms DESC, s.id DESC LIMIT ?", {filter.limit + 1});
  SessionPage page;
  CAISSON_TRY(
      query.Each(database, [&page](const Row& row) { page.sessions.push_back(RecordOf(row)); }));
  if (page.sessions.size() > static_cast<size_t>(filter.limit)) {
    page.sessions.pop_back();
    page.next_cursor = EncodeCursor({page.sessions.back().created_ms, page.sessions.back().id});
  }
  for (SessionRecord& session : page.sessions) CAISSON_TRY(ReadLabels(database, session));
  return page;
}

Result<std::optional<std::string>> FindIdempotent(Database& database, const IdempotencyKey& key) {
  std::optional<std::string> session;
  std::string digest;
  CAISSON_TRY(
      database.Each("SELECT session_id, digest FROM idempotency WHERE tenant = ? AND key = ?",
                    {key.tenant, key.key}, [&](const Row& row) {
                      session = row.Text(0);
                      digest = row.Text(1);
                    }));
  if (session && digest != key.digest) {
    return Error(ErrorCode::kConflict,
                 Concat({"the idempotency key ", Quoted(key.key), " was used for another request"}))
        .WithRemedy("send the same body again, or a new key");
  }
  return session;
}

Status InsertIdempotent(Database& database, const IdempotencyKey& key, std::string_view session_id,
                        int64_t now_ms) {
  return database.Run(
      "INSERT INTO idempotency (tenant, key, digest, session_id, created_ms) VALUES (?,?,?,?,?)",
      {key.tenant, key.key, key.digest, session_id, now_ms});
}

Status ForgetIdempotent(Database& database, std::string_view session_id) {
  return database.Run("DELETE FROM idempotency WHERE session_id = ?", {session_id});
}

Result<std::vector<std::string>> PurgeSessions(Database& database, int64_t before_ms, int limit) {
  std::vector<std::string> ids;
  CAISSON_TRY(database.Each("SELECT id FROM sessions WHERE ended_ms < ? ORDER BY ended_ms LIMIT ?",
                            {before_ms, limit},
                            [&ids](const Row& row) { ids.push_back(row.Text(0)); }));
  for (const std::string& id : ids) {
    CAISSON_TRY(database.Run("DELETE FROM sessions WHERE id = ?", {id}));
  }
  CAISSON_TRY(database.Run("DELETE FROM idempotency WHERE created_ms < ?", {before_ms}));
  return ids;
}

}  // namespace caisson::store
