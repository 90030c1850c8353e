// Times are milliseconds since 1970 UTC. JSON is text that the layers above wrote and read.
#include <array>

#include "store/migrations.h"

namespace caisson::store {
namespace {

constexpr const char* kStep1 = R"sql(
CREATE TABLE sessions (
  id TEXT PRIMARY KEY, name TEXT, tenant TEXT NOT NULL, owner_key TEXT NOT NULL,
  state TEXT NOT NULL, provider TEXT NOT NULL, environment TEXT NOT NULL,
  sandbox_id TEXT NOT NULL, boot_id TEXT NOT NULL, generation INTEGER NOT NULL,
  spec TEXT NOT NULL, metadata TEXT NOT NULL, reason TEXT NOT NULL, stats TEXT NOT NULL,
  created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL, expires_ms INTEGER, ended_ms INTEGER
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX sessions_live_name ON sessions (tenant, name)
  WHERE name IS NOT NULL AND ended_ms IS NULL;
CREATE INDEX sessions_newest ON sessions (created_ms, id);
CREATE INDEX sessions_tenant_newest ON sessions (tenant, created_ms, id);
CREATE INDEX sessions_live ON sessions (created_ms) WHERE ended_ms IS NULL;
CREATE INDEX sessions_ended ON sessions (ended_ms) WHERE ended_ms IS NOT NULL;

CREATE TABLE session_labels (
  session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  key TEXT NOT NULL, value TEXT NOT NULL,
  PRIMARY KEY (session_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_labels_by_label ON session_labels (key, value, session_id);

CREATE TABLE idempotency (
  tenant TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, session_id TEXT NOT NULL,
  created_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_age ON idempotency (created_ms);

CREATE TABLE execs (
  session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  id TEXT NOT NULL, command TEXT NOT NULL, key_id TEXT NOT NULL,
  status TEXT NOT NULL, reason TEXT NOT NULL, exit_code INTEGER,
  cpu_us INTEGER NOT NULL, memory_peak INTEGER NOT NULL,
  stdout_end INTEGER NOT NULL, stderr_end INTEGER NOT NULL,
  started_ms INTEGER NOT NULL, ended_ms INTEGER,
  PRIMARY KEY (session_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX execs_newest ON execs (session_id, started_ms, id);
CREATE INDEX execs_open ON execs (started_ms) WHERE ended_ms IS NULL;

CREATE TABLE keys (
  id TEXT PRIMARY KEY, name TEXT NOT NULL, tenant TEXT NOT NULL, role TEXT NOT NULL,
  scopes TEXT NOT NULL, hash TEXT NOT NULL, next_hash TEXT, limits TEXT NOT NULL,
  created_by TEXT NOT NULL, created_ms INTEGER NOT NULL, expires_ms INTEGER,
  rotated_ms INTEGER, last_used_ms INTEGER, revoked_ms INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, time_ms INTEGER NOT NULL, tenant TEXT NOT NULL,
  session_id TEXT NOT NULL, type TEXT NOT NULL, body TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_session ON events (session_id, seq);
CREATE INDEX events_age ON events (time_ms);

CREATE TABLE usage (
  tenant TEXT NOT NULL, key_id TEXT NOT NULL, day INTEGER NOT NULL,
  requests INTEGER NOT NULL, creates INTEGER NOT NULL, execs INTEGER NOT NULL,
  cpu_us INTEGER NOT NULL, sandbox_ms INTEGER NOT NULL,
  bytes_in INTEGER NOT NULL, bytes_out INTEGER NOT NULL,
  PRIMARY KEY (tenant, key_id, day)
) STRICT, WITHOUT ROWID;

CREATE TABLE webhooks (
  id TEXT PRIMARY KEY, tenant TEXT NOT NULL, url TEXT NOT NULL, secret TEXT NOT NULL,
  types TEXT NOT NULL, active INTEGER NOT NULL, created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE deliveries (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  webhook_id TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
  event_seq INTEGER NOT NULL, ordering_key TEXT NOT NULL, body TEXT NOT NULL,
  state TEXT NOT NULL, attempts INTEGER NOT NULL, next_ms INTEGER NOT NULL,
  last_error TEXT NOT NULL, created_ms INTEGER NOT NULL, ended_ms INTEGER
) STRICT;
CREATE INDEX deliveries_due ON deliveries (next_ms) WHERE state = 'pending';
CREATE INDEX deliveries_order ON deliveries (webhook_id, ordering_key, id) WHERE state = 'pending';
CREATE INDEX deliveries_ended ON deliveries (ended_ms) WHERE ended_ms IS NOT NULL;

CREATE TABLE artifacts (
  id TEXT PRIMARY KEY, session_id TEXT NOT NULL, tenant TEXT NOT NULL, path TEXT NOT NULL,
  size INTEGER NOT NULL, sha256 TEXT NOT NULL, media_type TEXT NOT NULL,
  created_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX artifacts_by_session ON artifacts (session_id, created_ms, id);
CREATE INDEX artifacts_age ON artifacts (created_ms);

CREATE TABLE audit (
  seq INTEGER PRIMARY KEY, time_ms INTEGER NOT NULL, tenant TEXT NOT NULL, actor TEXT NOT NULL,
  key_id TEXT NOT NULL, source TEXT NOT NULL, verb TEXT NOT NULL, object TEXT NOT NULL,
  decision TEXT NOT NULL, reason TEXT NOT NULL, request_id TEXT NOT NULL, hash TEXT NOT NULL
) STRICT;
CREATE INDEX audit_time ON audit (time_ms);
CREATE INDEX audit_actor ON audit (actor, seq);
CREATE INDEX audit_object ON audit (object, seq);

CREATE TABLE log_restarts (one INTEGER PRIMARY KEY, count INTEGER NOT NULL) STRICT;
)sql";

constexpr const char* kStep2 = R"sql(
ALTER TABLE events ADD COLUMN key_id TEXT NOT NULL DEFAULT '';
ALTER TABLE execs ADD COLUMN usage TEXT NOT NULL DEFAULT '{}';
CREATE INDEX sessions_by_name ON sessions (tenant, name, created_ms) WHERE name IS NOT NULL;
CREATE INDEX execs_ended ON execs (ended_ms) WHERE ended_ms IS NOT NULL;
)sql";

constexpr std::array kSteps = {kStep1, kStep2};

}  // namespace

std::span<const char* const> SchemaSteps() { return kSteps; }

}  // namespace caisson::store
