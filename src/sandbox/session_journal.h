// SessionJournal: where sessions are written down. What is acknowledged survives the server's
// death; nothing here waits for a flush to the disk.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "async/task.h"
#include "sandbox/session_record.h"

namespace caisson::sandbox {

// A create that may come twice.
struct IdempotentCreate {
  std::string tenant, key;
  std::string digest;  // of the request
};

class SessionJournal {
 public:
  virtual ~SessionJournal() = default;
  // A new one; with its key, when it has one, at once or not at all. kConflict when the id, the
  // key, or the name among the tenant's live sessions is taken.
  virtual Task<Status> Insert(SessionRecord record, std::optional<IdempotentCreate> key) = 0;
  // The whole record of a known one. One that failed gives its key back: whoever comes again with
  // it gets another session.
  virtual Task<Status> Save(SessionRecord record) = 0;
  virtual Task<Result<std::optional<SessionRecord>>> Find(std::string id) = 0;
  // The newest that has the name, live or ended.
  virtual Task<Result<std::optional<SessionRecord>>> FindNamed(std::string tenant,
                                                               std::string name) = 0;
  // The id of the session made under this key. kConflict when it was made for another request.
  virtual Task<Result<std::optional<std::string>>> FindIdempotent(IdempotentCreate key) = 0;
  // All that have not ended, oldest first.
  virtual Task<Result<std::vector<SessionRecord>>> Live() = 0;
  virtual Task<Result<SessionPage>> List(SessionQuery query) = 0;
};

}  // namespace caisson::sandbox
