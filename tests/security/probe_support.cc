// What the attempts share: verdicts, names, small file helpers.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "probe.h"

namespace caisson::probe {
namespace {

StartState start_state;

}  // namespace

Verdict Refused(int error_number, std::string detail) {
  return {Kind::kRefused, ErrnoName(error_number), std::move(detail)};
}
Verdict Open(std::string detail) { return {Kind::kOpen, "", std::move(detail)}; }
Verdict Ok(std::string detail) { return {Kind::kOk, "", std::move(detail)}; }
Verdict Failed(std::string detail) { return {Kind::kError, ErrnoName(errno), std::move(detail)}; }
Verdict Empty(std::string detail) { return {Kind::kRefused, "EMPTY", std::move(detail)}; }
Verdict Judge(long result, std::string detail) {
  return result < 0 ? Refused(errno, std::move(detail)) : Open(std::move(detail));
}
Verdict Unless(std::string problems, std::string when_fine) {
  return problems.empty() ? Ok(std::move(when_fine)) : Open(std::move(problems));
}

const StartState& AtStart() { return start_state; }

void RecordStart() {
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return;
  while (const dirent* entry = readdir(directory)) {
    const int number = atoi(entry->d_name);
    if (entry->d_name[0] == '.' || number == dirfd(directory)) continue;
    char target[512] = "";
    const ssize_t n = readlinkat(dirfd(directory), entry->d_name, target, sizeof(target) - 1);
    struct stat info{};
    fstat(number, &info);
    start_state.descriptors.push_back(
        {number, std::string(target, n > 0 ? static_cast<size_t>(n) : 0), info.st_mode});
  }
  closedir(directory);
}

std::string ErrnoName(int error_number) {
  if (error_number == 0) return "";
  const char* name = strerrorname_np(error_number);
  return name != nullptr ? name : std::to_string(error_number);
}

std::string SignalName(int number) {
  const char* name = sigabbrev_np(number);
  return name != nullptr ? std::string("SIG") + name : "SIG" + std::to_string(number);
}

std::string JsonString(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte >= 0x7f) {
      char escaped[8];
      snprintf(escaped, sizeof(escaped), "\\u%04x", byte);
      out += escaped;
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string ReadFile(const char* path, size_t limit) {
  const int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text;
  char buffer[8192];
  ssize_t n = 0;
  while (text.size() < limit &&
         (n = read(fd, buffer, std::min(sizeof(buffer), limit - text.size()))) > 0)
    text.append(buffer, static_cast<size_t>(n));
  const int saved = n < 0 ? errno : 0;
  close(fd);
  errno = saved;
  return text;
}

std::string StatusField(std::string_view status, std::string_view name) {
  const std::string key = "\n" + std::string(name) + ":";
  const size_t at = status.find(key);
  if (at == std::string_view::npos) return {};
  size_t begin = at + key.size();
  const size_t end = std::min(status.find('\n', begin), status.size());
  while (begin < end && (status[begin] == '\t' || status[begin] == ' ')) ++begin;
  return std::string(status.substr(begin, end - begin));
}

std::string StatusField(std::string_view name) {
  return StatusField(ReadFile("/proc/self/status"), name);
}

std::vector<std::string> ListDirectory(const char* path) {
  std::vector<std::string> names;
  DIR* directory = opendir(path);
  if (directory == nullptr) return names;
  while (const dirent* entry = readdir(directory)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  closedir(directory);
  std::sort(names.begin(), names.end());
  errno = 0;
  return names;
}

std::string ScratchPath(std::string_view name) {
  static int counter = 0;
  for (const char* base : {"/tmp", "/workspace", "/dev/shm"}) {
    if (access(base, W_OK | X_OK) == 0)
      return std::string(base) + "/probe-" + std::to_string(getpid()) + "-" +
             std::to_string(counter++) + "-" + std::string(name);
  }
  return "/probe-" + std::string(name);
}

Verdict OpenForWriting(const char* path) {
  const int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (fd < 0) return Refused(errno, path);
  close(fd);
  return Open(std::string(path) + " can be opened for writing");
}

Verdict ReadSome(const char* path) {
  const std::string text = ReadFile(path, 4096);
  if (!text.empty()) return Open(std::string(path) + ": " + text.substr(0, 60));
  return errno != 0 ? Refused(errno, path) : Empty(path);
}

int CopySelf(const std::string& path, unsigned mode) {
  const int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (in < 0) return errno;
  const int out = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
  if (out < 0) {
    const int saved = errno;
    close(in);
    return saved;
  }
  int result = 0;
  char buffer[65536];
  for (;;) {
    const ssize_t n = read(in, buffer, sizeof(buffer));
    if (n == 0) break;
    if (n < 0 || write(out, buffer, static_cast<size_t>(n)) != n) {
      result = errno != 0 ? errno : EIO;
      break;
    }
  }
  if (result == 0 && fchmod(out, mode) != 0) result = errno;
  close(in);
  close(out);
  if (result != 0) unlink(path.c_str());
  return result;
}

int RunProgram(const std::vector<std::string>& argv) {
  std::vector<char*> pointers;
  for (const std::string& argument : argv) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    execv(pointers[0], pointers.data());
    _exit(127);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child ? status : -1;
}

}  // namespace caisson::probe
