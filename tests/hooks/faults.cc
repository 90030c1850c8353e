// Faults of the operating system, to order: a library that tests put before libc (LD_PRELOAD).
//
// CAISSON_FAULTS names a file of three 64-bit integers, which the test writes while the process
// runs: the errno that every fsync and fdatasync gives (0: none), how many milliseconds each of
// them takes, and how many seconds the wall clock is off.
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>

namespace {

struct Faults {
  std::atomic<int64_t> sync_errno, sync_delay_ms, clock_offset_s;
};

Faults* Map() {
  const char* path = getenv("CAISSON_FAULTS");
  const int fd = path != nullptr ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (fd < 0) return nullptr;
  void* mapped = mmap(nullptr, sizeof(Faults), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  return mapped != MAP_FAILED ? static_cast<Faults*>(mapped) : nullptr;
}

const Faults* Ordered() {
  static const Faults* const faults = Map();
  return faults;
}

int Sync(long call, int fd) {
  const Faults* faults = Ordered();
  const int64_t delay = faults != nullptr ? faults->sync_delay_ms.load() : 0;
  if (delay > 0) {
    const timespec pause{delay / 1000, (delay % 1000) * 1'000'000};
    nanosleep(&pause, nullptr);
  }
  if (faults != nullptr && faults->sync_errno.load() != 0) {
    errno = static_cast<int>(faults->sync_errno.load());
    return -1;
  }
  return static_cast<int>(syscall(call, fd));
}

}  // namespace

extern "C" {

int fsync(int fd) { return Sync(SYS_fsync, fd); }
int fdatasync(int fd) { return Sync(SYS_fdatasync, fd); }

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result == 0 && clock == CLOCK_REALTIME)
    if (const Faults* faults = Ordered()) time->tv_sec += faults->clock_offset_s.load();
  return result;
}

}  // extern "C"
