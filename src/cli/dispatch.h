// From argv to a verb's function: the part of main() that is the same for every verb.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/options.h"

namespace caisson::cli {

// Parses `args` (without the program's name), answers help and version requests on stdout, or runs
// the verb, with the settings of its files if it is configurable (cli/configuration.h). Gives the
// process' exit status: the verb's own, or that of the error (base/error.h), which is printed on
// stderr with its remedy. `help [VERB] --json` prints DescribeAsJson().
int Dispatch(const Program& program, std::span<const std::string_view> args,
             const Surroundings& surroundings);

// "caisson exec: --memory: "12Q" is not a size\n  write a size such as …\n". Several lines of a
// message stay as they are; nothing in it can move the terminal's cursor.
std::string ShowError(const Program& program, const Verb* verb, const Error& error);

// Writes all of `text` to stdout. False when it could not (closed pipe, full disk).
bool WriteOut(std::string_view text);

}  // namespace caisson::cli
