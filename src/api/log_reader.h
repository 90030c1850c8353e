// LogReader: a session's log line by line, also while it grows and its files are exchanged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sandbox/session_log.h"

namespace caisson::api {

class LogReader {
 public:
  // The log outlives it.
  LogReader(sandbox::SessionLog& log, std::string session_id)
      : log_(log), session_id_(std::move(session_id)) {}

  // The lines after those given before that are there now, some of them: none when there are no
  // more. Each is a JSON object. Lines that went away before they were read are told as
  // {"event": "gap"}.
  Task<Result<std::vector<std::string>>> Next();

 private:
  Task<Result<std::string>> Read();
  // Whether the files were exchanged, so that the place in them is another.
  Task<Result<bool>> HasMoved();
  std::vector<std::string> TakeLines(std::string bytes);

  sandbox::SessionLog& log_;
  const std::string session_id_;
  uint64_t offset_ = 0;
  std::string partial_;   // the beginning of a line
  std::string last_;      // the line given last
  bool seeking_ = false;  // for the line after `last_`, from the beginning
};

}  // namespace caisson::api
