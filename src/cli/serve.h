// The verb `serve`.
#pragma once

#include "base/options.h"

namespace caisson::cli {

std::span<const Option> ServeOptionTable();
Result<int> RunServe(const Parsed& parsed);

// `settings`: the server's settings as they stand, and where each came from.
std::span<const Option> SettingsOptionTable();
Result<int> RunSettings(const Parsed& parsed);

}  // namespace caisson::cli
