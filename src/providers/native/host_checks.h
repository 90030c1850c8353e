// The checks of `doctor`: what this host offers to sandboxes, what is weaker than it could be, and
// what to type to change it.
//
// A check is a row of a table: group, name, function. Most read text of the kernel's through a
// HostView; some try a thing in a child process (host_trials.h). None changes the host.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "providers/native/host_trials.h"
#include "providers/native/host_view.h"

namespace caisson::native {

enum class CheckStatus : uint8_t {
  kOk,
  kOff,     // an optional feature is not there; nothing is weaker unless it is asked for
  kWeaker,  // sandboxes work, with one protection or limit less
  kFailed,  // sandboxes do not work without it
};
std::string_view NameOf(CheckStatus status);  // "ok", "off", "weaker", "failed"; stable

struct CheckResult {
  CheckStatus status = CheckStatus::kOk;
  std::string detail;  // one line: what is so, and what it means
  std::string remedy;  // a command or an instruction; empty where there is none or nothing is wrong
};

struct CheckLine {
  std::string_view group, name;
  CheckResult result;
};

struct Check {
  std::string_view group, name;
  CheckResult (*run)(const HostView& host);
};

// The fixed part of the table, in the order of the report.
std::span<const Check> HostChecks();

// One line per sysctl that hardens the host against code that got further than it should.
std::vector<CheckLine> SysctlLines(const HostView& host);
// One line per namespace kind and file system feature, as tried.
std::vector<CheckLine> NamespaceLines(const HostView& host);
std::vector<CheckLine> FileSystemLines(const FileSystemTrial& trial, Power power);
// One line per controller and disk back end, from the launcher's facts. Without facts: why there
// are none.
std::vector<CheckLine> LauncherLines(const HostView& host);

// All of the above, in order. Blocks for some tens of milliseconds.
std::vector<CheckLine> CheckHost(const HostView& host);

// --- the readers behind the rows
// ------------------------------------------------------------------
struct KernelVersion {
  int major = 0, minor = 0, patch = 0;
  auto operator<=>(const KernelVersion&) const = default;
};
// "6.1.0-13-amd64": 6.1.0. A missing third number is 0.
std::optional<KernelVersion> ParseKernelVersion(std::string_view release);
// Bugs of that version that code in a sandbox can reach, by upstream's version numbers:
// "CVE-2022-0847 (Dirty Pipe)".
std::vector<std::string_view> KnownBugs(KernelVersion version);
// Whether `name` or `uid` has a range of at least 65 536 ids in the text of a subuid(5) file.
bool HasIdRange(std::string_view text, std::string_view name, uint32_t uid);
// The name of `uid` in the text of a passwd(5) file; empty when it has none.
std::string UserNameIn(std::string_view passwd, uint32_t uid);
// Bytes of swap in the text of /proc/swaps.
uint64_t SwapBytes(std::string_view swaps);

}  // namespace caisson::native
