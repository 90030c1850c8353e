// What a sandbox and a command are asked to be. Plain values; a provider checks them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "sandbox/isolation.h"
#include "sandbox/limits.h"

namespace caisson::sandbox {

enum class Profile {
  kDefault,  // root inside, which can install packages and add users
  kStrict,   // no capability, read-only root except /tmp and /workspace
};
enum class MountMode { kReadWrite, kReadOnly };
enum class DiskBackend { kAuto, kTmpfs, kLoop, kQuota };

struct MountSpec {
  std::string source;  // on the host; absolute
  std::string target;  // inside; absolute
  MountMode mode = MountMode::kReadOnly;
};

struct SandboxSpec {
  std::string id;  // empty: the provider chooses; [a-z0-9]{8,40}
  std::string environment = "host";
  std::string rootfs;  // a directory or tar on the host, instead of an environment
  Profile profile = Profile::kDefault;
  std::string user;                        // default user; empty: root, or uid 1000 in strict
  std::string hostname;                    // empty: "caisson"
  std::map<std::string, std::string> env;  // for every command
  std::vector<MountSpec> mounts;
  DiskBackend disk_backend = DiskBackend::kAuto;
  Limits limits;
  IsolationLevel min_isolation = IsolationLevel::kAny;
};

enum class Stdio { kPipes, kPty };
enum class StdinKind { kNull, kOpen };
enum class OnOverflow { kBlock, kDropOldest };

struct ExecSpec {
  std::vector<std::string> argv;
  std::map<std::string, std::string> env;  // on top of the sandbox's
  std::string cwd;                         // empty: /workspace when it exists, else the user's home
  std::string user;                        // empty: the sandbox's
  Stdio stdio = Stdio::kPipes;
  StdinKind stdin_kind = StdinKind::kNull;
  OnOverflow on_overflow = OnOverflow::kBlock;
  uint16_t rows = 24, cols = 80;
  std::optional<std::chrono::milliseconds> timeout;  // empty: the sandbox's wall_time
  std::optional<uint64_t> output_limit;              // empty: the sandbox's output_bytes
  std::string label;
};

}  // namespace caisson::sandbox
