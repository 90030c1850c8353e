// Tools that look: state of the process, counterparts of the host's sentinels, the syscall table.
#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "probe.h"

namespace caisson::probe {
namespace {

void Print(const std::string& text) {
  if (write(1, text.data(), text.size()) < 0) _exit(3);
}

std::string Field(const char* name, const std::string& value) {
  return JsonString(name) + ":" + JsonString(value);
}

// What must be the same for the first command, every later exec, and a shell on a terminal.
int State(std::span<char* const>) {
  std::string out = "{";
  const std::string status = ReadFile("/proc/self/status");
  for (const char* name : {"Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb",
                           "NoNewPrivs", "Seccomp", "Seccomp_filters", "Umask", "SigBlk", "SigIgn"})
    out += Field(name, StatusField(status, name)) + ",";
  for (const char* name : {"uid_map", "gid_map", "cgroup", "limits", "oom_score_adj", "setgroups",
                           "loginuid", "personality", "coredump_filter", "timerslack_ns"})
    out += Field(name, ReadFile((std::string("/proc/self/") + name).c_str())) + ",";
  for (const char* name : {"mnt", "net", "pid", "ipc", "uts", "user", "cgroup", "time"}) {
    char target[64] = "";
    const std::string path = std::string("/proc/self/ns/") + name;
    if (readlink(path.c_str(), target, sizeof(target) - 1) < 0) target[0] = '\0';
    out += Field((std::string("ns_") + name).c_str(), target) + ",";
  }
  std::string descriptors;
  for (const Descriptor& descriptor : AtStart().descriptors)
    descriptors += std::to_string(descriptor.number) + "->" + descriptor.target + "\n";
  out += Field("fds", descriptors) + "," + Field("secure", std::to_string(getauxval(AT_SECURE)));
  Print(out + "}\n");
  return 0;
}

// Exits 0 when this process has no privilege: the setuid and file capability attempts run it.
int Privileged(std::span<char* const>) {
  const bool caps =
      StatusField("CapEff") != "0000000000000000" || StatusField("CapPrm") != "0000000000000000";
  return geteuid() == 0 || getegid() == 0 || caps || getauxval(AT_SECURE) != 0 ? 1 : 0;
}

int PrintVerdict(const char* name, const Verdict& verdict) {
  const char* kind = verdict.kind == Kind::kOpen ? "open"
                     : verdict.kind == Kind::kOk ? "ok"
                                                 : "refused";
  Print(std::string("{\"name\":\"") + name + "\",\"result\":\"" + kind + "\"," +
        Field("errno", verdict.error) + "," + Field("detail", verdict.detail) + "}\n");
  return 0;
}

// connect ADDRESS PORT: a TCP connection; the host's canary must not see it.
int Connect(std::span<char* const> arguments) {
  if (arguments.size() != 2) return 2;
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(arguments[0], arguments[1], &hints, &found) != 0) return 2;
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return PrintVerdict("connect", Refused(errno, "socket"));
  alarm(5);
  return PrintVerdict("connect",
                      Judge(connect(fd, found->ai_addr, found->ai_addrlen), arguments[0]));
}

// abstract NAME: connects to an abstract unix socket.
int Abstract(std::span<char* const> arguments) {
  if (arguments.size() != 1) return 2;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = strnlen(arguments[0], sizeof(address.sun_path) - 2);
  memcpy(address.sun_path + 1, arguments[0], length);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return PrintVerdict("abstract", Judge(connect(fd, reinterpret_cast<sockaddr*>(&address), size)));
}

// leave NAME KEY: leaves a trace in every place that could outlive or cross sandboxes.
int Leave(std::span<char* const> arguments) {
  if (arguments.size() != 2) return 2;
  const std::string name = arguments[0];
  const auto key = static_cast<key_t>(strtol(arguments[1], nullptr, 0));
  std::string left;
  for (const char* place :
       {"/tmp/", "/dev/shm/", "/workspace/", "/var/tmp/", "/run/", "/root/", "/dev/mqueue/"}) {
    const std::string path = place + name;
    const int fd = open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0) continue;
    if (write(fd, name.data(), name.size()) > 0 || strcmp(place, "/dev/mqueue/") == 0)
      left += std::string(place) + " ";
    close(fd);
  }
  if (shmget(key, 4096, IPC_CREAT | 0666) >= 0) left += "shm ";
  if (semget(key, 1, IPC_CREAT | 0666) >= 0) left += "sem ";
  if (msgget(key, IPC_CREAT | 0666) >= 0) left += "msg ";
  if (mq_open(("/" + name).c_str(), O_CREAT | O_RDWR, 0666, nullptr) != -1) left += "mq ";
  if (syscall(SYS_add_key, "user", name.c_str(), "x", 1, -4) >= 0) left += "key ";
  Print("{\"left\":" + JsonString(left) + "}\n");
  return 0;
}

