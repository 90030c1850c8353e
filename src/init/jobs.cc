#include "init/jobs.h"

#include <fcntl.h>
#include <sys/prctl.h>

#include <cerrno>
#include <cstring>

#include "init/remove_tree.h"

namespace caisson::init {
namespace {

// What a job's child writes when it is done: smaller than PIPE_BUF, so it comes whole.
struct JobReport {
  int error_number = 0;
  char what[200] = {};
};

Status RemoveAs(const Privileges& privileges, const User& user, const std::string& path) {
  if (const int error = BecomeUser(privileges, user); error != 0) {
    return Error::FromErrno("becoming uid " + std::to_string(user.uid), error);
  }
  CAISSON_ASSIGN(const Place place, FindPlace(path));
  return RemoveTree(place);
}

[[noreturn]] void RunChild(int report_fd, const Privileges& privileges, const User& user,
                           const std::string& path) {
  constexpr int kReportFd = 3;
  if (report_fd != kReportFd) dup3(report_fd, kReportFd, O_CLOEXEC);
  close_range(kReportFd + 1, ~0u, 0);
  prctl(PR_SET_NAME, "caisson-remove");
  const Status removed = RemoveAs(privileges, user, path);
  JobReport report;
  if (!removed) {
    report.error_number = removed.error().sys_errno();
    strncpy(report.what, removed.error().message().c_str(), sizeof report.what - 1);
  }
  const ssize_t wrote = write(kReportFd, &report, sizeof report);
  _exit(wrote == sizeof report ? 0 : 1);
}

}  // namespace

void Jobs::RemoveRecursively(const wire::init::Remove& request, uint32_t tag) {
  if (jobs_.size() >= kMaxJobs)
    return outbox_.SendFailed(tag, EAGAIN, "too many removals are under way");
  const Status valid = CheckPath(request.path);
  if (!valid) return outbox_.SendFailed(tag, valid.error());
  const auto user = files_.UserOf(request.user);
  if (!user) return outbox_.SendFailed(tag, user.error());
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return outbox_.SendFailed(tag, errno, "making a pipe");
  Job job{.report = sys::UniqueFd(ends[0]), .tag = tag};
  const sys::UniqueFd theirs(ends[1]);
  const uint32_t id = ++last_id_;
  if (!poller_.Add(job.report.get(), EPOLLIN, {Source::kJob, id})) {
    return outbox_.SendFailed(tag, errno, "watching the removal");
  }
  const pid_t pid = _Fork();
  if (pid == 0) RunChild(theirs.get(), privileges_, *user, request.path);
  if (pid < 0) return outbox_.SendFailed(tag, errno, "starting a process for the removal");
  jobs_.emplace(id, std::move(job));
}

void Jobs::OnEvent(uint32_t id) {
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) return;
  JobReport report;
  const ssize_t got = read(found->second.report.get(), &report, sizeof report);
  const std::optional<uint32_t> tag = found->second.tag;
  jobs_.erase(found);
  if (!tag) return;
  if (got != sizeof report) return outbox_.SendFailed(*tag, EINTR, "the removal was killed");
  if (report.error_number == 0) return outbox_.SendDone(*tag);
  report.what[sizeof report.what - 1] = '\0';
  outbox_.SendFailed(*tag, report.error_number, report.what);
}

void Jobs::ForgetOwner() {
  for (auto& [id, job] : jobs_) job.tag.reset();
}

}  // namespace caisson::init
