// A program held in sealed memory: it can be executed and read, never written again, by anyone.
#pragma once

#include <string_view>

#include "base/result.h"
#include "sys/unique_fd.h"

namespace caisson::sys {

// Who may read a program's file. A process that runs a program which it may not read is not
// dumpable, and its /proc entries belong to a user that may: the kernel hides it from its equals
// (would_dump in fs/exec.c).
enum class Readable { kByOwner, kByNobody, kByAll };

// A CLOEXEC memfd that holds `program`, sealed against writing, growing, shrinking and unsealing.
Result<UniqueFd> MakeSealedProgram(const char* name, std::string_view program, Readable readable);

}  // namespace caisson::sys
