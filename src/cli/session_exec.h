// exec SESSION -- command: a command in a session on a server, with our streams.
#pragma once

#include "base/options.h"

namespace caisson::cli {

Result<int> RunSessionExec(const Parsed& parsed);
// Options of `exec` that make sense only with a session are not given without one.
Status CheckLocalExec(const Parsed& parsed);

// {"A": "1"} of every --env A=1 (or another option of such pairs). kInvalidArgument otherwise.
Result<std::vector<std::pair<std::string, std::string>>> PairsOf(const Parsed& parsed,
                                                                 std::string_view option);
// 126 and 127 where a command cannot be started through its own fault; else the error's own code.
int CodeOfStartError(const Error& error);

}  // namespace caisson::cli
