#include "sandbox/store_journal.h"

#include "sandbox/session_spec_json.h"
#include "store/session_records.h"

namespace caisson::sandbox {
namespace {

store::SessionState ToStore(SessionState state) {
  switch (state) {
    case SessionState::kCreating:
      return store::SessionState::kCreating;
    case SessionState::kRunning:
      return store::SessionState::kRunning;
    case SessionState::kPaused:
      return store::SessionState::kPaused;
    case SessionState::kStopping:
      return store::SessionState::kStopping;
    case SessionState::kDestroyed:
      return store::SessionState::kDestroyed;
    case SessionState::kFailed:
      return store::SessionState::kFailed;
    case SessionState::kLost:
      break;
  }
  return store::SessionState::kLost;
}

SessionState FromStore(store::SessionState state) {
  if (state == store::SessionState::kIntent) return SessionState::kCreating;
  return SessionStateFrom(store::NameOf(state)).value_or(SessionState::kLost);
}

int64_t ToMs(WallTime time) { return time.time_since_epoch().count(); }
WallTime FromMs(int64_t ms) { return WallTime(std::chrono::milliseconds(ms)); }

store::SessionRecord ToStore(const SessionRecord& record) {
  store::SessionRecord row;
  row.id = record.id;
  if (!record.spec.name.empty()) row.name = record.spec.name;
  row.tenant = record.owner.tenant;
  row.owner_key = record.owner.key_id;
  row.state = ToStore(record.state);
  row.provider = record.provider;
  row.environment = record.spec.environment;
  row.sandbox_id = record.sandbox_id;
  row.boot_id = record.boot_id;
  row.spec = SpecToJson(record.spec);
  row.metadata = MapToJson(record.spec.metadata);
  row.reason = record.reason;
  if (record.stats) row.stats = StatsToJson(*record.stats);
  row.labels.assign(record.spec.labels.begin(), record.spec.labels.end());
  row.created_ms = ToMs(record.created);
  row.updated_ms = ToMs(record.updated);
  row.expires_ms = ToMs(record.expires);
  if (record.ended) row.ended_ms = ToMs(*record.ended);
  return row;
}

// A damaged record is no reason to end a sandbox: it goes on with defaults, and says so.
SessionRecord FromStore(const store::SessionRecord& row) {
  SessionRecord record;
  record.reason = row.reason;
  auto note = [&](const Error& error) {
    record.reason = "its record is damaged (" + error.message() + "); defaults hold instead";
  };
  if (auto spec = SpecFromJson(row.spec)) {
    record.spec = *std::move(spec);
  } else {
    record.spec.environment = row.environment;
    note(spec.error());
  }
  if (auto metadata = MapFromJson(row.metadata))
    record.spec.metadata = *std::move(metadata);
  else
    note(metadata.error());
  if (row.stats != "{}")
    if (auto stats = StatsFromJson(row.stats)) record.stats = *stats;
  record.spec.labels.insert(row.labels.begin(), row.labels.end());
  record.spec.name = row.name.value_or("");
  record.id = row.id;
  record.owner = {row.tenant, row.owner_key};
  record.state = FromStore(row.state);
  record.provider = row.provider;
  record.sandbox_id = row.sandbox_id;
  record.boot_id = row.boot_id;
  record.created = FromMs(row.created_ms);
  record.updated = FromMs(row.updated_ms);
  record.expires = FromMs(row.expires_ms.value_or(row.created_ms));
  if (row.ended_ms) record.ended = FromMs(*row.ended_ms);
  return record;
}

store::IdempotencyKey ToStore(const IdempotentCreate& key) {
  return {key.tenant, key.key, key.digest};
}

}  // namespace

Task<Status> StoreJournal::Insert(SessionRecord record, std::optional<IdempotentCreate> key) {
  auto work = [row = ToStore(record), key = std::move(key)](store::Database& database) -> Status {
    CAISSON_TRY(store::InsertSession(database, row));
    if (!key) return {};
    return store::InsertIdempotent(database, ToStore(*key), row.id, row.created_ms);
  };
  return store_.Write(store::Durability::kSoon, std::move(work));
}

// What ends something is written also when the disk is full.
Task<Status> StoreJournal::Save(SessionRecord record) {
  const bool ends = record.state == SessionState::kStopping || HasEnded(record.state);
  const bool failed = record.state == SessionState::kFailed;
  auto work = [row = ToStore(record), failed](store::Database& database) -> Status {
    CAISSON_TRY(store::UpdateSession(database, row));
    if (!failed) return {};
    return store::ForgetIdempotent(database, row.id);
  };
  return store_.Write(store::Durability::kSoon, std::move(work),
                      ends ? store::Purpose::kShrink : store::Purpose::kGrow);
}

Task<Result<std::optional<SessionRecord>>> StoreJournal::Find(std::string id) {
  using Found = std::optional<SessionRecord>;
  return store_.Read<Found>([id = std::move(id)](store::Database& database) -> Result<Found> {
    CAISSON_ASSIGN(const auto row, store::FindSession(database, id));
    if (!row) return Found();
    return Found(FromStore(*row));
  });
}

Task<Result<std::optional<SessionRecord>>> StoreJournal::FindNamed(std::string tenant,
                                                                   std::string name) {
  using Found = std::optional<SessionRecord>;
  return store_.Read<Found>(
      [tenant = std::move(tenant), name = std::move(name)](store::Database& db) -> Result<Found> {
        CAISSON_ASSIGN(const auto row, store::FindSessionByName(db, tenant, name));
        if (!row) return Found();
        return Found(FromStore(*row));
      });
}

Task<Result<std::optional<std::string>>> StoreJournal::FindIdempotent(IdempotentCreate key) {
  return store_.Read<std::optional<std::string>>([key = ToStore(key)](store::Database& database) {
    return store::FindIdempotent(database, key);
  });
}

Task<Result<std::vector<SessionRecord>>> StoreJournal::Live() {
  using Records = std::vector<SessionRecord>;
  return store_.Read<Records>([](store::Database& database) -> Result<Records> {
    CAISSON_ASSIGN(const auto rows, store::LiveSessions(database));
    Records records;
    for (const auto& row : rows) records.push_back(FromStore(row));
    return records;
  });
}

Task<Result<SessionPage>> StoreJournal::List(SessionQuery query) {
  store::SessionFilter filter;
  filter.tenant = query.access.tenant;
  for (const auto state : query.states) {
    filter.states.push_back(ToStore(state));
    if (state == SessionState::kCreating) filter.states.push_back(store::SessionState::kIntent);
  }
  filter.labels.assign(query.labels.begin(), query.labels.end());
  filter.cursor = std::move(query.cursor);
  filter.limit = query.limit;
  return store_.Read<SessionPage>(
      [filter = std::move(filter)](store::Database& database) -> Result<SessionPage> {
        CAISSON_ASSIGN(auto rows, store::ListSessions(database, filter));
        SessionPage page;
        page.next_cursor = std::move(rows.next_cursor);
        for (const auto& row : rows.sessions) page.sessions.push_back(FromStore(row));
        return page;
      });
}

}  // namespace caisson::sandbox
