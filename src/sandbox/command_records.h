// CommandRecords: what ran in each session and how it ended, also after the session's end and after
// that of the server.
//
// A record is written when a command starts and again when it ends; nobody waits for that, and a
// command whose record could not be written runs all the same, which the log says. What was given
// to the command as environment or input is not part of it. Belongs to one Loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/task_set.h"
#include "log/logger.h"
#include "sandbox/process_feed.h"
#include "store/store.h"

namespace caisson::sandbox {

struct CommandRecord {
  std::string session_id;
  uint32_t process = 0;
  std::string command;  // for people
  std::string label;
  std::vector<std::string> argv;  // of a long one only the beginning
  std::string cwd, user;          // as they were asked for; empty: the sandbox's own
  Stdio stdio = Stdio::kPipes;
  WallTime started;
  std::optional<WallTime> ended;
  std::optional<ExecOutcome> outcome;  // once it has ended; kUnknown when nobody saw it
};

struct CommandPage {
  std::vector<CommandRecord> commands;  // newest first
  std::string next_cursor;              // empty when this is the last page
};

class CommandRecords {
 public:
  static constexpr size_t kArgvBytes = 8192;

  // The store outlives it.
  CommandRecords(async::Loop& loop, store::Store& store, log::Logger log,
                 WallClock clock = SystemTime);

  // Writes down that the command runs, and how it ends when it does.
  void Follow(std::string session_id, std::shared_ptr<ProcessFeed> process);

  // Sees everything that was to be written before the call.
  Task<Result<std::optional<CommandRecord>>> Find(std::string session_id, uint32_t process);
  // Those that have ended. kInvalidArgument for a cursor that is none of ours.
  Task<Result<CommandPage>> ListEnded(std::string session_id, std::string cursor, int limit);

  // What an earlier server left open and nobody runs any more is given the outcome kUnknown.
  // `runs` tells whether a session has such a process now.
  using Runs = std::function<bool(const std::string& session_id, uint32_t process)>;
  Task<Status> CloseForgotten(Runs runs);

 private:
  Task<void> FollowTask(std::string session_id, std::shared_ptr<ProcessFeed> process);
  Task<void> Write(store::Writer::Work work, store::Purpose purpose);
  Task<Status> Written();

  store::Store& store_;
  const log::Logger log_;
  const WallClock clock_;
  async::TaskSet tasks_;
};

}  // namespace caisson::sandbox
