// What is known about each session: one row from the intent to create it until it is purged.
//
// The functions run on a connection inside a transaction of the caller's (Writer::Write) or alone.
// They know nothing of the state machine; the session manager decides what follows what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace caisson::store {

enum class SessionState {
  kIntent,    // recorded before any effect
  kCreating,  // effects have begun
  kRunning,
  kPaused,
  kStopping,   // destroying has begun
  kDestroyed,  // ended on request or by its deadline
  kFailed,     // could not be created, or broke
  kLost,       // gone without our doing: reboot, launcher's death
};

std::string_view NameOf(SessionState state);
std::optional<SessionState> SessionStateFrom(std::string_view name);
// Destroyed, failed and lost sessions have ended; their records stay until purged.
bool HasEnded(SessionState state);

using Labels = std::vector<std::pair<std::string, std::string>>;

struct SessionRecord {
  std::string id;
  std::optional<std::string> name;  // unique among the tenant's sessions that have not ended
  std::string tenant;
  std::string owner_key;
  SessionState state = SessionState::kIntent;
  std::string provider;
  std::string environment;
  std::string sandbox_id;
  std::string boot_id;      // of the host the sandbox lives on
  int64_t generation = 0;   // counts up when the sandbox behind the session is another one
  std::string spec = "{}";  // JSON
  std::string metadata = "{}";
  std::string reason;        // why it ended or failed
  std::string stats = "{}";  // JSON: what it used, when it ended
  Labels labels;             // by key; each key once
  int64_t created_ms = 0;
  int64_t updated_ms = 0;
  std::optional<int64_t> expires_ms;
  std::optional<int64_t> ended_ms;
};

// A request to create that may come twice.
struct IdempotencyKey {
  std::string tenant;
  std::string key;
  std::string digest;  // of the request's body
};

// kConflict when the id, or the name among the tenant's live sessions, is taken.
Status InsertSession(Database& database, const SessionRecord& record);
// Writes every field but id, tenant, created_ms. kNotFound when there is no such session.
Status UpdateSession(Database& database, const SessionRecord& record);
// The usual change: state, reason, and for the states that are an end, ended_ms.
Status SetSessionState(Database& database, std::string_view id, SessionState state,
                       std::string_view reason, int64_t now_ms);

Result<std::optional<SessionRecord>> FindSession(Database& database, std::string_view id);
// The newest of the tenant's sessions that has the name, live or ended.
Result<std::optional<SessionRecord>> FindSessionByName(Database& database, std::string_view tenant,
                                                       std::string_view name);
// Every session that has not ended, oldest first; what recovery goes through.
Result<std::vector<SessionRecord>> LiveSessions(Database& database);

struct SessionFilter {
  std::optional<std::string> tenant;
  std::optional<std::string> owner_key;
  std::vector<SessionState> states;  // empty: any
  Labels labels;                     // all of them must match
  std::string cursor;                // of the page before; empty for the first
  int limit = 100;                   // 1 to 1000
};
struct SessionPage {
  std::vector<SessionRecord> sessions;  // newest first
  std::string next_cursor;              // empty when this is the last page
};
// kInvalidArgument for a cursor that is none of ours or a limit out of range.
Result<SessionPage> ListSessions(Database& database, const SessionFilter& filter);

// The session made under this key before, or nothing. kConflict when it was made for another body.
Result<std::optional<std::string>> FindIdempotent(Database& database, const IdempotencyKey& key);
// kConflict when the key is taken.
Status InsertIdempotent(Database& database, const IdempotencyKey& key, std::string_view session_id,
                        int64_t now_ms);
// Frees the key, if any, that the session was made under.
Status ForgetIdempotent(Database& database, std::string_view session_id);

// Forgets sessions that ended before `before_ms` with their labels and execs, and idempotency keys
// older than that, at most `limit` sessions at a time. Gives the ids forgotten.
Result<std::vector<std::string>> PurgeSessions(Database& database, int64_t before_ms, int limit);

}  // namespace caisson::store
