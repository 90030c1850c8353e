// ProcessFeed: the output of one command, read once and given to any number of subscribers.
//
// One reader takes events from the Process and keeps the newest in a ring of bounded size. Each
// subscriber has its own place, may start at any offset, and is told of bytes that it can no longer
// have. A subscriber that holds makes the reader, and with it the command, wait until it has taken
// what is there; the others never do: for them the oldest bytes go first. After the output comes
// the outcome, once for each subscriber, and it never changes.
//
// Owned by shared_ptr: a session keeps it while the process is of interest, subscribers as long as
// they read. Letting go of the last one detaches from the command, which goes on.
#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "async/event.h"
#include "async/task_set.h"
#include "sandbox/provider.h"
#include "sandbox/wall_clock.h"

namespace caisson::sandbox {

// Bytes of a stream that are gone: from the offset `from` up to `to`, that one excluded.
struct OutputGap {
  Stream stream = Stream::kStdout;
  uint64_t from = 0, to = 0;
};
using FeedItem = std::variant<OutputChunk, OutputGap, ExecOutcome>;

enum class Pace { kHolds, kFollows };

// Where a subscriber begins in each stream.
struct FeedOffsets {
  uint64_t out = 0, err = 0;
};

// Whether this server started a command, or found it running.
enum class ProcessOrigin { kStarted, kAdopted };

// What is known of a command from its start on.
struct ProcessFacts {
  std::string command;  // for people
  std::string label;
  Stdio stdio = Stdio::kPipes;
  WallTime started;
  std::vector<std::string> argv = {};  // of an adopted one: not known
  std::string cwd = {}, user = {};
  ProcessOrigin origin = ProcessOrigin::kStarted;
};

class ProcessFeed : public std::enable_shared_from_this<ProcessFeed> {
 public:
  static constexpr size_t kRingBytes = 1024 * 1024;

  ProcessFeed(async::Loop& loop, std::unique_ptr<Process> process, ProcessFacts facts,
              size_t ring_bytes = kRingBytes);

  // Begins to read. Subscribers that hold and must not miss a byte come before.
  void Start();

  uint32_t handle() const { return process_->handle(); }
  int pid() const { return process_->pid(); }
  const ProcessFacts& facts() const { return facts_; }
  // How it ended, once it has.
  const std::optional<ExecOutcome>& outcome() const { return outcome_; }
  // Offsets one past the newest byte read.
  FeedOffsets end() const { return end_; }
  // Offsets of the oldest bytes that can be had.
  FeedOffsets begin() const;

  class Subscription {
   public:
    ~Subscription();
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;
    // The next item; nothing after the outcome. Destroy the task before the subscription.
    Task<std::optional<FeedItem>> Next();
    // The same, when it is there already.
    std::optional<FeedItem> Poll();
    bool ended() const { return ended_; }

   private:
    friend class ProcessFeed;
    Subscription(std::shared_ptr<ProcessFeed> feed, Pace pace, FeedOffsets from);
    std::optional<FeedItem> GapBefore(Stream stream, uint64_t offset);

    std::shared_ptr<ProcessFeed> feed_;
    const Pace pace_;
    uint64_t next_;       // number of the chunk it looks at next
    FeedOffsets wanted_;  // the next byte of each stream
    bool ended_ = false;
    std::list<Subscription*>::iterator place_;
  };
  std::unique_ptr<Subscription> Subscribe(Pace pace, FeedOffsets from);

  Task<ExecOutcome> Wait();

  // As Process; kGone once it has ended. Whoever awaits them holds the feed.
  Task<Status> Write(std::string data);
  Task<Status> CloseStdin();
  Task<Status> Signal(int signo, SignalScope scope);
  Task<Status> Resize(uint16_t rows, uint16_t cols);

 private:
  Task<void> Read();
  void Append(OutputChunk chunk);
  void Finish(ExecOutcome outcome);
  // Drops the oldest chunks that nobody holds, down to the bound.
  void Trim();
  bool Full() const { return bytes_ >= ring_bytes_; }
  Status Alive() const;

  const size_t ring_bytes_;
  const ProcessFacts facts_;
  std::unique_ptr<Process> process_;
  std::deque<OutputChunk> ring_;
  uint64_t first_ = 0;  // number of the chunk at the ring's front
  size_t bytes_ = 0;    // of the ring, with what a chunk costs besides its data
  FeedOffsets end_;
  std::optional<ExecOutcome> outcome_;
  std::list<Subscription*> subscriptions_;
  async::Event changed_;  // there is something new to take
  async::Event taken_;    // somebody who held went on
  async::TaskSet reader_;
};

}  // namespace caisson::sandbox
