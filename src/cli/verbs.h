// The verbs of the command line: one file each, one function each, and its table of options.
#pragma once

#include <span>

#include "base/options.h"

namespace caisson::cli {

std::span<const Option> ExecOptions();
Result<int> RunExec(const Parsed& parsed);

std::span<const Option> DoctorOptions();
Result<int> RunDoctor(const Parsed& parsed);

std::span<const Option> SweepOptions();
Result<int> RunSweep(const Parsed& parsed);

Result<int> RunVersion(const Parsed& parsed);
Result<int> RunCompletion(const Parsed& parsed);

// Those that talk to a server (api_client.h), each with its own table.
Verb CreateVerb();
Verb LsVerb();
Verb InspectVerb();
Verb StatsVerb();
Verb TopVerb();
Verb ShellVerb();
Verb AttachVerb();
Verb CpVerb();
Verb LogsVerb();
Verb PauseVerb();
Verb ResumeVerb();
Verb RmVerb();
Verb EventsVerb();
Verb KeysVerb();
Verb AuditVerb();
Verb LoginVerb();
Verb ConfigVerb();

// The whole table; main.cc defines it.
const Program& TheProgram();

}  // namespace caisson::cli
