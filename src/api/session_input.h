// What requests about sessions and commands ask for, read from their JSON.
#pragma once

#include <string>

#include "json/json.h"
#include "sandbox/exec_report.h"
#include "sandbox/session_manager.h"

namespace caisson::api {

Result<sandbox::SessionSpec> ReadSessionSpec(const json::Value& body);
Result<sandbox::SessionPatch> ReadSessionPatch(const json::Value& body);

// How a command's caller wants its output.
enum class ExecManner { kWait, kBackground };
struct ExecInput {
  sandbox::ExecRequest request;
  ExecManner manner = ExecManner::kWait;
};
Result<ExecInput> ReadExec(const json::Value& body);

// A signal's name ("SIGTERM", "TERM") or number. kInvalidArgument otherwise.
Result<int> SignalFrom(const json::Value& value);

// A process_id of a path. kNotFound when it is none.
Result<uint32_t> ParseHandle(const std::string& text);

}  // namespace caisson::api
