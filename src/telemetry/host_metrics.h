// What /metrics shows of the host: processors, memory, load, the disk of the data directory, and
// pressure where the kernel measures it (PSI, Linux 4.20).
#pragma once

#include <string>

#include "telemetry/metrics.h"

namespace caisson::telemetry {

struct HostPaths {
  std::string disk;            // a directory on the file system that is shown
  std::string proc = "/proc";  // another one for tests
};

// Declares the metrics; each is read when somebody looks. One that this kernel does not have is not
// declared, and one that cannot be read any more is 0.
void AddHostMetrics(Registry& registry, const HostPaths& paths);

}  // namespace caisson::telemetry
