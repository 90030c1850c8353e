// Retention: forgets what is older than it has to be: records of ended sessions with their
// commands, logs, artifacts, events, figures of usage, and files that belong to nobody.
//
// Looks every few minutes and works in small batches, on the threads of the store and the disk. A
// crash in the middle does no harm: records go before their files, and files without a record go
// when they are found. The audit log is not touched. Belongs to one Loop's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "async/task_set.h"
#include "async/thread_pool.h"
#include "log/logger.h"
#include "sandbox/wall_clock.h"
#include "store/blobs.h"
#include "store/store.h"

namespace caisson::sandbox {

// How long things are kept; zero: for ever.
struct RetentionOptions {
  std::chrono::milliseconds records = std::chrono::days(30);  // since the session's end
  std::chrono::milliseconds logs = std::chrono::days(7);      // since the session's end
  std::chrono::milliseconds artifacts = std::chrono::days(7);
  std::chrono::milliseconds events = std::chrono::days(7);
  std::chrono::milliseconds usage = std::chrono::days(400);
  int64_t max_events = 1'000'000;  // at most so many, also when they are young
  std::chrono::milliseconds interval = std::chrono::minutes(10);
  // Files without a record that are younger may still get one.
  std::chrono::milliseconds unclaimed = std::chrono::hours(1);
};

// What one pass has removed.
struct Forgotten {
  int64_t sessions = 0, logs = 0, artifacts = 0, events = 0, unclaimed = 0;
  bool Any() const { return sessions + logs + artifacts + events + unclaimed > 0; }
};

class Retention {
 public:
  // What it works on; all of it outlives it.
  struct Parts {
    async::Loop& loop;
    store::Store& store;
    store::Blobs& blobs;
    async::ThreadPool& disk;
    log::Logger log;
    WallClock clock = SystemTime;
  };
  Retention(Parts parts, RetentionOptions options);

  // Begins to look, now and from time to time.
  void Start();
  // One pass over everything. Fails where the store or the disk does; the rest is for the next one.
  Task<Result<Forgotten>> Pass();

 private:
  Task<void> WatchTask();
  Task<Status> ForgetSessions(Forgotten* done);
  Task<Status> ForgetEvents(Forgotten* done);
  Task<Status> ForgetUsage();
  Task<Status> ForgetArtifacts(Forgotten* done);
  Task<Status> SweepLogs(Forgotten* done);
  Task<Status> SweepArtifacts(Forgotten* done);
  Task<Result<std::vector<std::string>>> Ids(store::BlobArea area);
  Task<Status> Remove(store::BlobArea area, std::vector<std::string> ids);
  // The moment before which things of this age were made.
  int64_t Before(std::chrono::milliseconds age) const;

  Parts parts_;
  const RetentionOptions options_;
  async::TaskSet tasks_;
};

}  // namespace caisson::sandbox
