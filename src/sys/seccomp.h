// Compiles the policy of sys/seccomp_policy.h to classic BPF and installs it.
//
// The program checks the architecture (a foreign one kills the process, because its calls have
// other numbers and hide their arguments), finds the range that the number lies in by binary search
// (x32 and negative numbers lie beyond the last one), and returns or goes on to the argument rule.
// Calls without an argument rule read nothing but number and architecture, so the kernel (5.11 and
// newer) caches their ALLOW in a bitmap and does not run the program for them at all.
#pragma once

#include <linux/filter.h>

#include <cstddef>
#include <string>
#include <vector>

#include "sys/seccomp_policy.h"

namespace caisson::sys {

// An assembled filter. Building uses the heap; program() can then be installed in any number of
// children. Move-only; immutable after Build and safe to share between threads.
class SeccompFilter {
 public:
  static SeccompFilter Build(SeccompProfile profile);

  SeccompFilter(SeccompFilter&&) = default;
  SeccompFilter& operator=(SeccompFilter&&) = default;
  SeccompFilter(const SeccompFilter&) = delete;
  SeccompFilter& operator=(const SeccompFilter&) = delete;

  // Points into this object; valid as long as it lives, also after it was moved from here.
  const sock_fprog& program() const { return program_; }
  // 16 hex digits, the 64-bit FNV-1a hash of the instructions: the same policy gives the same
  // digest on every host of one architecture. An identity, not a signature.
  std::string digest() const;
  // How many system calls can succeed, those with an argument rule included.
  size_t allowed_count() const { return allowed_count_; }

 private:
  SeccompFilter(std::vector<sock_filter> code, size_t allowed_count);

  std::vector<sock_filter> code_;
  sock_fprog program_;
  size_t allowed_count_;
};

// Puts the calling thread under `program`, for good. Needs no_new_privs or CAP_SYS_ADMIN. Returns
// 0 or errno. One system call, no heap: fit for use between clone and exec.
int InstallSeccomp(const sock_fprog& program);

}  // namespace caisson::sys
