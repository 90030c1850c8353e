// Help and reference texts made from the option tables (base/options.h). Pure functions.
#pragma once

#include <string>

#include "base/options.h"

namespace caisson::cli {

// `caisson --help`: the verbs with their summaries, then the global options. 100 columns.
std::string ProgramHelp(const Program& program);

// `caisson VERB --help`: usage, details, arguments, options by section, examples. 100 columns.
std::string VerbHelp(const Program& program, const Verb& verb);

// "caisson exec [OPTIONS] [--] [COMMAND...]"
std::string Usage(const Program& program, const Verb& verb);

// What stands for an option's value in help: its own placeholder or the kind's ("SIZE"); empty for
// flags.
std::string Placeholder(const Option& option);

// The kind's stable name in the machine-readable description: "size", "duration", …
std::string_view KindName(ValueKind kind);

// The whole program as one line of JSON: verbs, options, positionals, examples, and the table of
// errors. The reference documentation is generated from it.
std::string DescribeAsJson(const Program& program);

}  // namespace caisson::cli