// find NAME KEY: looks for what `leave` left, here or elsewhere.
int Find(std::span<char* const> arguments) {
  if (arguments.size() != 2) return 2;
  const std::string name = arguments[0];
  const auto key = static_cast<key_t>(strtol(arguments[1], nullptr, 0));
  std::string found;
  for (const char* place :
       {"/tmp/", "/dev/shm/", "/workspace/", "/var/tmp/", "/run/", "/root/", "/dev/mqueue/"})
    if (access((place + name).c_str(), F_OK) == 0) found += std::string(place) + " ";
  if (shmget(key, 0, 0) >= 0) found += "shm ";
  if (semget(key, 0, 0) >= 0) found += "sem ";
  if (msgget(key, 0) >= 0) found += "msg ";
  if (mq_open(("/" + name).c_str(), O_RDONLY) != -1) found += "mq ";
  if (syscall(SYS_request_key, "user", name.c_str(), nullptr, 0) >= 0) found += "key ";
  return PrintVerdict("find", Unless(found));
}

// The answer to a call of this number with no arguments: pass, EPERM, ENOSYS, or a signal.
std::string ClassOf(long number) {
  int ends[2];
  if (pipe(ends) != 0) return "error";
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    close(0);  // what stands behind descriptor 0 must not colour the answer
    alarm(1);
    errno = 0;
    const long result = syscall(number, 0, 0, 0, 0, 0, 0);
    const int error = result == -1 ? errno : 0;
    (void)!write(ends[1], &error, sizeof(error));
    _exit(0);
  }
  close(ends[1]);
  int error = -1;
  const bool answered = read(ends[0], &error, sizeof(error)) == sizeof(error);
  close(ends[0]);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  if (!answered && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) return "SIGSYS";
  if (error == EPERM || error == ENOSYS) return ErrnoName(error);
  return "pass";
}

// syscalls: number and answer of 0..1023. On a host this would do harm (sethostname of nothing,
// vhangup), so it wants to be unprivileged.
int Syscalls(std::span<char* const>) {
  if (StatusField("NoNewPrivs") != "1") {
    Print("refusing to call everything outside a sandbox\n");
    return 2;
  }
  std::string out = "{";
  for (long number = 0; number < 1024; ++number) {
    // What returns twice, never, or ends the caller: taken as it is.
    std::string answer;
#if defined(__x86_64__)
    if (number == SYS_exit || number == SYS_exit_group || number == SYS_vfork ||
        number == SYS_rt_sigreturn || number == SYS_pause || number == SYS_fork)
      answer = "pass";
#endif
    if (answer.empty()) answer = ClassOf(number);
    if (answer != "ENOSYS") out += "\"" + std::to_string(number) + "\":\"" + answer + "\",";
  }
  if (out.back() == ',') out.pop_back();
  Print(out + "}\n");
  return 0;
}

const Tool kTools[] = {
    {"state", "state", State},
    {"privileged", "privileged", Privileged},
    {"connect", "connect ADDRESS PORT", Connect},
    {"abstract", "abstract NAME", Abstract},
    {"leave", "leave NAME KEY", Leave},
    {"find", "find NAME KEY", Find},
    {"syscalls", "syscalls", Syscalls},
};

}  // namespace

std::span<const Tool> Tools() { return kTools; }

}  // namespace caisson::probe
