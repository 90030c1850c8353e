// Sessions, commands and what they used, as JSON.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "sandbox/command_records.h"
#include "sandbox/exec_report.h"
#include "sandbox/process_feed.h"
#include "sandbox/session.h"
#include "sandbox/session_record.h"

namespace caisson::api {

// "2026-01-31T12:00:00.123Z"
std::string ToText(sandbox::WallTime time);

json::Object ToJson(const sandbox::SessionRecord& record);
// With what isolates it and the limits as they are enforced.
json::Object ToJson(const sandbox::Session& session);
json::Object ToJson(const sandbox::SandboxStats& stats);
json::Array ToJson(const std::vector<sandbox::LimitState>& limits);
json::Object ToJson(const sandbox::ExecReport& report);
json::Object ToJson(const sandbox::KeptArtifact& artifact);
// A command as it stands: running, or how it ended.
json::Object ToJson(const sandbox::ProcessFeed& process);
// One that has ended and is not at hand any more.
json::Object ToJson(const sandbox::CommandRecord& record);
// What can be had of its output.
json::Object OutputRange(const sandbox::ProcessFeed& process);

// "outcome", "exit_code", "signal", "usage" and "duration_ms" of a command that has ended.
void AddOutcome(json::Object& to, const sandbox::ExecOutcome& outcome);
// Output as text under `name`; when it is not UTF-8, exactly under `name`_base64 as well.
void AddOutput(json::Object& to, std::string_view name, std::string_view bytes);

}  // namespace caisson::api
