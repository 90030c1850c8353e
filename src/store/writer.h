// Writer: the one place that writes to the database, with group commit.
//
// Theory of operation. Two threads. The committer takes everything that waits, runs it in one
// transaction (each piece of work undone alone when it fails) and commits, which hands the pages to
// the operating system and waits for no disk. Work that is kSoon is acknowledged then: readers see
// it and it survives kill -9 of the server. The flusher calls fsync on the log: at once when
// something kDurable waits, so that all that gathered during the previous fsync shares the next
// one, and otherwise at most 50 ms after a commit. It also copies the log back into the file when
// there is time, and pays for the fsync that starting the log anew costs, so that no commit has to.
//
// When an fsync fails, nothing is acknowledged any more and every later write is refused
// (kUnavailable): the kernel has marked the pages clean, so trying again would lie. When the disk
// is full, work that makes things fewer or must be recorded (Purpose::kShrink) gets the data
// directory's reserve, and work that adds (kGrow) is refused with kResourceExhausted until the
// reserve could be made again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "store/data_dir.h"
#include "store/database.h"

namespace caisson::store {

enum class Durability {
  kSoon,     // acknowledged when committed
  kDurable,  // acknowledged when flushed to the disk
};

enum class Purpose {
  kGrow,    // refused while the disk is full
  kShrink,  // destroys, audit: may use the reserve
};

// Is told how far the database has come. Owned by the caller; outlives the Writer.
class FlushObserver {
 public:
  virtual ~FlushObserver() = default;
  // After a commit, on the committer's thread.
  virtual Status OnCommitted(Database& database) = 0;
  // Before and after a flush that succeeded, on the flusher's thread. What was committed when
  // BeforeFlush was called is on the disk when AfterFlush is. An error of either fails the flush.
  virtual void BeforeFlush() = 0;
  virtual Status AfterFlush() = 0;
};

class Writer {
 public:
  // Must have no effect but on the database, since it may be run a second time after the first was
  // undone. Runs on the committer's thread, inside a transaction.
  using Work = std::function<Status(Database&)>;
  // Called exactly once, on a thread of the Writer's; must not block.
  using Done = std::function<void(Status)>;

  struct Options {
    std::string vfs;
    std::chrono::milliseconds flush_every{50};
    int64_t checkpoint_after = 1000;  // pieces of work, when idle; four times as many otherwise
    size_t max_waiting = 10'000;
    std::chrono::milliseconds reserve_retry{1000};  // how often making the reserve again is tried
    FlushObserver* observer = nullptr;
  };

  // Opens the database of `dir` (which outlives the Writer), brings its schema up to date, and
  // starts the threads.
  static Result<std::unique_ptr<Writer>> Open(DataDir& dir, Options options);
  // Finishes and flushes everything that was submitted.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // From any thread. kResourceExhausted when too much waits.
  void Submit(Durability durability, Purpose purpose, Work work, Done done);

  // Why writes are refused, when they are (a flush failed).
  Status health() const;
  // Whether the reserve is in use, so that work of kGrow is refused.
  bool out_of_space() const;

 private:
  struct Item {
    Durability durability;
    Purpose purpose;
    Work work;
    Done done;
    Status result;
  };

  Writer(DataDir& dir, Options options, Database committing, Database flushing);

  void CommitLoop();
  void RunGroup(std::vector<Item>& group);
  bool RunTogether(std::vector<Item>& group);
  void RunAlone(Item& item);
  Status Admit(Purpose purpose);
  bool TryMakeReserve();
  void Acknowledge(std::vector<Item>& group);

  void FlushLoop();
  bool MustFlush(std::chrono::steady_clock::time_point now) const;  // mutex_ held
  Status Flush();
  Status CheckpointWhenDue();
  void Fail(const Error& error);

  DataDir& dir_;
  const Options options_;
  Database committing_;  // used by the committer alone
  Database flushing_;    // used by the flusher alone

  mutable std::mutex mutex_;
  std::condition_variable submitted_;
  std::condition_variable committed_;
  std::deque<Item> waiting_;
  std::vector<Item> unflushed_;  // committed, not acknowledged
  bool dirty_ = false;           // something committed is not flushed
  std::chrono::steady_clock::time_point dirty_since_;
  std::chrono::steady_clock::time_point last_commit_;
  int64_t since_checkpoint_ = 0;
  bool out_of_space_ = false;
  std::chrono::steady_clock::time_point reserve_tried_;
  std::optional<Error> failure_;
  bool ending_ = false;
  bool committer_ended_ = false;

  std::thread flusher_;
  std::thread committer_;
};

}  // namespace caisson::store
