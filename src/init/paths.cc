#include "init/paths.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>

namespace caisson::init {
namespace {

// The text for an error message: the path, bounded, printable.
std::string Shown(std::string_view path) {
  std::string shown;
  for (const char c : path.substr(0, 200)) shown += c >= ' ' && c <= '~' ? c : '?';
  if (path.size() > 200) shown += "...";
  return shown;
}

std::string_view WithoutTrailingSlashes(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return path;
}

}  // namespace

Status CheckPath(std::string_view path) {
  if (path.contains('\0')) return Error::FromErrno("the path contains a NUL byte", EINVAL);
  if (!path.starts_with('/'))
    return Error::FromErrno("the path is not absolute: " + Shown(path), EINVAL);
  return {};
}

Result<sys::UniqueFd> OpenPath(int directory, const std::string& path, int flags, unsigned mode) {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags) | O_CLOEXEC;
  how.mode = mode;
  how.resolve = RESOLVE_NO_MAGICLINKS;
  while (true) {
    const long fd = syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how);
    if (fd >= 0) return sys::UniqueFd(static_cast<int>(fd));
    if (errno != EINTR && errno != EAGAIN) return Error::FromErrno(Shown(path));
  }
}

std::string ParentPath(const std::string& path) {
  const std::string_view trimmed = WithoutTrailingSlashes(path);
  const size_t slash = trimmed.rfind('/');
  return std::string(WithoutTrailingSlashes(trimmed.substr(0, slash + 1)));
}

Result<Place> FindPlace(const std::string& path) {
  CAISSON_TRY(CheckPath(path));
  const std::string_view trimmed = WithoutTrailingSlashes(path);
  const std::string leaf(trimmed.substr(trimmed.rfind('/') + 1));
  if (leaf.empty() || leaf == "." || leaf == "..") {
    return Error::FromErrno(Shown(path) + " does not name an entry of a directory", EINVAL);
  }
  CAISSON_ASSIGN(sys::UniqueFd parent, OpenPath(AT_FDCWD, ParentPath(path), O_PATH | O_DIRECTORY));
  return Place{.parent = std::move(parent), .leaf = leaf};
}

Status MakeDirectories(const std::string& path, unsigned mode) {
  CAISSON_TRY(CheckPath(path));
  CAISSON_ASSIGN(sys::UniqueFd at, OpenPath(AT_FDCWD, "/", O_PATH | O_DIRECTORY));
  std::string_view rest = path;
  while (true) {
    rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
    if (rest.empty()) return {};
    const std::string name(rest.substr(0, rest.find('/')));
    rest.remove_prefix(name.size());
    const bool last = rest.find_first_not_of('/') == std::string_view::npos;
    auto next = OpenPath(at.get(), name, O_PATH | O_DIRECTORY);
    if (!next && next.error().sys_errno() == ENOENT) {
      if (mkdirat(at.get(), name.c_str(), last ? mode : 0755) != 0 && errno != EEXIST) {
        return Error::FromErrno("making " + Shown(path));
      }
      next = OpenPath(at.get(), name, O_PATH | O_DIRECTORY);
    }
    if (!next) return std::move(next).error().Because("making " + Shown(path));
    at = *std::move(next);
  }
}

std::string DescriptorPath(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

}  // namespace caisson::init
