#include "floor_jail.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "floor_files.h"

namespace caisson::bench {
namespace {

constexpr size_t kMasks = 11;
constexpr uint64_t kNamespaces =
    CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP;

Failure Errno(const char* stage) { return {stage, errno}; }

}  // namespace

// Both ends of the two pipes between parent and child: `go` releases the child, `status` carries
// {stage, errno} of a failed child and reaches end of file at exec.
struct FloorJail::Channels {
  int go[2] = {-1, -1};
  int status[2] = {-1, -1};

  ~Channels() {
    for (int* fd : {&go[0], &go[1], &status[0], &status[1]}) Close(*fd);
  }
  Failure Open() {
    if (pipe2(go, O_CLOEXEC) < 0 || pipe2(status, O_CLOEXEC) < 0) return Errno("pipe");
    return {};
  }
  static void Close(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
  }
};

FloorJail::~FloorJail() {
  if (work_.empty()) return;
  Abandon();
  if (options_.upper == Upper::kTmpfs) umount2((work_ + "/run").c_str(), MNT_DETACH);
  RemoveTree(work_);
}

Failure FloorJail::Prepare() {
  // Mounts made here vanish with the process, whatever happens to it.
  if (unshare(CLONE_NEWNS) < 0) return Errno("unshare mount namespace (root is needed)");
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) < 0) return Errno("private root");
  std::string name = options_.directory + "/caisson-floor.XXXXXX";
  if (mkdtemp(name.data()) == nullptr) return Errno("mkdtemp of the work directory");
  work_ = name;
  chmod(work_.c_str(), 0755);
  const std::string run = work_ + "/run";
  if (mkdir(run.c_str(), 0755) < 0) return Errno("mkdir run");
  if (options_.upper == Upper::kTmpfs &&
      mount("tmpfs", run.c_str(), "tmpfs", 0, "mode=755,size=64m") < 0) {
    return Errno("tmpfs for uppers");
  }
  upper_ = run + "/upper";
  scratch_ = run + "/work";
  merged_ = run + "/merged";
  overlay_options_ = "lowerdir=" + work_ + "/lower,upperdir=" + upper_ + ",workdir=" + scratch_ +
                     (options_.users == Users::kOwn ? ",userxattr,volatile" : ",volatile");
  clone_flags_ = kNamespaces;
  if (options_.network == Network::kLoopback) clone_flags_ |= CLONE_NEWNET;
  if (options_.users == Users::kOwn) clone_flags_ |= CLONE_NEWUSER;
  if (Failure failure = BuildLower()) return failure;
  ChooseMasks();
  PlanCgroups();
  BuildFilter();
  return {};
}

// The lower layer is /bin/true, its interpreter and its libraries, on the disk file system. The
// host root itself cannot be the lower layer: overlayfs refuses an upper directory inside its
// lower.
Failure FloorJail::BuildLower() {
  const std::string lower = work_ + "/lower";
  for (const char* folder : {"", "/proc", "/dev", "/tmp"}) {
    if (mkdir((lower + folder).c_str(), 0755) < 0) return Errno("mkdir in the lower layer");
  }
  for (const std::string& path : ProgramFiles("/bin/true")) {
    if (!CopyFile(path, lower + path)) return Errno("copy of /bin/true and its libraries");
  }
  if (access((lower + "/bin/true").c_str(), X_OK) < 0) return Errno("/bin/true in the lower layer");
  return {};
}

