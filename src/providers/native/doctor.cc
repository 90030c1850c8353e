#include "providers/native/doctor.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "providers/native/native_provider.h"
#include "sys/unique_fd.h"

namespace caisson::native {
namespace {

using Clock = std::chrono::steady_clock;

std::chrono::microseconds Since(Clock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start);
}

std::string RandomName() {
  uint64_t number = 0;
  (void)!getrandom(&number, sizeof number, 0);
  return ".caisson-doctor-" + std::to_string(number);
}

// A file that everybody on the host can read, gone when this goes.
class Canary {
 public:
  Canary() : path_("/tmp/caisson-canary-XXXXXX") {
    file_.Reset(mkostemp(path_.data(), O_CLOEXEC));
    if (!file_)
      path_.clear();
    else if (fchmod(file_.get(), 0644) != 0 || write(file_.get(), "canary\n", 7) != 7)
      Remove();
  }
  ~Canary() { Remove(); }
  Canary(const Canary&) = delete;
  Canary& operator=(const Canary&) = delete;

  const std::string& path() const { return path_; }

 private:
  void Remove() {
    if (!path_.empty()) unlink(path_.c_str());
    path_.clear();
  }
  std::string path_;
  sys::UniqueFd file_;
};

bool Offers(const HostView& host, std::string_view fact) {
  const auto value = host.Fact(fact);
  return value && !value->starts_with("absent");
}

Task<void> AskLauncher(async::Loop* loop, LauncherPaths paths, Probing probing, HostView* host,
                       DoctorReport* report) {
  const auto start = Clock::now();
  auto provider = co_await NativeProvider::Open(loop, std::move(paths), Keeping::kEphemeral);
  report->launcher_start = Since(start);
  if (!provider) {
    host->launcher_error = provider.error().message();
    host->launcher_remedy = provider.error().remedy();
    co_return;
  }
  host->facts = report->facts = (*provider)->host().host;
  report->mode = host->Fact("mode").value_or("");
  if (probing == Probing::kSkip) co_return;
  const Canary canary;
  for (const auto profile : {sandbox::Profile::kDefault, sandbox::Profile::kStrict}) {
    ProbeSurroundings surroundings{.canary = canary.path(),
                                   .marker = RandomName(),
                                   .memory_limit = Offers(*host, "cgroup_memory"),
                                   .pids_limit = Offers(*host, "cgroup_pids"),
                                   .cpu_limit = Offers(*host, "cgroup_cpu"),
                                   .many_ids = host->Fact("ids").value_or("").starts_with("65536")};
    report->sandboxes.push_back(
        co_await TrySandbox(provider->get(), profile, std::move(surroundings)));
  }
}

}  // namespace

bool DoctorReport::Works() const {
  return Count(CheckStatus::kFailed) == 0 && std::ranges::all_of(sandboxes, &SandboxTrial::Works);
}

size_t DoctorReport::Count(CheckStatus status) const {
  return static_cast<size_t>(std::ranges::count_if(
      checks, [&](const CheckLine& line) { return line.result.status == status; }));
}

size_t DoctorReport::Count(ProbeStatus status) const {
  size_t count = 0;
  for (const auto& trial : sandboxes)
    count += static_cast<size_t>(std::ranges::count(trial.probes, status, &ProbeLine::status));
  return count;
}

DoctorReport Examine(const LauncherPaths& paths, Probing probing) {
  const auto start = Clock::now();
  DoctorReport report;
  HostView host = HostView::OfThisHost(paths.state_dir);
  report.kernel = host.kernel_release;
  async::Loop loop;
  loop.RunUntilDone(AskLauncher(&loop, paths, probing, &host, &report));
  const auto before = Clock::now();
  report.checks = CheckHost(host);
  report.checking = Since(before);
  report.total = Since(start);
  return report;
}

}  // namespace caisson::native
