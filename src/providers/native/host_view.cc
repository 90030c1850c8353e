#include "providers/native/host_view.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/units.h"
#include "sys/capabilities.h"
#include "sys/text_file.h"

namespace caisson::native {

HostView HostView::OfThisHost(std::string state_dir) {
  HostView view;
  utsname name{};
  if (uname(&name) == 0) view.kernel_release = name.release;
  view.uid = geteuid();
  // Without a readable state no capability is taken for granted.
  if (auto state = sys::ReadCapabilities(getpid())) view.capabilities = state->effective;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) view.open_files = limit.rlim_max;
  view.state_dir = std::move(state_dir);
  return view;
}

std::optional<std::string> HostView::Text(std::string_view path) const {
  auto text = sys::ReadText(AT_FDCWD, (root + std::string(path)).c_str());
  if (!text) return std::nullopt;
  while (text->ends_with('\n')) text->pop_back();
  return *std::move(text);
}

std::optional<int64_t> HostView::Number(std::string_view path) const {
  const auto text = Text(path);
  if (!text) return std::nullopt;
  auto number = ParseInteger(*text);
  if (!number) return std::nullopt;
  return *number;
}

bool HostView::Exists(std::string_view path) const {
  return access((root + std::string(path)).c_str(), F_OK) == 0;
}

bool HostView::HasProgram(std::string_view name) const {
  for (const char* dir :
       {"/usr/local/sbin/", "/usr/local/bin/", "/usr/sbin/", "/usr/bin/", "/sbin/", "/bin/"})
    if (access((root + dir + std::string(name)).c_str(), X_OK) == 0) return true;
  return false;
}

std::optional<std::string_view> HostView::Fact(std::string_view name) const {
  for (const auto& fact : facts)
    if (fact.name == name) return fact.value;
  return std::nullopt;
}

bool HostView::rootless() const {
  const auto mode = Fact("mode");
  return mode ? *mode == "rootless" : uid != 0;
}

bool HostView::has_all_ids() const {
  const auto map = Text("/proc/self/uid_map");
  if (!map) return true;
  std::string_view line = sys::FirstLine(*map);
  return line.substr(line.find_last_of(" \t") + 1) == "4294967295";
}

Power HostView::power() const {
  return (capabilities & sys::CapBit(CAP_SYS_ADMIN)) != 0 ? Power::kOwn : Power::kUserNamespace;
}

}  // namespace caisson::native
