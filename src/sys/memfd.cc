#include "sys/memfd.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U  // Linux 6.3; older kernels refuse the flag and need none
#endif

namespace caisson::sys {
namespace {

// While the kernel has hold of one of its pages (to move or to age it), a file cannot be sealed
// against writing: EBUSY, after about 100 ms of waiting inside (memfd_wait_for_pins in mm/memfd.c).
int Seal(int fd) {
  constexpr int kAttempts = 30;
  for (int attempt = 1;; ++attempt) {
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
      return 0;
    if (errno != EBUSY || attempt == kAttempts) return errno;
  }
}

}  // namespace

Result<UniqueFd> MakeSealedProgram(const char* name, std::string_view program, Readable readable) {
  UniqueFd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC));
  if (!fd && errno == EINVAL) fd.Reset(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return Error::FromErrno(std::string("make a memory file for ") + name);
  while (!program.empty()) {
    const ssize_t wrote = write(fd.get(), program.data(), program.size());
    if (wrote < 0) return Error::FromErrno(std::string("fill the memory file of ") + name);
    program.remove_prefix(static_cast<size_t>(wrote));
  }
  const mode_t mode = readable == Readable::kByOwner    ? 0500
                      : readable == Readable::kByNobody ? 0111
                                                        : 0555;
  if (fchmod(fd.get(), mode) != 0)
    return Error::FromErrno(std::string("protect the memory file of ") + name);
  if (const int error = Seal(fd.get()); error != 0)
    return Error::FromErrno(std::string("seal the memory file of ") + name, error);
  return fd;
}

}  // namespace caisson::sys
