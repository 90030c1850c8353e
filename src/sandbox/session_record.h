// SessionRecord: everything that is known about a session, live or ended, as a plain value: what
// the journal keeps, lists give, and recovery begins with.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sandbox/provider.h"
#include "sandbox/session_spec.h"
#include "sandbox/wall_clock.h"

namespace caisson::sandbox {

enum class SessionState {
  kCreating,  // recorded; its sandbox is being made
  kRunning,
  kPaused,     // frozen
  kStopping,   // its end has been acknowledged
  kDestroyed,  // nothing of it is left
  kFailed,     // it never ran, or broke
  kLost,       // its sandbox has gone without our doing
};
std::string_view NameOf(SessionState state);  // stable
std::optional<SessionState> SessionStateFrom(std::string_view name);
// Destroyed, failed, lost.
bool HasEnded(SessionState state);
// The transition table: what may follow what.
bool MayBecome(SessionState from, SessionState to);

// Whose a session is.
struct Owner {
  std::string tenant;
  std::string key_id;
};

struct SessionRecord {
  std::string id;
  Owner owner;
  SessionState state = SessionState::kCreating;
  std::string reason;  // why it ended or is ending; else empty
  std::string provider;
  std::string sandbox_id;
  std::string boot_id;  // of the host that runs the sandbox
  SessionSpec spec;     // with what was changed since
  WallTime created, updated, expires;
  std::optional<WallTime> ended;
  std::optional<SandboxStats> stats;  // what it used, when it ended
};

// What the caller may see. Every field that is set narrows it.
struct Access {
  std::optional<std::string> tenant;   // sessions of this tenant
  std::optional<std::string> key_id;   // sessions made with this key
  std::optional<std::string> session;  // this session alone
  std::string home;                    // the tenant whose names the caller means

  bool Sees(const SessionRecord& record) const {
    return (!tenant || *tenant == record.owner.tenant) &&
           (!key_id || *key_id == record.owner.key_id) && (!session || *session == record.id);
  }
};

struct SessionQuery {
  Access access;
  StringMap labels;                  // all of them must match
  std::vector<SessionState> states;  // empty: those that have not ended
  std::string cursor;                // of the page before; empty for the first
  int limit = 100;                   // 1 to 1000
};
struct SessionPage {
  std::vector<SessionRecord> sessions;  // newest first
  std::string next_cursor;              // empty: the last page
};

}  // namespace caisson::sandbox
