// HostView: what the checks of `doctor` look at. Text files of the kernel and of /etc are read
// below `root`, so tests give a directory of their own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "providers/native/host_trials.h"
#include "wire/launcher_protocol.h"

namespace caisson::native {

struct HostView {
  std::string root;            // "" for the real host
  std::string kernel_release;  // uname -r
  uid_t uid = 0;
  uint64_t capabilities = 0;   // effective, of this process
  uint64_t open_files = 0;     // hard RLIMIT_NOFILE
  std::string state_dir;       // where disks and caches go
  std::string launcher_error;  // why the launcher did not start; then there are no facts
  std::string launcher_remedy;
  std::vector<wire::launcher::Fact> facts;  // what the launcher found

  // Of this process on this host. The launcher's part stays empty.
  static HostView OfThisHost(std::string state_dir);

  // The file's text without the newline at its end; nothing when it cannot be read or is longer
  // than 1 MiB.
  std::optional<std::string> Text(std::string_view path) const;
  std::optional<int64_t> Number(std::string_view path) const;
  bool Exists(std::string_view path) const;
  // Whether a program of this name lies in the usual directories of programs.
  bool HasProgram(std::string_view name) const;
  // The launcher's fact of that name.
  std::optional<std::string_view> Fact(std::string_view name) const;
  bool rootless() const;
  // Whether this process' user namespace is the host's own, with all ids (user_namespaces(7)).
  bool has_all_ids() const;
  // What trials are made with: our own power where we have it over mounts and namespaces.
  Power power() const;
};

}  // namespace caisson::native
