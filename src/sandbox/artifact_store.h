// ArtifactStore: where kept files go. Whole or not at all.
#pragma once

#include <memory>
#include <string>

#include "async/task.h"
#include "sandbox/exec_report.h"
#include "sandbox/session_record.h"

namespace caisson::sandbox {

// A file that is being kept. Discarded when it goes uncommitted.
class ArtifactWriter {
 public:
  virtual ~ArtifactWriter() = default;
  virtual Task<Status> Write(std::string data) = 0;
  // Makes it last. Gives the name it is found by.
  virtual Task<Result<std::string>> Commit() = 0;
};

class ArtifactStore {
 public:
  virtual ~ArtifactStore() = default;
  // `path` is where it stands in the sandbox. kResourceExhausted when there is no room for it.
  virtual Task<Result<std::unique_ptr<ArtifactWriter>>> Open(const SessionRecord* session,
                                                             std::string path) = 0;
};

}  // namespace caisson::sandbox
