#include "sys/resctrl.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "sys/text_file.h"

namespace caisson::sys {
namespace {

constexpr std::string_view kPrefix = "caisson-";

Error Refused(std::string reason, std::string remedy) {
  return Error(ErrorCode::kLimitRefused, "memory bandwidth cannot be limited: " + std::move(reason))
      .WithRemedy(std::move(remedy));
}

bool IsPlainName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  });
}

struct Hardware {
  uint32_t least = 0;
  uint32_t step = 1;
};

Result<Hardware> ReadHardware(const ResctrlPaths& paths) {
  const UniqueFd root(::open(paths.root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root || ::faccessat(root.get(), "schemata", F_OK, 0) != 0) {
    return Refused("the CPU or kernel has no memory bandwidth allocation (resctrl is not mounted)",
                   "on a CPU with MBA: mount -t resctrl resctrl " + paths.root);
  }
  char buffer[64];
  const auto least = TryReadText(root.get(), "info/MB/min_bandwidth", buffer);
  const auto least_value = least ? ParseNumber(*least) : std::nullopt;
  if (!least_value || *least_value > 100) {
    return Refused("resctrl is mounted, but this CPU has no memory bandwidth allocation (MB)",
                   "use a host with Intel MBA or AMD QoS");
  }
  const auto step = TryReadText(root.get(), "info/MB/bandwidth_gran", buffer);
  const auto step_value = step ? ParseNumber(*step) : std::nullopt;
  // mba_MBps changes the unit of schemata to megabytes per second.
  const auto mounts = ReadText(AT_FDCWD, (paths.proc + "/self/mountinfo").c_str(), 4 << 20);
  if (mounts && mounts->find(" - resctrl ") != std::string::npos &&
      mounts->find("mba_MBps") != std::string::npos) {
    return Refused("resctrl is mounted with mba_MBps, where shares are not percentages",
                   "mount resctrl without mba_MBps");
  }
  return Hardware{static_cast<uint32_t>(std::max<uint64_t>(*least_value, 1)),
                  static_cast<uint32_t>(std::clamp<uint64_t>(step_value.value_or(1), 1, 100))};
}

// The hardware's next value at or above what is asked.
uint32_t Rounded(uint32_t percent, const Hardware& hardware) {
  const uint32_t up = (percent + hardware.step - 1) / hardware.step * hardware.step;
  return std::clamp(up, std::min(hardware.least, 100u), 100u);
}

// The part after "MB:" of a schemata file, "0=100;1=100", or empty.
std::string_view BandwidthLine(std::string_view schemata) {
  while (!schemata.empty()) {
    std::string_view line = NextPiece(schemata, '\n');
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    if (line.starts_with("MB:")) return line.substr(3);
  }
  return {};
}

// Sets every domain of the group's schemata and gives back the highest value then in force.
Result<uint32_t> SetBandwidth(int root, const std::string& group, uint32_t percent) {
  const std::string file = group + "/schemata";
  CAISSON_ASSIGN(const std::string before, ReadText(root, file.c_str(), 64 << 10));
  std::string_view domains = BandwidthLine(before);
  if (domains.empty()) return Refused("schemata has no MB line", "use a host with MBA");
  std::string line = "MB:";
  while (!domains.empty()) {
    std::string_view entry = NextPiece(domains, ';');
    entry.remove_prefix(std::min(entry.find_first_not_of(' '), entry.size()));
    const std::string_view domain = NextPiece(entry, '=');
    if (line.size() > 3) line += ';';
    line.append(domain).append("=").append(std::to_string(percent));
  }
  line += '\n';
  if (const int error = TryWriteText(root, file.c_str(), line); error != 0) {
    const auto status = ReadText(root, "info/last_cmd_status", 4096);
    return Refused("the kernel refuses " + line.substr(0, line.size() - 1) + " (" +
                       (status ? std::string(FirstLine(*status)) : std::to_string(error)) + ")",
                   "ask for another percentage");
  }
  CAISSON_ASSIGN(const std::string after, ReadText(root, file.c_str(), 64 << 10));
  std::string_view rest = BandwidthLine(after);
  uint64_t highest = 0;
  while (!rest.empty()) {
    std::string_view entry = NextPiece(rest, ';');
    NextPiece(entry, '=');
    entry.remove_prefix(std::min(entry.find_first_not_of(' '), entry.size()));
    const auto value = ParseNumber(entry);
    if (!value) return Error(ErrorCode::kIo, "cannot read back " + file);
    highest = std::max(highest, *value);
  }
  if (highest == 0 || highest > percent)
    return Refused("the kernel keeps it at " + std::to_string(highest) + " percent",
                   "ask for another percentage");
  return static_cast<uint32_t>(highest);
}

int MakeDir(const ResctrlPaths& paths, int root, const char* name) {
  if (paths.make_dir) return paths.make_dir(root, name);
  return ::mkdirat(root, name, 0755) == 0 ? 0 : errno;
}

int RemoveDir(const ResctrlPaths& paths, int root, const char* name) {
  if (paths.remove_dir) return paths.remove_dir(root, name);
  return ::unlinkat(root, name, AT_REMOVEDIR) == 0 ? 0 : errno;
}

Result<uint32_t> Checked(const ResctrlPaths& paths, uint32_t percent) {
  if (percent < 1 || percent > 100)
    return Refused(std::to_string(percent) + " is not a percentage from 1 to 100",
                   "ask for 1 to 100 percent");
  CAISSON_ASSIGN(const Hardware hardware, ReadHardware(paths));
  return Rounded(percent, hardware);
}

}  // namespace

