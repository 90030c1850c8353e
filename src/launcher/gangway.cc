#include "launcher/gangway.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>

namespace caisson::launcher {
namespace {

constexpr int kBlockSize = kMaxOverlays + kMaxMounts + 16;
constexpr int kLowest = 64, kHighest = 960;  // where a block may begin: within any soft limit

bool IsFree(int first) {
  for (int fd = first; fd < first + kBlockSize; ++fd)
    if (fcntl(fd, F_GETFD) >= 0) return false;
  return true;
}

}  // namespace

Result<Gangway> Gangway::Reserve() {
  sys::UniqueFd placeholder(open("/dev/null", O_PATH | O_CLOEXEC));
  int ends[2];
  if (!placeholder || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
    return Error::FromErrno("prepare the descriptors of children");
  Gangway gangway(kLowest, std::move(placeholder), sys::UniqueFd(ends[0]), sys::UniqueFd(ends[1]));
  while (!IsFree(gangway.first_)) {
    if ((gangway.first_ += kBlockSize) > kHighest)
      return Error(ErrorCode::kResourceExhausted, "too many descriptors are open")
          .WithRemedy("start Caisson with fewer inherited descriptors");
  }
  for (int i = 0; i < kBlockSize; ++i)
    if (dup3(gangway.placeholder_.get(), gangway.first_ + i, O_CLOEXEC) < 0)
      return Error::FromErrno("reserve descriptors for children");
  return gangway;
}

Status Gangway::Load(JailPlan& plan) {
  while (child_ && !HasLeft(-1)) {
  }
  Clear();
  int error = 0;
  auto put = [&](int& fd) {
    if (fd < 0 || error != 0) return;
    const int slot = first_ + loaded_++;
    if (dup3(fd, slot, O_CLOEXEC) < 0) error = errno;
    fd = slot;
  };
  plan.left = left_write_.get();
  plan.block_end = first_ + kBlockSize;
  for (int* fd : {&plan.disk, &plan.net_ns, &plan.user_ns, &plan.control, &plan.init, &plan.go,
                  &plan.report, &plan.left})
    put(*fd);
  for (int& fd : plan.nodes) put(fd);
  for (size_t i = 0; i < plan.overlay_count; ++i) put(plan.overlays[i].lower);
  for (size_t i = 0; i < plan.mount_count; ++i) put(plan.mounts[i].source);
  if (error == 0) return {};
  Clear();
  return Error::FromErrno("hand descriptors to a child", error);
}

sys::CloneResult Gangway::Clone(uint64_t flags, int cgroup_fd) {
  const sys::CloneResult clone = sys::Clone(flags | CLONE_FILES, cgroup_fd);
  const int clone_errno = errno;
  if (clone.pid == 0) return clone;
  if (clone.pid < 0) {
    Clear();
  } else {
    child_.Reset(fcntl(clone.pidfd, F_DUPFD_CLOEXEC, 3));
    while (!child_ && !HasLeft(-1)) {  // without a descriptor to tell of its death
    }
    if (!child_) Clear();
  }
  errno = clone_errno;
  return clone;
}

bool Gangway::HasLeft(int timeout_ms) {
  pollfd either[] = {{left_read_.get(), POLLIN, 0}, {child_.get(), POLLIN, 0}};
  return poll(either, 2, timeout_ms) > 0;
}

void Gangway::Collect() {
  if (child_ && HasLeft(0)) Clear();
}

void Gangway::Clear() {
  for (; loaded_ > 0; --loaded_) dup3(placeholder_.get(), first_ + loaded_ - 1, O_CLOEXEC);
  char bytes[8];
  while (read(left_read_.get(), bytes, sizeof bytes) > 0) {
  }
  child_.Reset();
}

}  // namespace caisson::launcher
