// AuditAnchor: the head of the audit log, kept in a file beside the database.
//
// Follows the Writer: after each flush that brought new records to the disk, and before they are
// acknowledged, it notes how far the log reaches. It is thus never ahead of the disk, and never
// behind an acknowledged record as long as the machine runs; after power loss it may lag by what
// was appended in the last seconds. When the log does not agree with it (records were cut off or
// exchanged) it stays where it is, so that the evidence is not overwritten.
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "store/audit_log.h"
#include "store/data_dir.h"
#include "store/writer.h"

namespace caisson::store {

class AuditAnchor : public FlushObserver {
 public:
  // Opens the anchor of `dir`, or makes one. An anchor that cannot be read is an error: it is not
  // silently begun anew.
  static Result<std::unique_ptr<AuditAnchor>> Open(DataDir& dir);

  // What the file says now; nothing before the first record.
  Result<std::optional<AuditHead>> Read() const;

  Status OnCommitted(Database& database) override;
  void BeforeFlush() override;
  Status AfterFlush() override;

 private:
  explicit AuditAnchor(sys::UniqueFd file) : file_(std::move(file)) {}

  sys::UniqueFd file_;
  std::mutex mutex_;
  AuditHead committed_;
  AuditHead flushing_;
  std::optional<AuditHead> first_;  // what the file said when it was opened; until compared
  bool frozen_ = false;             // the log does not agree
  int64_t written_ = 0;             // the count in the file; the flusher's
};

}  // namespace caisson::store
