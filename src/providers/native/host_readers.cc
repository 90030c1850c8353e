// The pure readers of host_checks.h.
#include <charconv>

#include "providers/native/host_checks.h"
#include "sys/text_file.h"

namespace caisson::native {
namespace {

struct Fix {
  KernelVersion first;  // of upstream's that has the bug
  // In which patch of each stable branch it is fixed; a branch that is not here has the bug when it
  // is older than `mainline`.
  std::span<const KernelVersion> branches;
  KernelVersion mainline;
  std::string_view name;
};

// Reachable with the calls that a sandbox may make. Distributions fix bugs without a new version
// number, so a match is a reason to look, not a verdict.
constexpr KernelVersion kDirtyPipe[] = {{5, 10, 102}, {5, 15, 25}, {5, 16, 11}};
constexpr KernelVersion kStackRot[] = {{6, 1, 37}, {6, 3, 11}, {6, 4, 1}};
constexpr Fix kFixes[] = {
    {{5, 8, 0}, kDirtyPipe, {5, 17, 0}, "CVE-2022-0847 (Dirty Pipe)"},
    {{6, 1, 0}, kStackRot, {6, 5, 0}, "CVE-2023-3269 (StackRot)"},
};

bool HasBug(const Fix& fix, KernelVersion version) {
  if (version < fix.first || version >= fix.mainline) return false;
  for (const auto& branch : fix.branches)
    if (branch.major == version.major && branch.minor == version.minor) return version < branch;
  return true;
}

// The number at the start of `text`, which is cut off.
std::optional<int> TakeNumber(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

std::string_view NextLine(std::string_view& rest) { return sys::NextPiece(rest, '\n'); }

}  // namespace

std::optional<KernelVersion> ParseKernelVersion(std::string_view release) {
  KernelVersion version;
  const auto major = TakeNumber(release);
  if (!major || !release.starts_with('.')) return std::nullopt;
  release.remove_prefix(1);
  const auto minor = TakeNumber(release);
  if (!minor) return std::nullopt;
  version.major = *major;
  version.minor = *minor;
  if (release.starts_with('.')) {
    release.remove_prefix(1);
    version.patch = TakeNumber(release).value_or(0);
  }
  return version;
}

std::vector<std::string_view> KnownBugs(KernelVersion version) {
  std::vector<std::string_view> bugs;
  for (const auto& fix : kFixes)
    if (HasBug(fix, version)) bugs.push_back(fix.name);
  return bugs;
}

bool HasIdRange(std::string_view text, std::string_view name, uint32_t uid) {
  const std::string number = std::to_string(uid);
  while (!text.empty()) {
    std::string_view line = NextLine(text);
    const std::string_view owner = sys::NextPiece(line, ':');
    const auto first = sys::ParseNumber(sys::NextPiece(line, ':')), count = sys::ParseNumber(line);
    if (first && count && *count >= 65536 && !owner.empty() && (owner == name || owner == number))
      return true;
  }
  return false;
}

std::string UserNameIn(std::string_view passwd, uint32_t uid) {
  while (!passwd.empty()) {
    std::string_view line = NextLine(passwd);
    const std::string_view name = sys::NextPiece(line, ':');
    sys::NextPiece(line, ':');
    if (sys::ParseNumber(sys::NextPiece(line, ':')) == uid) return std::string(name);
  }
  return "";
}

uint64_t SwapBytes(std::string_view swaps) {
  uint64_t kib = 0;
  NextLine(swaps);  // the heading
  while (!swaps.empty()) {
    std::string_view line = NextLine(swaps);
    int column = 0;
    while (!line.empty()) {
      const size_t start = line.find_first_not_of(" \t");
      if (start == std::string_view::npos) break;
      line.remove_prefix(start);
      const size_t end = std::min(line.find_first_of(" \t"), line.size());
      if (++column == 3) kib += sys::ParseNumber(line.substr(0, end)).value_or(0);
      line.remove_prefix(end);
    }
  }
  return kib * 1024;
}

}  // namespace caisson::native
