// The verb `serve`.
#pragma once

#include "base/options.h"

namespace caisson::cli {

std::span<const Option> ServeOptionTable();
Result<int> RunServe(const Parsed& parsed);

}  // namespace caisson::cli
