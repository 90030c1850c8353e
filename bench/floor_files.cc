#include "floor_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace caisson::bench {

std::string ReadFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string content;
  char buffer[4096];
  for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) > 0;) {
    content.append(buffer, static_cast<size_t>(got));
  }
  close(fd);
  return content;
}

std::string ReadLink(const std::string& path) {
  char buffer[256];
  const ssize_t got = readlink(path.c_str(), buffer, sizeof buffer);
  return got < 0 ? std::string() : std::string(buffer, static_cast<size_t>(got));
}

bool WriteFile(const std::string& path, const std::string& value) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = write(fd, value.data(), value.size()) == static_cast<ssize_t>(value.size());
  const int error = errno;
  close(fd);
  errno = error;
  return written;
}

bool CopyFile(const std::string& from, const std::string& to) {
  for (size_t slash = to.find('/', 1); slash != std::string::npos;
       slash = to.find('/', slash + 1)) {
    if (mkdir(to.substr(0, slash).c_str(), 0755) < 0 && errno != EEXIST) return false;
  }
  struct stat about;
  if (stat(from.c_str(), &about) < 0) return false;
  const std::string content = ReadFile(from);
  if (content.size() != static_cast<size_t>(about.st_size)) return false;
  const int fd = open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, about.st_mode & 0777);
  if (fd < 0) return false;
  close(fd);
  return WriteFile(to, content);
}

void RemoveTree(const std::string& path) {
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return;
  if (DIR* directory = opendir(path.c_str())) {
    while (const dirent* entry = readdir(directory)) {
      if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
        RemoveTree(path + "/" + entry->d_name);
      }
    }
    closedir(directory);
  }
  rmdir(path.c_str());
}

std::vector<std::string> ProgramFiles(const std::string& program) {
  std::vector<std::string> files = {program};
  FILE* listing = popen(("ldd " + program).c_str(), "re");
  if (listing == nullptr) return files;
  // Lines are "name => /path (address)" or "/path (address)".
  char line[1024];
  while (fgets(line, sizeof line, listing) != nullptr) {
    const char* begin = strchr(line, '/');
    if (begin != nullptr) files.emplace_back(begin, strcspn(begin, " \t\n"));
  }
  pclose(listing);
  return files;
}

std::string CgroupMount(const std::string& type, const std::string& option) {
  FILE* table = setmntent("/proc/self/mounts", "re");
  if (table == nullptr) return {};
  std::string found;
  while (const mntent* entry = getmntent(table)) {
    if (type == entry->mnt_type &&
        (option.empty() || hasmntopt(entry, option.c_str()) != nullptr)) {
      found = entry->mnt_dir;
      break;
    }
  }
  endmntent(table);
  return found;
}

}  // namespace caisson::bench
