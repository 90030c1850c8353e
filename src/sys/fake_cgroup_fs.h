// A fake host for cgroup tests: a temporary directory with /proc and cgroup file systems whose
// directories fill themselves with the kernel's files when made. It has no kernel behind it: values
// are stored as written and no process is ever in a group.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "sys/cgroup.h"

namespace caisson::sys {

class FakeCgroupFs {
 public:
  FakeCgroupFs() {
    // Hundreds of small files: in memory where possible.
    char in_memory[] = "/dev/shm/fake_cgroup_fs.XXXXXX", on_disk[] = "/tmp/fake_cgroup_fs.XXXXXX";
    const char* made = ::mkdtemp(in_memory);
    root_ = made ? made : ::mkdtemp(on_disk);
    host_.proc = root_ / "proc";
    host_.sys = root_ / "sys";
    host_.make_dir = &MakeDir;
    host_.remove_dir = &RemoveDir;
    Put("proc/cgroups", "#subsys_name\thierarchy\tnum_cgroups\tenabled\n");
    Put("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n");
    Put("proc/self/mountinfo", "22 27 0:21 / /proc rw - proc proc rw\n");
    Put("proc/self/cgroup", "");
    Put("sys/dev/block/8:0/dev", "8:0\n");
    Put("sys/dev/block/8:0/8:1/partition", "1\n");
    std::filesystem::create_directory_symlink("8:0/8:1", root_ / "sys/dev/block/8:1");
    absent_files().clear();
  }
  ~FakeCgroupFs() {
    absent_files().clear();
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  FakeCgroupFs(const FakeCgroupFs&) = delete;
  FakeCgroupFs& operator=(const FakeCgroupFs&) = delete;

  const CgroupHost& host() const { return host_; }
  std::filesystem::path Path(std::string_view below) const { return root_ / below; }
  // Files that new directories come without.
  static std::vector<std::string>& absent_files() {
    static std::vector<std::string> files;
    return files;
  }

  void MountV1(const std::string& controllers, const std::string& own = "/",
               const std::string& options = "rw") {
    const std::string at = "cg/" + controllers;
    Append("proc/self/mountinfo", "30 22 0:30 / " + Path(at).string() + " " + options +
                                      " - cgroup cgroup " + options + "," + controllers + "\n");
    Append("proc/self/cgroup", "4:" + controllers + ":" + own + "\n");
    Fill(Path(at + own), "");
  }
  void MountV2(const std::string& controllers, const std::string& own = "/") {
    Append("proc/self/mountinfo",
           "31 22 0:31 / " + Path("cg/unified").string() + " rw - cgroup2 cgroup2 rw\n");
    Append("proc/self/cgroup", "0::" + own + "\n");
    std::string at = "cg/unified";
    Fill(Path(at), controllers);
    Fill(Path(at + own), controllers);
  }

  std::string Get(std::string_view below) const {
    std::ostringstream text;
    text << std::ifstream(Path(below)).rdbuf();
    return text.str().substr(0, text.str().find('\n'));
  }
  void Put(std::string_view below, std::string_view text) const {
    std::filesystem::create_directories(Path(below).parent_path());
    std::ofstream(Path(below)) << text;
  }
  bool Exists(std::string_view below) const { return std::filesystem::exists(Path(below)); }

 private:
  void Append(std::string_view below, std::string_view text) const {
    std::ofstream(Path(below), std::ios::app) << text;
  }

  static void Fill(const std::filesystem::path& dir, std::string_view controllers) {
    std::filesystem::create_directories(dir);
    const auto put = [&](std::string_view name, std::string_view text) {
      const auto& absent = absent_files();
      if (std::find(absent.begin(), absent.end(), name) == absent.end())
        std::ofstream(dir / name) << text;
    };
    for (const char* file :
         {"cgroup.procs", "memory.force_empty", "memory.reclaim", "devices.deny", "devices.allow",
          "cgroup.kill", "io.max", "io.stat", "memory.peak", "blkio.throttle.read_bps_device",
          "blkio.throttle.write_bps_device", "blkio.throttle.read_iops_device",
          "blkio.throttle.write_iops_device", "blkio.throttle.io_service_bytes_recursive"})
      put(file, "");
    put("cgroup.controllers", controllers);
    put("cgroup.subtree_control", controllers);  // handing down is the kernel's business
    for (const char* file : {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"})
      put(file, "9223372036854771712\n");
    for (const char* file : {"memory.max", "memory.swap.max", "memory.high", "pids.max"})
      put(file, "max\n");
    for (const char* file : {"memory.current", "memory.usage_in_bytes", "pids.current",
                             "memory.memsw.usage_in_bytes", "memory.max_usage_in_bytes",
                             "memory.swap.current", "cpuacct.usage_user", "cpuacct.usage_sys"})
      put(file, "0\n");
    put("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
    put("memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n");
    put("pids.events", "max 0\n");
    put("cpu.stat",
        "usage_usec 0\nuser_usec 0\nsystem_usec 0\nthrottled_usec 0\nthrottled_time 0\n");
    put("cpu.cfs_quota_us", "-1\n");
    put("cpu.cfs_period_us", "100000\n");
    put("cpu.shares", "1024\n");
    put("cpu.weight", "100\n");
    put("cpu.max", "max 100000\n");
    put("freezer.state", "THAWED\n");
    put("cgroup.freeze", "0\n");
    put("cgroup.events", "populated 0\nfrozen 0\n");
  }

  static std::filesystem::path At(int dir_fd, const char* name) {
    return std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(dir_fd)) / name;
  }
  static int MakeDir(int dir_fd, const char* name) {
    if (::mkdirat(dir_fd, name, 0755) != 0) return errno;
    const auto dir = At(dir_fd, name);
    std::string controllers;
    std::getline(std::ifstream(dir.parent_path() / "cgroup.subtree_control"), controllers);
    Fill(dir, controllers);
    return 0;
  }
  // Like the kernel: sub-directories are in the way, files are not.
  static int RemoveDir(int dir_fd, const char* name) {
    const auto dir = At(dir_fd, name);
    if (!std::filesystem::exists(dir)) return ENOENT;
    for (const auto& entry : std::filesystem::directory_iterator(dir))
      if (entry.is_directory()) return EBUSY;
    std::string procs;
    if (std::getline(std::ifstream(dir / "cgroup.procs"), procs) && !procs.empty()) return EBUSY;
    std::error_code ignored;
    std::filesystem::remove_all(dir, ignored);
    return 0;
  }

  std::filesystem::path root_;
  CgroupHost host_;
};

}  // namespace caisson::sys
