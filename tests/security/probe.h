// The escape probes: attempts of the catalogue, each a row of a table.
//
// Theory of operation. The tests carry this static program into a sandbox and run it there.
// `probe NAME` makes one attempt and prints one JSON line {name, result, errno, detail};
// `probe --all` makes every attempt, each in a forked child under a deadline, so that an attempt
// that is killed by the filter (SIGSYS) or hangs costs only its own line.
//
// A verdict says what the attempt met, never whether that is right: the tests compare it with the
// row's expectation for profile and user. An attempt that reports failure proves little, so
// the cases that leave traces outside are judged there as well (tests/security/test_outside.py).
//
// Attempts are written so that success does no harm: they undo what they did, open without writing,
// set what is set already. Those that cannot be (kRisky) run from `--all` only with `--inside`.
#pragma once

#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace caisson::probe {

enum class Kind {
  kRefused,  // the attempt failed; `error` says how: an errno, a signal, or EMPTY
  kOpen,     // the attempt succeeded
  kOk,       // something was looked at and is as it should be
  kError,    // the attempt could not be made
  kSkipped,  // the attempt was not made: it needs --inside
};

struct Verdict {
  Kind kind = Kind::kError;
  std::string error;   // "EPERM", "SIGSYS", "EMPTY"
  std::string detail;  // for people
};

Verdict Refused(int error_number, std::string detail = {});
Verdict Open(std::string detail = {});
Verdict Ok(std::string detail = {});
Verdict Failed(std::string detail);  // kError, with the current errno
// A file or directory that shows nothing counts as refused, with the error EMPTY.
Verdict Empty(std::string detail = {});
// The usual case: `result` of a system call, with errno still set.
Verdict Judge(long result, std::string detail = {});
// kOk when `problems` is empty, otherwise kOpen with it.
Verdict Unless(std::string problems, std::string when_fine = {});

enum Risk : uint8_t { kSafe, kRisky };

// What is expected: alternatives separated by '|', each an errno, a signal, EMPTY, open or ok. A
// part "root=…" or "user=…" after ';' overrides for uid 0 or for others. "any" is recorded only.
struct Attempt {
  const char* id;      // the catalogue's, with a suffix where one line is several attempts
  const char* impact;  // the class: Escape, HostLeak, …
  const char* what;
  const char* expected_default;
  const char* expected_strict;
  Risk risk;
  Verdict (*run)();
};

std::span<const Attempt> NamespaceAttempts();   // A
std::span<const Attempt> MountAttempts();       // B
std::span<const Attempt> ProcAttempts();        // C
std::span<const Attempt> DescriptorAttempts();  // D
std::span<const Attempt> KernelAttempts();      // E
std::span<const Attempt> NetworkAttempts();     // F
std::span<const Attempt> DeviceAttempts();      // G
std::span<const Attempt> ProcessAttempts();     // H, I

// Programs that need arguments: stress, sentinels' counterparts, the heartbeat. `arguments`
// excludes the program and the tool's name. The result is the exit status.
struct Tool {
  const char* name;
  const char* usage;
  int (*run)(std::span<char* const> arguments);
};
std::span<const Tool> Tools();
std::span<const Tool> StressTools();

// --- what the attempts share --------------------------------------------------------------------

// What only the freshly started process can see, taken before anything else is opened.
struct Descriptor {
  int number;
  std::string target;  // of the link in /proc/self/fd
  uint32_t mode;       // st_mode
};
struct StartState {
  std::vector<Descriptor> descriptors;
};
const StartState& AtStart();
void RecordStart();

std::string ErrnoName(int error_number);
std::string SignalName(int number);
std::string JsonString(std::string_view text);
// At most `limit` bytes; empty and errno set when it cannot be read.
std::string ReadFile(const char* path, size_t limit = 65536);
// The text after "name:" in /proc/self/status (or the given one), without blanks around it.
std::string StatusField(std::string_view status, std::string_view name);
std::string StatusField(std::string_view name);
std::vector<std::string> ListDirectory(const char* path);
// A fresh path below the first writable one of /tmp, /workspace, /dev/shm.
std::string ScratchPath(std::string_view name);
// Opens for writing and closes at once: being able to is the opening.
Verdict OpenForWriting(const char* path);
// Reads a little: bytes are an opening, none is EMPTY.
Verdict ReadSome(const char* path);
// Copies this program to `path` with the mode. 0 or an errno.
int CopySelf(const std::string& path, unsigned mode);
// Runs `argv` in a child; the wait status, or -1.
int RunProgram(const std::vector<std::string>& argv);

}  // namespace caisson::probe