// Takes the first kMasks of the usual candidates that this kernel has.
void FloorJail::ChooseMasks() {
  static constexpr struct {
    const char* path;
    MaskKind kind;
  } kCandidates[] = {
      {"proc/kcore", MaskKind::kFile},
      {"proc/keys", MaskKind::kFile},
      {"proc/timer_list", MaskKind::kFile},
      {"proc/kallsyms", MaskKind::kFile},
      {"proc/acpi", MaskKind::kDirectory},
      {"proc/scsi", MaskKind::kDirectory},
      {"proc/bus", MaskKind::kReadOnly},
      {"proc/fs", MaskKind::kReadOnly},
      {"proc/irq", MaskKind::kReadOnly},
      {"proc/sys", MaskKind::kReadOnly},
      {"proc/sysrq-trigger", MaskKind::kReadOnly},
      {"proc/kmsg", MaskKind::kFile},
      {"proc/interrupts", MaskKind::kFile},
      {"proc/kpagecount", MaskKind::kFile},
      {"proc/slabinfo", MaskKind::kFile},
      {"proc/vmallocinfo", MaskKind::kFile},
      {"proc/softirqs", MaskKind::kFile},
      {"proc/modules", MaskKind::kFile},
      {"proc/iomem", MaskKind::kFile},
  };
  for (const auto& candidate : kCandidates) {
    if (masks_.size() == kMasks) break;
    if (access((std::string("/") + candidate.path).c_str(), F_OK) == 0) {
      masks_.push_back({candidate.path, candidate.kind});
    }
  }
}

void FloorJail::PlanCgroups() {
  const std::string name = "/caisson-floor-" + std::to_string(getpid());
  const std::string memory = std::to_string(512 << 20);
  const std::string v1_memory = CgroupMount("cgroup", "memory");
  const std::string v1_cpu = CgroupMount("cgroup", "cpu");
  const std::string v1_pids = CgroupMount("cgroup", "pids");
  if (!v1_memory.empty() && !v1_cpu.empty() && !v1_pids.empty()) {
    cgroups_ = {"v1",
                {{v1_memory + name, {{"memory.limit_in_bytes", memory}}},
                 {v1_cpu + name, {{"cpu.cfs_quota_us", "100000"}}},
                 {v1_pids + name, {{"pids.max", "256"}}}}};
    return;
  }
  const std::string unified = CgroupMount("cgroup2", "");
  if (unified.empty()) return;
  // Controllers may be on already; a refusal shows when the limit's file is missing below.
  (void)WriteFile(unified + "/cgroup.subtree_control", "+memory +cpu +pids");
  const std::string available = ReadFile(unified + "/cgroup.subtree_control");
  for (const char* controller : {"memory", "cpu", "pids"}) {
    if (available.find(controller) == std::string::npos) return;
  }
  cgroups_ = {"v2",
              {{unified + name,
                {{"memory.max", memory}, {"cpu.max", "100000 100000"}, {"pids.max", "256"}}}}};
}

// An allow-list as a table-driven policy compiles it: foreign ABIs die, one comparison for each
// allowed call, anything else is EPERM.
void FloorJail::BuildFilter() {
#if defined(__x86_64__)
  constexpr uint32_t kArch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
  constexpr uint32_t kArch = AUDIT_ARCH_AARCH64;
#endif
  static constexpr int kDenied[] = {
      SYS_ptrace,      SYS_mount,         SYS_umount2,  SYS_pivot_root,  SYS_chroot,
      SYS_swapon,      SYS_swapoff,       SYS_reboot,   SYS_sethostname, SYS_setdomainname,
      SYS_init_module, SYS_delete_module, SYS_quotactl, SYS_acct,        SYS_settimeofday,
      SYS_adjtimex,    SYS_syslog,        SYS_vhangup};
  std::vector<int> allowed;
  for (int number = 0; number < 172; ++number) allowed.push_back(number);
  for (int number : {SYS_exit_group, SYS_openat, SYS_newfstatat, SYS_prlimit64, SYS_getrandom,
                     SYS_rseq, SYS_set_robust_list, SYS_set_tid_address, SYS_execve, SYS_mmap,
                     SYS_mprotect, SYS_munmap, SYS_brk, SYS_faccessat}) {
    if (std::find(allowed.begin(), allowed.end(), number) == allowed.end()) {
      allowed.push_back(number);
    }
  }
  std::erase_if(allowed, [](int number) {
    return std::find(std::begin(kDenied), std::end(kDenied), number) != std::end(kDenied);
  });
  const auto jump = [](uint32_t value, uint8_t yes, uint8_t no) {
    return sock_filter BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no);
  };
  filter_ = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)), jump(kArch, 1, 0),
             BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
             BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (size_t i = 0; i < allowed.size(); ++i) {
    const auto to_allow = static_cast<uint8_t>(allowed.size() - i);
    filter_.push_back(jump(static_cast<uint32_t>(allowed[i]), to_allow, 0));
  }
  filter_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  filter_.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
}

