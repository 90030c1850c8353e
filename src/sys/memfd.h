// A program held in sealed memory: it can be executed and read, never written again, by anyone.
#pragma once

#include <string_view>

#include "base/result.h"
#include "sys/unique_fd.h"

namespace caisson::sys {

// A CLOEXEC memfd that holds `program`, sealed against writing, growing, shrinking and unsealing.
Result<UniqueFd> MakeSealedProgram(const char* name, std::string_view program);

}  // namespace caisson::sys