Status ResctrlGroup::Probe(const ResctrlPaths& paths) {
  CAISSON_TRY(ReadHardware(paths));
  return {};
}

Result<ResctrlGroup> ResctrlGroup::Create(const ResctrlPaths& paths, std::string_view instance,
                                          std::string_view name, uint32_t percent) {
  if (!IsPlainName(instance) || !IsPlainName(name))
    return Error(ErrorCode::kInvalidArgument, "not a name for a resctrl group");
  CAISSON_ASSIGN(const uint32_t rounded, Checked(paths, percent));
  ResctrlGroup group;
  group.paths_ = paths;
  group.root_.Reset(::open(paths.root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!group.root_) return Error::FromErrno("cannot open " + paths.root);
  const std::string full = std::string(kPrefix).append(instance).append(".").append(name);
  if (const int error = MakeDir(paths, group.root_.get(), full.c_str()); error != 0) {
    if (error == ENOSPC)
      return Refused("the CPU has no bandwidth group left (num_closids)",
                     "end a sandbox that has a bandwidth limit");
    const ErrorCode code = error == EEXIST ? ErrorCode::kConflict : ErrorCode::kLimitRefused;
    return Error::FromErrno("cannot make the resctrl group " + full, error).WithCode(code);
  }
  group.name_ = full;  // from here on the destructor removes it
  CAISSON_ASSIGN(group.percent_, SetBandwidth(group.root_.get(), full, rounded));
  return group;
}

ResctrlGroup::ResctrlGroup(ResctrlGroup&& other) noexcept
    : paths_(std::move(other.paths_)),
      name_(std::exchange(other.name_, {})),
      root_(std::move(other.root_)),
      percent_(other.percent_) {}

ResctrlGroup& ResctrlGroup::operator=(ResctrlGroup&& other) noexcept {
  std::swap(paths_, other.paths_);
  std::swap(name_, other.name_);
  std::swap(root_, other.root_);
  std::swap(percent_, other.percent_);
  return *this;
}

// A group that stays for want of a working rmdir is found by Sweep.
ResctrlGroup::~ResctrlGroup() {
  if (!name_.empty()) RemoveDir(paths_, root_.get(), name_.c_str());
}

Status ResctrlGroup::Update(uint32_t percent) {
  CAISSON_ASSIGN(const uint32_t rounded, Checked(paths_, percent));
  CAISSON_ASSIGN(percent_, SetBandwidth(root_.get(), name_, rounded));
  return {};
}

// `tasks` takes one thread per write. A thread started by one not yet moved is in the default
// group, so rounds go on until one finds no thread that was not written before.
Status ResctrlGroup::Attach(pid_t pid) {
  const std::string tasks = name_ + "/tasks";
  const std::string threads = paths_.proc + "/" + std::to_string(pid) + "/task";
  std::vector<std::string> done;
  for (int round = 0; round < 100; ++round) {
    DIR* const dir = ::opendir(threads.c_str());
    if (!dir) return Error::FromErrno("cannot list the threads of process " + std::to_string(pid));
    std::vector<std::string> fresh;
    while (const dirent* entry = ::readdir(dir)) {
      const std::string_view id = entry->d_name;
      if (ParseNumber(id) && std::ranges::find(done, id) == done.end()) fresh.emplace_back(id);
    }
    ::closedir(dir);
    if (fresh.empty()) return {};
    for (std::string& id : fresh) {
      const int error = TryWriteText(root_.get(), tasks.c_str(), id);
      if (error != 0 && error != ESRCH)
        return Error::FromErrno("cannot move thread " + id + " to the resctrl group " + name_,
                                error);
      done.push_back(std::move(id));
    }
  }
  return Error(ErrorCode::kResourceExhausted,
               "process " + std::to_string(pid) + " starts threads faster than they can be moved");
}

size_t ResctrlGroup::Sweep(const ResctrlPaths& paths, std::string_view instance) {
  const std::string prefix = std::string(kPrefix).append(instance).append(".");
  DIR* const dir = ::opendir(paths.root.c_str());
  if (!dir) return 0;
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(dir))
    if (std::string_view(entry->d_name).starts_with(prefix)) names.emplace_back(entry->d_name);
  size_t removed = 0;
  for (const std::string& name : names)
    if (RemoveDir(paths, ::dirfd(dir), name.c_str()) == 0) ++removed;
  ::closedir(dir);
  return removed;
}

}  // namespace caisson::sys
