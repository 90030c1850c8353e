#include "providers/native/tar_jail.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "providers/native/tar_extract.h"
#include "sys/capabilities.h"
#include "sys/mounts.h"
#include "sys/seccomp.h"

namespace caisson::native {
namespace {

using sys::UniqueFd;

constexpr uint64_t kFileCapabilities = sys::CapBit(CAP_CHOWN) | sys::CapBit(CAP_DAC_OVERRIDE) |
                                       sys::CapBit(CAP_FOWNER) | sys::CapBit(CAP_FSETID);
// The descriptors of the child after everything else is closed.
constexpr int kInput = 3;
constexpr int kReport = 4;
constexpr int kFirstClosed = 5;

struct ChildPlan {
  std::string target;
  ImportLimits limits;
  TarOwners owners;
  unsigned uid;
  unsigned gid;
};

[[noreturn]] void Send(const TarReport& report) {
  const ssize_t rc = ::write(kReport, &report, sizeof report);
  ::_exit(rc == static_cast<ssize_t>(sizeof report) ? 0 : 1);
}

// `rc` is 0 on success; otherwise an errno, or -1 with errno set.
void Must(int rc, const char* step) {
  if (rc == 0) return;
  TarReport report;
  report.Fail(TarReport::Status::kNotConfined,
              fmt::format("{}: {}", step, strerror(rc > 0 ? rc : errno)));
  Send(report);
}

void DieWith(pid_t parent) {
  Must(::prctl(PR_SET_PDEATHSIG, SIGKILL), "tie the child to its parent");
  if (::getppid() != parent) ::_exit(1);
}

// Standard streams to /dev/null, the two ends to fixed numbers, nothing else open.
void ArrangeDescriptors(int input, int report) {
  const int high_input = ::fcntl(input, F_DUPFD, 16);
  const int high_report = ::fcntl(report, F_DUPFD, 16);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (high_input < 0 || high_report < 0 || null < 0) ::_exit(1);
  for (int fd = 0; fd <= 2; ++fd)
    if (::dup2(null, fd) != fd) ::_exit(1);
  if (::dup2(high_input, kInput) != kInput || ::dup2(high_report, kReport) != kReport) ::_exit(1);
  Must(static_cast<int>(::syscall(SYS_close_range, kFirstClosed, ~0U, 0)), "close descriptors");
}

void ResetSignals() {
  for (int number = 1; number < 32; ++number) ::signal(number, SIG_DFL);
  ::signal(SIGXFSZ, SIG_IGN);  // an oversized file is then EFBIG
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

int WriteFile(const char* path, std::string_view text) {
  UniqueFd file(::open(path, O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size())
             ? 0
             : -1;
}

void EnterNamespaces(const ChildPlan& plan) {
  const bool rootless = plan.owners == TarOwners::kIgnore;
  const int flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS;
  Must(::unshare(flags | (rootless ? CLONE_NEWUSER : 0)), "make namespaces");
  if (!rootless) return;
  // A process that is not dumpable does not own its files in /proc; the maps need that for a
  // moment.
  Must(::prctl(PR_SET_DUMPABLE, 1), "own the files in /proc");
  Must(WriteFile("/proc/self/setgroups", "deny"), "write setgroups");
  Must(WriteFile("/proc/self/uid_map", fmt::format("0 {} 1", plan.uid)), "write uid_map");
  Must(WriteFile("/proc/self/gid_map", fmt::format("0 {} 1", plan.gid)), "write gid_map");
  Must(::prctl(PR_SET_DUMPABLE, 0), "give the files in /proc up");
}

// Makes the target the root, without a way back.
void PivotInto(const std::string& target) {
  Must(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "make mounts private");
  UniqueFd dir(::open(target.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  UniqueFd tree(dir ? sys::CloneTree(dir.get(), "") : -1);
  Must(tree ? 0 : -1, "open the target");
  Must(-sys::SetMountAttributes(tree.get(),
                                MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, 0, -1),
       "restrict the target");
  Must(-sys::AttachMount(tree.get(), dir.get(), ""), "mount the target");
  Must(::fchdir(tree.get()), "enter the target");
  Must(static_cast<int>(::syscall(SYS_pivot_root, ".", ".")), "pivot_root");
  Must(::umount2(".", MNT_DETACH), "leave the old root");
  Must(::chdir("/"), "enter the new root");
}

uint64_t AddressSpaceNow() {
  unsigned long pages = 0;
  FILE* file = std::fopen("/proc/self/statm", "re");
  const bool read = file != nullptr && std::fscanf(file, "%lu", &pages) == 1;
  if (file != nullptr) std::fclose(file);
  return read ? pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

void SetLimits(const ImportLimits& limits, uint64_t address_space) {
  const struct {
    decltype(RLIMIT_AS) resource;
    rlim_t value;
  } table[] = {{RLIMIT_AS, address_space + limits.max_memory},
               {RLIMIT_FSIZE, limits.max_file_bytes},
               {RLIMIT_CPU, static_cast<rlim_t>(limits.deadline_seconds)},
               {RLIMIT_NOFILE, 32},
               {RLIMIT_CORE, 0}};
  for (const auto& [resource, value] : table) {
    rlimit now;
    Must(::getrlimit(resource, &now), "read a limit");
    const rlimit wanted{std::min(value, now.rlim_max), std::min(value, now.rlim_max)};
    Must(::setrlimit(resource, &wanted), "set a limit");
  }
}

void DropPrivileges(TarOwners owners) {
  const uint64_t keep = owners == TarOwners::kKeep ? kFileCapabilities : 0;
  if (owners == TarOwners::kKeep) Must(::setgroups(0, nullptr), "drop groups");
  Must(sys::DropBoundingExcept(keep), "cut the bounding set");
  Must(sys::ClearAmbient(), "clear ambient capabilities");
  Must(sys::SetCapabilities(keep, keep, 0), "drop capabilities");
  Must(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "set no_new_privs");
  const sys::SeccompFilter filter = sys::SeccompFilter::Build(sys::SeccompProfile::kStrict);
  Must(sys::InstallSeccomp(filter.program()), "install the seccomp filter");
}

[[noreturn]] void RunConfined(const ChildPlan& plan) {
  const uint64_t address_space = AddressSpaceNow();
  PivotInto(plan.target);
  SetLimits(plan.limits, address_space);
  DropPrivileges(plan.owners);
  ::umask(0);
  UniqueFd root(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  Must(root ? 0 : -1, "open the new root");
  Send(ExtractTar(kInput, root.get(), plan.owners, plan.limits));
}

// The first child makes the namespaces; the second is PID 1 in them and does the work.
[[noreturn]] void RunChild(const ChildPlan& plan, pid_t parent, int input, int report) {
  ResetSignals();
  ArrangeDescriptors(input, report);
  std::setlocale(LC_CTYPE,
                 "C.UTF-8");  // names are UTF-8 in pax headers; without it they would be lost
  EnterNamespaces(plan);
  DieWith(parent);
  const pid_t worker = ::fork();
  if (worker == 0) {
    Must(::prctl(PR_SET_PDEATHSIG, SIGKILL), "tie the child to its parent");
    RunConfined(plan);
  }
  Must(worker < 0 ? -1 : 0, "fork");
  ::close(kInput);
  ::close(kReport);
  int status = 0;
  while (::waitpid(worker, &status, 0) < 0 && errno == EINTR) {
  }
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

}  // namespace

Result<TarJail> StartTarJail(const std::string& target, const ImportLimits& limits) {
  int input[2];
  int report[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, input) != 0)
    return Error::FromErrno("socketpair");
  UniqueFd input_ours(input[0]);
  UniqueFd input_theirs(input[1]);
  if (::pipe2(report, O_CLOEXEC) != 0) return Error::FromErrno("pipe2");
  UniqueFd report_ours(report[0]);
  UniqueFd report_theirs(report[1]);
  const ChildPlan plan{target, limits, ::geteuid() == 0 ? TarOwners::kKeep : TarOwners::kIgnore,
                       ::geteuid(), ::getegid()};
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return Error::FromErrno("fork");
  if (pid == 0) RunChild(plan, parent, input_theirs.get(), report_theirs.get());
  UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd) {
    const Error error = Error::FromErrno("pidfd_open");
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    return error;
  }
  return TarJail{sys::Child(pid, std::move(pidfd)), std::move(input_ours), std::move(report_ours)};
}

}  // namespace caisson::native
