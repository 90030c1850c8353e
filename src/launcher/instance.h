// An instance: one running launcher, known to the host by a directory with a lock.
//
// `RUN_DIR/instances/<id>/lock` is held (flock) as long as the launcher lives. Every object that
// outlives a process carries the instance's id in its name: cgroups `caisson-<id>`, files below the
// instance's state directory, whose path stands in `RUN_DIR/instances/<id>/state`. So whoever comes
// next can tell a dead instance from a live one, and sweep the dead.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "sys/unique_fd.h"

namespace caisson::launcher {

class Instance {
 public:
  // Makes and locks a new instance below `run_dir`, and its own directory below `state_dir` (both
  // made when absent, mode 0700).
  static Result<Instance> Start(const std::string& run_dir, const std::string& state_dir);
  Instance(Instance&&) = default;
  Instance& operator=(Instance&&) = delete;
  ~Instance();  // removes both directories

  const std::string& id() const { return id_; }
  const std::string& directory() const { return directory_; }
  const std::string& state_directory() const { return state_directory_; }

 private:
  Instance(std::string id, std::string directory, std::string state_directory, sys::UniqueFd lock)
      : id_(std::move(id)),
        directory_(std::move(directory)),
        state_directory_(std::move(state_directory)),
        lock_(std::move(lock)) {}
  std::string id_, directory_, state_directory_;
  sys::UniqueFd lock_;
};

struct SweepReport {
  std::vector<std::string> swept;     // instances that were dead and are gone now
  std::vector<std::string> problems;  // what could not be removed, and why
};
// Removes what dead instances below `run_dir` left: processes, cgroups, loop devices, layers,
// directories. Live instances are not touched. Idempotent; safe to run at any time, by several at
// once.
SweepReport SweepDeadInstances(const std::string& run_dir);

}  // namespace caisson::launcher
