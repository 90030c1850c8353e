#include "init/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "sys/unique_fd.h"

namespace caisson::init {
namespace {

struct CloseDir {
  void operator()(DIR* dir) const { closedir(dir); }
};
using UniqueDir = std::unique_ptr<DIR, CloseDir>;

std::string ProcPath(pid_t pid, std::string_view rest) {
  return "/proc/" + std::to_string(pid).append(rest);
}

// Calls `each(pid)` for the numeric entries of a directory of /proc.
template <typename Each>
void ForEachNumber(const std::string& path, Each each) {
  const UniqueDir dir(opendir(path.c_str()));
  if (!dir) return;
  while (const dirent* entry = readdir(dir.get())) {
    pid_t pid = 0;
    const char* end = entry->d_name + strlen(entry->d_name);
    const auto parsed = std::from_chars(entry->d_name, end, pid);
    if (parsed.ec == std::errc() && parsed.ptr == end) each(pid);
  }
}

// False when the kernel has no such file (built without CONFIG_PROC_CHILDREN) or it is gone.
bool ReadChildren(pid_t pid, pid_t thread, std::vector<pid_t>& children) {
  const std::string path = ProcPath(pid, "/task/" + std::to_string(thread) + "/children");
  const sys::UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return false;
  char buffer[4096];
  pid_t value = 0;
  ssize_t got;
  while ((got = read(fd.get(), buffer, sizeof buffer)) > 0) {
    for (ssize_t i = 0; i < got; ++i) {
      if (buffer[i] >= '0' && buffer[i] <= '9') {
        value = value * 10 + (buffer[i] - '0');
      } else if (value != 0) {
        children.push_back(value);
        value = 0;
      }
    }
  }
  return true;
}

pid_t ParentOf(pid_t pid) {
  const sys::UniqueFd fd(open(ProcPath(pid, "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return 0;
  char buffer[512];
  const ssize_t got = read(fd.get(), buffer, sizeof buffer);
  const std::string_view text(buffer, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  const size_t paren = text.rfind(')');  // the name before it may contain anything
  if (paren == std::string_view::npos || paren + 4 >= text.size()) return 0;
  pid_t parent = 0;
  std::from_chars(text.data() + paren + 4, text.data() + text.size(), parent);
  return parent;
}

std::vector<pid_t> ChildrenByScan(pid_t pid) {
  std::vector<pid_t> children;
  ForEachNumber("/proc", [&](pid_t candidate) {
    if (ParentOf(candidate) == pid) children.push_back(candidate);
  });
  return children;
}

bool HasChildrenFile() {
  static const bool has =
      access(ProcPath(getpid(), "/task/" + std::to_string(getpid()) + "/children").c_str(), R_OK) ==
      0;
  return has;
}

}  // namespace

std::vector<pid_t> ChildrenOf(pid_t pid) {
  if (!HasChildrenFile()) return ChildrenByScan(pid);
  std::vector<pid_t> children;
  const std::string tasks = ProcPath(pid, "/task");
  struct stat info;
  if (stat(tasks.c_str(), &info) != 0) return children;
  if (info.st_nlink == 3) {  // a single thread
    ReadChildren(pid, pid, children);
  } else {
    ForEachNumber(tasks, [&](pid_t thread) { ReadChildren(pid, thread, children); });
  }
  return children;
}

std::string NameOf(pid_t pid) {
  const sys::UniqueFd fd(open(ProcPath(pid, "/comm").c_str(), O_RDONLY | O_CLOEXEC));
  char buffer[32];
  const ssize_t got = fd ? read(fd.get(), buffer, sizeof buffer) : 0;
  std::string name(buffer, static_cast<size_t>(std::max<ssize_t>(got, 0)));
  if (name.ends_with('\n')) name.pop_back();
  return name;
}

std::vector<pid_t> TreeOf(const std::vector<pid_t>& roots) {
  std::vector<pid_t> found = roots;
  for (size_t i = 0; i < found.size(); ++i) {
    for (const pid_t child : ChildrenOf(found[i])) found.push_back(child);
  }
  std::ranges::sort(found);
  found.erase(std::ranges::unique(found).begin(), found.end());
  return found;
}

bool StopNew(const std::vector<pid_t>& found, std::vector<pid_t>& stopped) {
  bool any = false;
  for (const pid_t pid : found) {
    if (std::ranges::binary_search(stopped, pid)) continue;
    kill(pid, SIGSTOP);
    any = true;
  }
  if (any) {
    std::vector<pid_t> all;
    std::ranges::set_union(stopped, found, std::back_inserter(all));
    stopped = std::move(all);
  }
  return any;
}

void KillFound(const std::vector<pid_t>& found, const std::vector<pid_t>& stopped) {
  for (const pid_t pid : found) kill(pid, SIGKILL);
  for (const pid_t pid : stopped) {
    if (!std::ranges::binary_search(found, pid)) kill(pid, SIGCONT);
  }
}

}  // namespace caisson::init
