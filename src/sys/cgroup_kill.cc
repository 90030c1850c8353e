// The processes of a group: listing, freezing and killing them on both versions.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "sys/cgroup_internal.h"

namespace caisson::sys::internal {
namespace {

constexpr size_t kMaxProcsFile = 64 << 20;  // 4 million pids
constexpr size_t kBatch = 64;

Error Undone(std::string_view what, const GroupDir& dir, std::string_view state) {
  std::string message(what);
  message.append(" group ").append(dir.name).append(": ").append(state);
  return Error(ErrorCode::kDeadlineExceeded, std::move(message));
}

// Waits until cgroup.events has `key` at `value`. The file signals POLLPRI on change, but at most
// every 10 ms, so the first looks come by themselves.
bool WaitForEvent(const GroupDir& dir, std::string_view key, uint64_t value,
                  const Deadline& deadline) {
  const UniqueFd events(
      ::openat(dir.parent, dir.Path("cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
  if (!events) return false;
  for (int attempt = 0;; ++attempt) {
    char buffer[256];
    const ssize_t size = ::pread(events.get(), buffer, sizeof(buffer), 0);
    if (size < 0) return false;
    if (NumberOf(std::string_view(buffer, static_cast<size_t>(size)), key) == value) return true;
    const int left = deadline.Left(100);
    if (left == 0) return false;
    if (attempt < 7) {
      BackOff(attempt);
      continue;
    }
    pollfd waiting = {events.get(), POLLPRI, 0};
    ::poll(&waiting, 1, left);
  }
}

// One round of the v1 way: SIGKILL up to kBatch processes and wait a little for their end. Each is
// held by a pidfd and then found in the group again before the signal, so that a number which the
// kernel has given to a stranger meanwhile is not hit.
Status KillRound(const GroupDir& dir, const std::vector<pid_t>& listed, const GroupDir* freezer,
                 const Deadline& deadline) {
  std::vector<pollfd> held;
  std::vector<UniqueFd> owners;
  std::vector<pid_t> pids;
  bool foreign = false;
  for (const pid_t pid : listed) {
    if (pid <= 0 || pid == ::getpid()) {
      foreign = true;
      continue;
    }
    if (pids.size() == kBatch) break;
    UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!pidfd) {
      if (errno == EMFILE || errno == ENFILE) break;
      continue;
    }
    held.push_back({pidfd.get(), POLLIN, 0});
    owners.push_back(std::move(pidfd));
    pids.push_back(pid);
  }
  if (pids.empty() && foreign) {
    return Error(ErrorCode::kPermissionDenied,
                 "group " + std::string(dir.name) +
                     " holds the caller itself or processes outside its pid namespace");
  }
  CAISSON_ASSIGN(const std::vector<pid_t> again, ListProcesses(dir));
  for (size_t i = 0; i < pids.size(); ++i) {
    if (std::ranges::find(again, pids[i]) == again.end()) continue;
    ::syscall(SYS_pidfd_send_signal, held[i].fd, SIGKILL, nullptr, 0);
  }
  // A v1-frozen task acts on SIGKILL only when thawed.
  if (freezer) freezer->TryWrite("freezer.state", "THAWED");
  for (pollfd& one : held) ::poll(&one, 1, deadline.Left(20));
  return {};
}

}  // namespace

Result<std::vector<pid_t>> ListProcesses(const GroupDir& dir) {
  CAISSON_ASSIGN(const std::string text,
                 ReadText(dir.parent, dir.Path("cgroup.procs").c_str(), kMaxProcsFile));
  std::vector<pid_t> pids;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto pid = ParseNumber(NextPiece(rest, '\n'));
    if (pid) pids.push_back(static_cast<pid_t>(*pid));
  }
  return pids;
}

Result<bool> IsEmpty(const GroupDir& dir) {
  char buffer[16];
  const auto text = dir.TryRead("cgroup.procs", buffer);
  if (!text) return Error::FromErrno("cannot read cgroup.procs of group " + std::string(dir.name));
  return text->empty();
}

Status FreezeGroup(const GroupDir& dir, Version version, const Deadline& deadline) {
  const auto file = version == Version::k2 ? "cgroup.freeze" : "freezer.state";
  const auto word = version == Version::k2 ? "1\n" : "FROZEN\n";
  if (const int error = dir.TryWrite(file, word); error != 0)
    return WriteError(dir, file, word, error);
  if (version == Version::k2) {
    if (WaitForEvent(dir, "frozen", 1, deadline)) return {};
  } else {
    // FREEZING becomes FROZEN when somebody looks and every task has stopped.
    for (int attempt = 0;; ++attempt) {
      char buffer[32];
      const auto state = dir.TryRead(file, buffer);
      if (state && FirstLine(*state) == "FROZEN") return {};
      if (deadline.Passed()) break;
      BackOff(attempt);
    }
  }
  CAISSON_TRY(ThawGroup(dir, version));
  return Undone("cannot freeze", dir, "a process did not stop in time (uninterruptible sleep)");
}

Status ThawGroup(const GroupDir& dir, Version version) {
  const auto file = version == Version::k2 ? "cgroup.freeze" : "freezer.state";
  const auto word = version == Version::k2 ? "0\n" : "THAWED\n";
  if (const int error = dir.TryWrite(file, word); error != 0)
    return WriteError(dir, file, word, error);
  return {};
}

Status KillGroup(const GroupDir& dir, Version version, const GroupDir* freezer,
                 const Deadline& deadline) {
  // cgroup.kill (Linux 5.14) reaches forking and frozen processes in one write.
  if (version == Version::k2 && dir.TryWrite("cgroup.kill", "1") == 0) {
    if (WaitForEvent(dir, "populated", 0, deadline)) return {};
    return Undone("cannot empty", dir, "a process did not die in time (uninterruptible sleep)");
  }
  for (int attempt = 0;; ++attempt) {
    CAISSON_ASSIGN(const std::vector<pid_t> listed, ListProcesses(dir));
    if (listed.empty()) {
      if (freezer) freezer->TryWrite("freezer.state", "THAWED");
      return {};
    }
    // At least one round even when the time is up: the signal is sent, only the wait is cut.
    if (attempt > 0 && deadline.Passed()) {
      return Undone("cannot empty", dir,
                    std::to_string(listed.size()) + " processes did not die in time");
    }
    CAISSON_TRY(KillRound(dir, listed, freezer, deadline));
    if (attempt > 0) BackOff(attempt - 1);
  }
}

}  // namespace caisson::sys::internal
