// The self-audit: do the records, the live sessions and what the providers hold agree?
#pragma once

#include <string>
#include <vector>

namespace caisson::sandbox {

enum class FindingKind {
  kOrphan,          // a sandbox that no session and no pool has
  kMissingSandbox,  // a session whose sandbox is not there
  kUnrecorded,      // a live session without a record
  kUnknownRecord,   // a record that says live, of a session that is not
  kStateDiffers,    // record and session are in different states
  kSharedSandbox,   // two sessions with one sandbox
};

struct AuditFinding {
  FindingKind kind;
  std::string session_id, sandbox_id, provider;  // as far as they apply
  std::string text;                              // one sentence
};

struct AuditReport {
  size_t sessions = 0, sandboxes = 0, records = 0;  // looked at
  std::vector<AuditFinding> findings;
};

}  // namespace caisson::sandbox
