#include "launcher/instance.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>

#include "launcher/disk.h"
#include "sys/cgroup.h"
#include "sys/remove_tree.h"
#include "sys/resctrl.h"
#include "sys/text_file.h"

namespace caisson::launcher {
namespace {

std::string RandomId() {
  unsigned char raw[10];
  size_t got = 0;
  while (got < sizeof raw) {
    const ssize_t n = getrandom(raw + got, sizeof raw - got, 0);
    if (n > 0) got += static_cast<size_t>(n);
  }
  static constexpr char kAlphabet[] = "0123456789abcdefghijklmnopqrstuv";
  std::string id;
  for (const unsigned char byte : raw) id += kAlphabet[byte % 32];
  return id;
}

Status MakeDirectories(const std::string& path) {
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    if (mkdir(part.c_str(), slash == std::string::npos ? 0700 : 0755) != 0 && errno != EEXIST)
      return Error::FromErrno("make the directory " + part)
          .WithRemedy("set CAISSON_HOME to a directory that you may write to");
    if (slash == std::string::npos) return {};
  }
}

sys::UniqueFd LockFile(const std::string& directory) {
  sys::UniqueFd lock(
      open((directory + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock && flock(lock.get(), LOCK_EX | LOCK_NB) != 0) lock.Reset();
  return lock;
}

Status RemoveDirectory(const std::string& parent, const std::string& name) {
  sys::UniqueFd dir(open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir) return Error::FromErrno("open " + parent);
  CAISSON_TRY(sys::RemoveTree(dir.get(), name.c_str()));
  return {};
}

Status RemovePath(const std::string& path) {
  const size_t slash = path.rfind('/');
  return RemoveDirectory(path.substr(0, slash), path.substr(slash + 1));
}

// What a dead instance left, in the order in which it can be removed.
Status SweepOne(const std::string& directory, const std::string& id) {
  CAISSON_TRY(sys::CgroupTree::SweepInstance({}, id, std::chrono::seconds(5)));
  sys::ResctrlGroup::Sweep({}, id);
  sys::UniqueFd dir(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  auto state = dir ? sys::ReadText(dir.get(), "state", 4096)
                   : Result<std::string>(Error::FromErrno("open " + directory));
  if (!state || !state->ends_with("/disks/" + id)) return {};  // it died before it had one
  struct stat info{};
  if (stat(state->c_str(), &info) != 0) return {};
  CAISSON_TRY(SweepDisks(*state));
  return RemovePath(*state);
}

}  // namespace

Result<Instance> Instance::Start(const std::string& run_dir, const std::string& state_dir) {
  const std::string parent = run_dir + "/instances";
  CAISSON_TRY(MakeDirectories(parent));
  const std::string id = RandomId(), directory = parent + "/" + id;
  // Locked under another name first: a sweeper must never see it unlocked.
  const std::string birth = parent + "/.new-" + id;
  if (mkdir(birth.c_str(), 0700) != 0)
    return Error::FromErrno("make the instance directory " + birth);
  sys::UniqueFd lock = LockFile(birth);
  const std::string state = state_dir + "/disks/" + id;
  sys::UniqueFd pointer(
      open((birth + "/state").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!pointer ||
      write(pointer.get(), state.data(), state.size()) != static_cast<ssize_t>(state.size()))
    return Error::FromErrno("write " + birth + "/state");
  if (!lock || rename(birth.c_str(), directory.c_str()) != 0)
    return Error::FromErrno("lock the instance directory " + directory);
  CAISSON_TRY(MakeDirectories(state));
  return Instance(id, directory, state, std::move(lock));
}

Instance::~Instance() {
  if (!lock_) return;
  // Whatever fails here is found by the next sweep.
  (void)SweepDisks(state_directory_);
  (void)RemovePath(state_directory_);
  (void)RemovePath(directory_);
}

SweepReport SweepDeadInstances(const std::string& run_dir) {
  SweepReport report;
  const std::string parent = run_dir + "/instances";
  DIR* dir = opendir(parent.c_str());
  if (dir == nullptr) return report;
  std::vector<std::string> names;
  while (const dirent* entry = readdir(dir)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(dir);
  for (const auto& name : names) {
    const std::string directory = parent + "/" + name;
    const bool newborn = name.starts_with(".new-");
    struct stat info{};
    // A newborn that is a minute old was left by a launcher that died before it had a name.
    if (newborn && (stat(directory.c_str(), &info) != 0 || time(nullptr) - info.st_mtime < 60))
      continue;
    sys::UniqueFd lock = LockFile(directory);
    if (!lock) continue;  // alive
    if (!newborn) {
      auto swept = SweepOne(directory, name);
      if (!swept) {
        report.problems.push_back(name + ": " + swept.error().message());
        continue;
      }
    }
    auto removed = RemoveDirectory(parent, name);
    if (!removed)
      report.problems.push_back(name + ": " + removed.error().message());
    else
      report.swept.push_back(name);
  }
  return report;
}

}  // namespace caisson::launcher
