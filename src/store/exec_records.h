// What is known about each command that ran in a session.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace caisson::store {

struct ExecRecord {
  std::string session_id;
  std::string id;
  std::string command;             // JSON: argv, cwd, user; never the environment or the input
  std::string key_id;              // who ran it
  std::string status = "running";  // of the outcome, once it has ended
  std::string reason;
  std::optional<int> exit_code;
  int64_t cpu_us = 0;
  int64_t memory_peak = 0;  // bytes
  int64_t stdout_end = 0;   // offset after the last byte of output
  int64_t stderr_end = 0;
  int64_t started_ms = 0;
  std::optional<int64_t> ended_ms;
  std::string usage = "{}";  // JSON: what it used, in full
};

// kConflict when the session has such an exec already.
Status InsertExec(Database& database, const ExecRecord& record);
// Writes the outcome, once: an exec that has ended is left as it is, with kConflict. kNotFound when
// there is none.
Status FinishExec(Database& database, const ExecRecord& record);
Result<std::optional<ExecRecord>> FindExec(Database& database, std::string_view session_id,
                                           std::string_view id);
// Those of every session that have not ended; what recovery goes through.
Result<std::vector<ExecRecord>> OpenExecs(Database& database);

struct ExecPage {
  std::vector<ExecRecord> execs;  // newest first
  std::string next_cursor;        // empty when this is the last page
};
// Those that have ended. kInvalidArgument for a bad cursor or a limit outside 1 to 1000.
Result<ExecPage> ListEndedExecs(Database& database, std::string_view session_id,
                                std::string_view cursor, int limit);

}  // namespace caisson::store