Failure FloorJail::MakeDirectories() {
  for (const std::string* path : {&upper_, &scratch_, &merged_}) {
    if (mkdir(path->c_str(), 0755) < 0) return Errno("mkdir of the run's directories");
  }
  return {};
}

Failure FloorJail::RemoveDirectories() {
  // What a volatile overlay leaves, innermost first; nothing wrote to the upper.
  const std::string dirty = scratch_ + "/work/incompat/volatile/dirty";
  if (unlink(dirty.c_str()) < 0 && errno != ENOENT) return Errno("unlink of the volatile mark");
  for (const char* left : {"/work/incompat/volatile", "/work/incompat", "/work", ""}) {
    if (rmdir((scratch_ + left).c_str()) < 0 && errno != ENOENT) return Errno("rmdir of work");
  }
  if (rmdir(upper_.c_str()) < 0) return Errno("rmdir of upper");
  if (rmdir(merged_.c_str()) < 0) return Errno("rmdir of merged");
  return {};
}

Failure FloorJail::MakeCgroups() {
  for (const CgroupDirectory& directory : cgroups_.directories) {
    if (mkdir(directory.path.c_str(), 0755) < 0) return Errno("mkdir of a cgroup");
    for (const auto& [file, value] : directory.limits) {
      if (!WriteFile(directory.path + "/" + file, value)) return Errno("limit of a cgroup");
    }
  }
  return {};
}

Failure FloorJail::RemoveCgroups() {
  for (const CgroupDirectory& directory : cgroups_.directories) {
    if (rmdir(directory.path.c_str()) < 0) return Errno("rmdir of a cgroup");
  }
  return {};
}

// After a failed life: puts away whatever that life left.
void FloorJail::Abandon() {
  for (const CgroupDirectory& directory : cgroups_.directories) rmdir(directory.path.c_str());
  for (const std::string* path : {&upper_, &scratch_, &merged_}) {
    if (!path->empty()) RemoveTree(*path);
  }
}

Failure FloorJail::Run(Watch watch) {
  Channels channels;
  if (Failure failure = channels.Open()) return failure;
  if (Failure failure = MakeDirectories()) return failure;
  if (Failure failure = MakeCgroups()) return failure;

  clone_args args = {};
  args.flags = clone_flags_;
  args.exit_signal = SIGCHLD;
  int group = -1;
  if (strcmp(cgroups_.version, "v2") == 0) {
    group = open(cgroups_.directories[0].path.c_str(), O_DIRECTORY | O_CLOEXEC);
    if (group < 0) return Errno("open of the cgroup");
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<uint64_t>(group);
  }
  const auto pid = static_cast<int>(syscall(SYS_clone3, &args, sizeof args));
  if (pid == 0) Child(channels, watch);
  Failure failure = pid < 0 ? Errno("clone3") : Failure{};
  if (group >= 0) close(group);
  if (failure) return failure;

  failure = Release(pid, channels, watch);
  if (failure) kill(pid, SIGKILL);
  int status = 0;
  if (waitpid(pid, &status, 0) < 0) return Errno("waitpid");
  if (failure) return failure;
  if (status != 0) return {"exit status of /bin/true", WIFEXITED(status) ? 0 : EINTR};
  if (Failure left = RemoveDirectories()) return left;
  return RemoveCgroups();
}

