// Group D: descriptors, binaries, and the shapes of past runtime bugs.
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <sstream>

#include "probe.h"

namespace caisson::probe {
namespace {

bool AllowedTarget(const std::string& target) {
  return target.starts_with("pipe:[") || target.starts_with("socket:[") ||
         target.starts_with("/dev/pts/") || target == "/dev/null";
}

Verdict OnlyStdio() {
  std::string problems;
  for (const Descriptor& descriptor : AtStart().descriptors)
    if (descriptor.number > 2 || !AllowedTarget(descriptor.target))
      problems += std::to_string(descriptor.number) + "->" + descriptor.target + " ";
  return Unless(problems, std::to_string(AtStart().descriptors.size()) + " descriptors");
}

Verdict CwdIsInside() {
  char path[PATH_MAX];
  if (getcwd(path, sizeof(path)) == nullptr) return Open("cwd has no path");
  struct stat by_path{}, by_dot{};
  if (path[0] != '/' || stat(path, &by_path) != 0 || stat(".", &by_dot) != 0)
    return Open(std::string("cwd is ") + path);
  return Unless(by_path.st_ino == by_dot.st_ino && by_path.st_dev == by_dot.st_dev
                    ? ""
                    : std::string("cwd is not ") + path);
}

// A regular file behind stdio could be truncated or read by the sandbox.
Verdict StdioIsNoFile() {
  std::string problems;
  for (const Descriptor& descriptor : AtStart().descriptors) {
    if (S_ISREG(descriptor.mode) || S_ISDIR(descriptor.mode) || S_ISBLK(descriptor.mode))
      problems += std::to_string(descriptor.number) + "->" + descriptor.target + " ";
  }
  return Unless(problems);
}

Verdict OverwriteInit() { return OpenForWriting("/proc/1/exe"); }

// A writable path to the program of any process that is not of the image.
Verdict OverwriteAny() {
  std::string problems;
  int tried = 0;
  for (const std::string& name : ListDirectory("/proc")) {
    if (name[0] < '0' || name[0] > '9') continue;
    const std::string path = "/proc/" + name + "/exe";
    char target[512] = "";
    if (readlink(path.c_str(), target, sizeof(target) - 1) < 0) continue;
    ++tried;
    const bool memory_file = strstr(target, "memfd:") != nullptr;
    const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) continue;
    if (memory_file) problems += name + "->" + target + " ";
    close(fd);
  }
  return Unless(problems, std::to_string(tried) + " programs");
}

Verdict NoNamedSockets() {
  std::istringstream text(ReadFile("/proc/self/net/unix"));
  std::string problems, header;
  std::getline(text, header);
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::vector<std::string> fields;
    for (std::string word; words >> word;) fields.push_back(word);
    if (fields.size() > 7) problems += fields[7] + " ";
  }
  return Unless(problems);
}

std::string found_sockets;
int entries_seen = 0;

int NoteSocket(const char* path, const struct stat* info, int, FTW* walk) {
  (void)walk;
  if (S_ISSOCK(info->st_mode)) found_sockets += std::string(path) + " ";
  const bool skip = strcmp(path, "/proc") == 0 || strcmp(path, "/usr") == 0;
  if (skip) return FTW_SKIP_SUBTREE;
  return ++entries_seen > 100000 ? FTW_STOP : FTW_CONTINUE;
}

Verdict NoSocketFiles() {
  nftw("/", NoteSocket, 32, FTW_PHYS | FTW_ACTIONRETVAL);
  return Unless(found_sockets, std::to_string(entries_seen) + " entries");
}

Verdict HostPathsInvisible() {
  std::string problems;
  for (const char* path :
       {"/root/.ssh", "/root/.bash_history", "/root/.aws", "/root/.netrc", "/home/runner",
        "/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock",
        "/run/systemd/private", "/boot/vmlinuz", "/lost+found", "/etc/ssh/ssh_host_rsa_key",
        "/etc/machine-id", "/var/lib/docker", "/var/log/auth.log", "/etc/sudoers",
        "/etc/krb5.keytab"})
    if (access(path, F_OK) == 0) problems += std::string(path) + " ";
  return Unless(problems);
}

// A generated /etc/shadow may be there; one with a password hash may not.
Verdict NoPasswordHashes() {
  std::istringstream text(ReadFile("/etc/shadow"));
  std::string problems;
  for (std::string line; std::getline(text, line);) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos && line.size() > colon + 1 && line[colon + 1] == '$')
      problems += line.substr(0, colon) + " ";
  }
  return Unless(problems);
}

const Attempt kAttempts[] = {
    {"D01", "Escape", "descriptors beyond 0, 1, 2, or of a host file", "ok", "ok", kSafe,
     OnlyStdio},
    {"D03", "Escape", "cwd outside the root", "ok", "ok", kSafe, CwdIsInside},
    {"D04", "HostDoS", "stdio is a file that can be reopened", "ok", "ok", kSafe, StdioIsNoFile},
    {"D05.init", "Escape", "open init's program for writing", "EACCES|EPERM|ETXTBSY",
     "EACCES|EPERM|ETXTBSY", kSafe, OverwriteInit},
    {"D05.any", "Escape", "open an entering program for writing", "ok", "ok", kSafe, OverwriteAny},
    {"D13", "Escape", "named unix sockets in this network namespace", "ok", "ok", kSafe,
     NoNamedSockets},
    {"F16", "Escape", "unix sockets in the tree", "ok", "ok", kSafe, NoSocketFiles},
    {"D15.paths", "HostLeak", "well-known host paths", "ok", "ok", kSafe, HostPathsInvisible},
    {"D15.shadow", "HostLeak", "password hashes of the host", "ok", "ok", kSafe, NoPasswordHashes},
};

}  // namespace

std::span<const Attempt> DescriptorAttempts() { return kAttempts; }

}  // namespace caisson::probe
