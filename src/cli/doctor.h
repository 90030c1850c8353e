// The verb `doctor` (cli/verbs.h): examines the host and prints what works, what is weaker, and how
// to fix it. Its exit status is 0 when sandboxes work on this host, even where they are weaker than
// they could be, and 1 when they do not.
#pragma once

#include <string>

#include "providers/native/doctor.h"

namespace caisson::cli {

enum class Colour { kNone, kAnsi };
// The report for people: a block per group, marks in front, remedies below what they mend, a
// summary at the end.
std::string ShowReport(const native::DoctorReport& report, Colour colour);

}  // namespace caisson::cli
