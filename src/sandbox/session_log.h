// SessionLog: what ran in a session and what it said, kept after the session's end.
//
// DIRECTORY/ID/log.jsonl holds one JSON object on each line: a command's start, pieces of its
// output, its outcome. When the file is full it becomes log.1.jsonl, replacing the one before. Of
// one command only the first output is kept; the log says where it stopped. A command that was
// taken over from an earlier server is followed from where its log ends. Writing is done by a
// thread of its own and nobody waits for it; when it cannot keep up or fails, lines are dropped and
// counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "async/task_set.h"
#include "async/thread_pool.h"
#include "sandbox/session.h"
#include "store/blobs.h"

namespace caisson::sandbox {

struct LogOptions {
  uint64_t file_bytes = 4 * kMiB;
  uint64_t command_bytes = 256 * 1024;  // of output of one command
  uint64_t waiting_bytes = 16 * kMiB;   // not written yet, of all sessions
};

class SessionLog {
 public:
  // The blobs outlive it.
  SessionLog(async::Loop& loop, store::Blobs& blobs, LogOptions options = {});
  // Writes what waits.
  ~SessionLog();

  // Follows a command to its end.
  void Follow(const Session& session, std::shared_ptr<ProcessFeed> process);

  // Bytes of the log from `offset` on, at most `max`: the older file, then the newer one. Empty at
  // the end, and when nothing was logged. Knows nothing of who may read it.
  Task<Result<std::string>> Read(std::string session_id, uint64_t offset, uint32_t max);
  // Completes when everything that was logged before is in the files.
  Task<void> Flush();

  uint64_t dropped_lines() const { return dropped_; }

 private:
  // Shared with the writing thread.
  struct Shared {
    std::atomic<uint64_t> waiting = 0, failed = 0;
  };

  // What the log has of a command already.
  struct Logged {
    bool started = false, ended = false;
    FeedOffsets end;     // one past the last byte of each stream
    uint64_t bytes = 0;  // of both
  };
  static Result<Logged> Scan(store::Blobs& blobs, const std::string& session_id, uint32_t process);

  Task<void> FollowTask(std::string session_id, std::shared_ptr<ProcessFeed> process,
                        std::unique_ptr<ProcessFeed::Subscription> output, uint64_t room);
  Task<void> AdoptTask(std::string session_id, std::shared_ptr<ProcessFeed> process);
  void AppendStart(const std::string& session_id, const ProcessFeed& process);
  void Append(const std::string& session_id, std::string line);

  async::Loop& loop_;
  const LogOptions options_;
  store::Blobs& blobs_;
  std::shared_ptr<Shared> shared_;
  uint64_t dropped_ = 0;
  async::ThreadPool writer_{1};
  async::TaskSet tasks_;
};

}  // namespace caisson::sandbox
