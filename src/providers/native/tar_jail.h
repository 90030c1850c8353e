// The confined child that unpacks an archive; see import_tar.h for the theory of operation.
#pragma once

#include <string>

#include "base/result.h"
#include "providers/native/import_tar.h"
#include "sys/process.h"
#include "sys/unique_fd.h"

namespace caisson::native {

struct TarJail {
  sys::Child child;      // killed and reaped when it goes out of scope
  sys::UniqueFd input;   // a stream socket: send the archive, then shut it down
  sys::UniqueFd report;  // gives one TarReport, then ends
};

// Starts the child for the empty directory `target` (an absolute path of ours). With root it keeps
// the capabilities that chown and chmod need; without, it runs in a user namespace of its own.
// A child that could not be confined says so in its report and unpacks nothing.
Result<TarJail> StartTarJail(const std::string& target, const ImportLimits& limits);

}  // namespace caisson::native
