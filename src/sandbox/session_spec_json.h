// A SessionSpec as JSON text for the records, and back.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "sandbox/provider.h"
#include "sandbox/session_spec.h"

namespace caisson::sandbox {

// Everything but name, labels and metadata, which records keep beside it.
std::string SpecToJson(const SessionSpec& spec);
// Fields that are not there have today's defaults. kInvalidArgument for what is no spec.
Result<SessionSpec> SpecFromJson(std::string_view text);

std::string MapToJson(const StringMap& map);
Result<StringMap> MapFromJson(std::string_view text);

std::string StatsToJson(const SandboxStats& stats);
Result<SandboxStats> StatsFromJson(std::string_view text);

}  // namespace caisson::sandbox