// Maps ids, attaches the child to its v1 cgroups, lets it go, and waits until it has executed.
Failure FloorJail::Release(int pid, Channels& channels, Watch watch) {
  Channels::Close(channels.go[0]);
  Channels::Close(channels.status[1]);
  const std::string process = "/proc/" + std::to_string(pid);
  if (options_.users == Users::kOwn && (!WriteFile(process + "/uid_map", "0 0 65536") ||
                                        !WriteFile(process + "/gid_map", "0 0 65536"))) {
    return Errno("id maps");
  }
  if (strcmp(cgroups_.version, "v1") == 0) {
    for (const CgroupDirectory& directory : cgroups_.directories) {
      if (!WriteFile(directory.path + "/cgroup.procs", std::to_string(pid))) {
        return Errno("attach to a cgroup");
      }
    }
  }
  if (write(channels.go[1], "g", 1) != 1) return Errno("release of the child");
  Failure report;
  ssize_t got = read(channels.status[0], &report, sizeof report);
  if (watch == Watch::kInspect && got == sizeof report && !report) {
    if (Failure failure = Inspect(pid)) return failure;
    if (write(channels.go[1], "g", 1) != 1) return Errno("release of the held child");
    got = read(channels.status[0], &report, sizeof report);
  }
  if (got < 0) return Errno("status of the child");
  // The child is a copy of this process, so its string literals are at the same addresses.
  return got == sizeof report ? report : Failure{};
}

// Reads from outside what the held child really is.
Failure FloorJail::Inspect(int pid) const {
  const std::string process = "/proc/" + std::to_string(pid);
  const std::string status = ReadFile(process + "/status");
  for (const char* line : {"CapEff:\t0000000000000000", "CapPrm:\t0000000000000000",
                           "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"}) {
    if (status.find(line) == std::string::npos) return {line, EPERM};
  }
  const struct {
    const char* name;
    bool own;
  } namespaces[] = {{"pid", true},
                    {"mnt", true},
                    {"ipc", true},
                    {"uts", true},
                    {"cgroup", true},
                    {"net", options_.network == Network::kLoopback},
                    {"user", options_.users == Users::kOwn}};
  for (const auto& expected : namespaces) {
    const std::string file = std::string("/ns/") + expected.name;
    const std::string link = ReadLink(process + file);
    if (link.empty() || (link != ReadLink("/proc/self" + file)) != expected.own) {
      return {expected.name, EPERM};
    }
  }
  const std::string mounts = ReadFile(process + "/mountinfo");
  // overlay, /proc, /dev with six binds, devpts and shm, and the masks: nothing of the host.
  const auto lines = static_cast<size_t>(std::count(mounts.begin(), mounts.end(), '\n'));
  if (lines != 11 + masks_.size()) return {"number of mounts", EPERM};
  for (const CgroupDirectory& directory : cgroups_.directories) {
    if (ReadFile(directory.path + "/cgroup.procs") != std::to_string(pid) + "\n") {
      return {"membership in the cgroups", EPERM};
    }
  }
  return {};
}

void FloorJail::Child(Channels& channels, Watch watch) {
  Channels::Close(channels.go[1]);
  Channels::Close(channels.status[0]);
  char byte;
  if (read(channels.go[0], &byte, 1) != 1) _exit(126);
  Failure failure = EnterRoot();
  if (!failure && options_.network == Network::kLoopback) failure = RaiseLoopback();
  if (!failure) failure = DropPrivileges();
  if (!failure && watch == Watch::kInspect) {
    const Failure ready;
    if (write(channels.status[1], &ready, sizeof ready) < 0) _exit(126);
    if (read(channels.go[0], &byte, 1) != 1) _exit(126);
  }
  if (!failure) {
    char name[] = "true";
    char path[] = "PATH=/bin";
    char* argv[] = {name, nullptr};
    char* envp[] = {path, nullptr};
    execve("/bin/true", argv, envp);
    failure = Errno("execve of /bin/true");
  }
  if (write(channels.status[1], &failure, sizeof failure) < 0) _exit(126);
  _exit(127);
}

}  // namespace caisson::bench
