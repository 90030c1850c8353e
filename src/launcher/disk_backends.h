// The backends behind launcher/disk.h, one .cc each. Nobody else includes this.
#pragma once

#include <memory>
#include <string>

#include "launcher/disk.h"

namespace caisson::launcher {

// The request has been checked against the bounds of disk.h.
Result<std::unique_ptr<Disk>> CreateTmpfsDisk(const DiskRequest& request);
Result<std::unique_ptr<Disk>> CreateLoopDisk(const DiskRequest& request,
                                             const std::string& state_dir);
Result<std::unique_ptr<Disk>> CreateQuotaDisk(const DiskRequest& request,
                                              const std::string& state_dir);

DiskProbe ProbeTmpfs();
DiskProbe ProbeLoop();
DiskProbe ProbeQuota(const std::string& state_dir);

Status CheckDiskBounds(uint64_t bytes, uint64_t inodes);

// Walls and use of the whole file system below `fd`, by statfs.
Result<DiskStats> StatsOfFileSystem(int fd);

}  // namespace caisson::launcher
