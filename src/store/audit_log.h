// The audit log: who did what to which object, as a chain that shows every later change.
//
// Record n carries SHA-256(hash of record n-1, its own fields), and the records are numbered
// without gaps from 1. The head (how many, and the last hash) is also kept apart, in
// audit_anchor.h, so that cutting records off the end shows too. Whoever can rewrite the whole
// table and the anchor can forge the log; export it to another place to notice that.
//
// Records hold names and decisions, never bodies, secrets or control bytes: what is not plain UTF-8
// text is replaced when a record is appended, and long fields are cut.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace caisson::store {

struct AuditRecord {
  int64_t seq = 0;  // given by the log
  int64_t time_ms = 0;
  std::string tenant;
  std::string actor;     // who, as people know them: the key's name, the token's subject
  std::string key_id;    // what they showed
  std::string source;    // where from: an address
  std::string verb;      // "create"
  std::string object;    // "session/ID"
  std::string decision;  // "allow", "deny", or the outcome
  std::string reason;
  std::string request_id;
  std::string hash;  // hex, given by the log
};

struct AuditHead {
  int64_t count = 0;
  std::string hash;  // hex; of the empty log: 64 zeros
  bool operator==(const AuditHead&) const = default;
};

// Adds a record at the end, inside the caller's transaction. Give it to Store::Write with kDurable
// and Purpose::kShrink.
Status AppendAudit(Database& database, const AuditRecord& record);
Result<AuditHead> HeadOfAudit(Database& database);

struct AuditFilter {
  std::optional<std::string> tenant;
  std::optional<int64_t> from_ms;  // inclusive
  std::optional<int64_t> to_ms;    // exclusive
  std::string actor;               // empty: any; likewise below
  std::string verb;
  std::string object;
  std::string decision;
  int64_t before_seq = INT64_MAX;  // of the page before: its last seq
  int limit = 100;                 // 1 to 1000
};
// Newest first.
Result<std::vector<AuditRecord>> QueryAudit(Database& database, const AuditFilter& filter);

// One JSON object per line, oldest first, with the fields' names as above. Stops at the first error
// of `line`.
Status ExportAudit(Database& database, int64_t after_seq,
                   const std::function<Status(std::string_view line)>& line);

// The first thing that is not as it was written.
struct AuditFinding {
  int64_t seq = 0;  // of the record that is wrong or missing
  std::string what;
};
// Goes through the whole log. `anchor` is what is known of its end from elsewhere; a log that goes
// on after it is sound. Nothing when all is well; an Error only when the log could not be read.
Result<std::optional<AuditFinding>> VerifyAudit(Database& database,
                                                const std::optional<AuditHead>& anchor);

}  // namespace caisson::store
