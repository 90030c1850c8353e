#pragma once

#include <string>
#include <vector>

// The few file helpers the floor program needs. Failures leave errno set.
namespace caisson::bench {

// Whole content of a file, or empty if it cannot be read.
std::string ReadFile(const std::string& path);

// Target of a symbolic link, or empty.
std::string ReadLink(const std::string& path);

// One open, one write, one close: what a kernel control file wants. False on failure.
[[nodiscard]] bool WriteFile(const std::string& path, const std::string& value);

// Copies a regular file with its mode, making the directories above it. False on failure.
[[nodiscard]] bool CopyFile(const std::string& from, const std::string& to);

// Removes a tree without crossing symbolic links. What is already gone is no failure.
void RemoveTree(const std::string& path);

// The program itself, its interpreter and every shared library it loads, as ldd names them.
std::vector<std::string> ProgramFiles(const std::string& program);

// Where a cgroup file system of this type with this mount option is mounted, or empty. An empty
// option matches any mount of the type.
std::string CgroupMount(const std::string& type, const std::string& option);

}  // namespace caisson::bench
