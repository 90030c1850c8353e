// The settings of a configurable verb as they stand: every value, and where it came from.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/options.h"

namespace caisson::cli {

// A table: key in the file (or the flag, where there is no key), value, origin. Options without a
// value say so.
std::string ShowSettings(std::span<const Option> options, const Parsed& parsed);

// The same as one JSON object: {"settings":[{"option","key","env","value"|"values","source",
// "origin"}]}.
std::string SettingsAsJson(std::span<const Option> options, const Parsed& parsed);

// The table of a verb that shows the settings of another: `options` and --json.
std::vector<Option> SettingsOptions(std::span<const Option> options);
// The function of such a verb: prints the settings, as JSON when --json is given.
Result<int> PrintSettings(std::span<const Option> options, const Parsed& parsed);

}  // namespace caisson::cli
