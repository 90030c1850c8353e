// Shell completion scripts made from the option tables. Pure functions.
//
// The scripts complete verbs, option names, choices and file names without calling the program.
// Names of sessions come from `NAME ls --names`, which asks the server.
// What follows a verb's own options (Arity::kRest) is completed as a command line of its own.
#pragma once

#include <string>

#include "base/options.h"

namespace caisson::cli {

enum class Shell { kBash, kZsh, kFish };

// "bash", "zsh" or "fish"; kInvalidArgument for any other name.
Result<Shell> ParseShell(std::string_view name);

// A script to be sourced (bash, fish) or put on the fpath as _NAME (zsh; sourcing works too).
std::string CompletionScript(const Program& program, Shell shell);

}  // namespace caisson::cli
