// Provider, Sandbox, Process: what every kind of isolation implements.
//
// Ownership: a Provider makes Sandboxes, a Sandbox makes Processes; each outlives what it made. All
// calls on objects of one provider come from one Loop; none of them blocks it. A call that is
// destroyed in flight is not waited for any more; what it asked for may still happen. Errors are
// about the call; a command that fails is an outcome.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "async/loop.h"
#include "base/result.h"
#include "sandbox/files.h"
#include "sandbox/limits.h"
#include "sandbox/outcome.h"
#include "sandbox/spec.h"

namespace caisson::sandbox {

enum class Stream : uint8_t { kStdout, kStderr };

struct OutputChunk {
  Stream stream;
  uint64_t offset;  // of its first byte in the stream
  std::string data;
};
using ProcessEvent = std::variant<OutputChunk, ExecOutcome>;  // the outcome comes last, once

enum class SignalScope { kProcess, kGroup, kTree };

// A command in a sandbox. Letting go of the object detaches; the command goes on.
class Process {
 public:
  virtual ~Process() = default;
  virtual uint32_t handle() const = 0;  // names it in Sandbox::Attach
  virtual int pid() const = 0;          // inside

  // The next piece of output or the outcome. Output that is not fetched makes the command wait.
  virtual Task<Result<ProcessEvent>> Next() = 0;
  // Writes to stdin; completes when the command's pipe has taken all of it.
  virtual Task<Status> Write(std::string data) = 0;
  virtual Task<Status> CloseStdin() = 0;
  virtual Task<Status> Signal(int signo, SignalScope scope) = 0;
  virtual Task<Status> Resize(uint16_t rows, uint16_t cols) = 0;
};

struct ProcessInfo {
  uint32_t handle = 0;
  int pid = 0;
  bool ended = false;
  uint64_t started_ns = 0;  // CLOCK_REALTIME
  uint64_t stdout_begin = 0, stdout_end = 0, stderr_begin = 0, stderr_end = 0;
  std::string command, label;
};

// What isolates a sandbox, read back from the kernel or the engine that runs it.
struct IsolationFact {
  std::string name, value;
};
struct SandboxReport {
  std::string provider;
  std::string level;  // the name of its IsolationLevel
  std::vector<IsolationFact> isolation;
  std::vector<LimitState> limits;
};

struct SandboxStats {
  uint64_t memory_bytes = 0, memory_peak_bytes = 0, oom_kills = 0;
  std::chrono::microseconds cpu{0}, cpu_throttled{0};
  uint64_t pids = 0, pids_limit_hits = 0;
  uint64_t io_read_bytes = 0, io_write_bytes = 0;
  uint64_t disk_bytes = 0, disk_used_bytes = 0, disk_inodes = 0, disk_used_inodes = 0;
};

class Sandbox {
 public:
  virtual ~Sandbox() = default;
  virtual async::Loop& loop() const = 0;
  virtual const std::string& id() const = 0;
  virtual const SandboxReport& report() const = 0;
  // Whether it is known to have ended. False does not say that it lives.
  virtual bool gone() const { return false; }

  virtual Task<Result<std::unique_ptr<Process>>> Start(ExecSpec spec) = 0;
  // Takes up a process started earlier, from these offsets of its output.
  virtual Task<Result<std::unique_ptr<Process>>> Attach(uint32_t handle, uint64_t stdout_from,
                                                        uint64_t stderr_from) = 0;
  virtual Task<Result<std::vector<ProcessInfo>>> Processes() = 0;
  virtual Task<Status> Release(uint32_t handle) = 0;  // forgets an ended one

  virtual Files& files() = 0;

  virtual Task<Result<std::vector<LimitState>>> Update(Limits limits) = 0;
  virtual Task<Status> Pause() = 0;
  virtual Task<Status> Resume() = 0;
  virtual Task<Result<SandboxStats>> Stats() = 0;
  // Ends it. All its processes are gone when this completes; calling it again is kGone.
  virtual Task<Result<SandboxStats>> Destroy() = 0;
};

struct ProviderCapabilities {
  bool pause = false, live_limits = false, pty = false, watch = false, adoption = false,
       strict_profile = false;
  IsolationLevel isolation = IsolationLevel::kAny;  // of its sandboxes
};

// Sandboxes that ended without being asked to.
struct Loss {
  std::string sandbox_id;  // empty: every one that is `gone`
  std::string reason;      // for people
};

class Provider {
 public:
  virtual ~Provider() = default;
  virtual async::Loop& loop() const = 0;
  virtual std::string_view name() const = 0;
  virtual ProviderCapabilities capabilities() const = 0;
  virtual Task<Result<std::unique_ptr<Sandbox>>> Create(SandboxSpec spec) = 0;
  // Sandboxes that live, whoever made them; and one of them taken over, with its processes and
  // their output. One that was paused runs again once it is taken over.
  virtual Task<Result<std::vector<std::string>>> List() = 0;
  virtual Task<Result<std::unique_ptr<Sandbox>>> Adopt(std::string id) = 0;
  // Ends one that nobody has taken over. All its processes are gone when this completes; kNotFound
  // when there is none.
  virtual Task<Status> Remove(std::string id) = 0;
  // `handler` runs, from the loop, when sandboxes are lost. What a provider does not notice by
  // itself, a comparison with List finds.
  virtual void OnLoss(std::function<void(const Loss&)> handler) { (void)handler; }
};

}  // namespace caisson::sandbox
