#include "providers/native/launcher_link.h"

#include <sys/wait.h>

#include <algorithm>

#include "async/race.h"

namespace caisson::native {
namespace {

constexpr std::chrono::seconds kStartTime{15};  // it sweeps first what its predecessor left
constexpr std::chrono::seconds kPatience{5};    // of a call that finds no launcher
constexpr std::chrono::seconds kSteady{10};     // one that lived so long died of something new
constexpr std::chrono::milliseconds kFirstPause{20};  // a dying one may still hold its socket
constexpr std::chrono::seconds kLongestPause{30};

}  // namespace

Task<Result<std::unique_ptr<LauncherLink>>> LauncherLink::Open(async::Loop* loop,
                                                               LauncherPaths paths, Keeping keeping,
                                                               Pooling pooling) {
  std::unique_ptr<LauncherLink> link(new LauncherLink(*loop, std::move(paths), keeping, pooling));
  CAISSON_CO_TRY(co_await link->StartOne());
  co_return link;
}

LauncherLink::~LauncherLink() {
  if (client_) client_->Observe(nullptr, nullptr);
}

void LauncherLink::Observe(std::function<void()> on_death,
                           std::function<void(const wire::launcher::Lost&)> on_lost) {
  on_death_ = std::move(on_death);
  on_lost_ = std::move(on_lost);
}

Task<Status> LauncherLink::StartOne() {
  auto started = co_await LauncherClient::Start(&loop_, paths_, keeping_, pooling_);
  if (!started) co_return std::move(started).error();
  std::shared_ptr<LauncherClient> client = *std::move(started);
  if (client->closed())
    co_return Error(ErrorCode::kUnavailable, "the launcher died as soon as it had started");
  client->Observe([this] { OnClosed(); },
                  [this](const wire::launcher::Lost& lost) {
                    if (on_lost_) on_lost_(lost);
                  });
  client_ = std::move(client);
  started_ = Clock::now();
  co_return Status();
}

void LauncherLink::OnClosed() {
  if (on_death_) on_death_();
  if (keeping_ == Keeping::kEphemeral) return;
  if (client_->pid() > 0) tasks_.Spawn(Reap(client_->pid()));
  pause_ = Clock::now() - started_ > kSteady || pause_.count() == 0
               ? kFirstPause
               : std::min<std::chrono::milliseconds>(2 * pause_, kLongestPause);
  tasks_.Spawn(Replace(pause_));
}

Task<void> LauncherLink::Reap(pid_t pid) {
  while (waitpid(pid, nullptr, WNOHANG) == 0) co_await loop_.Sleep(std::chrono::milliseconds(50));
}

Task<void> LauncherLink::Replace(std::chrono::milliseconds pause) {
  for (;;) {
    co_await loop_.Sleep(pause);
    auto started = co_await async::WithTimeout(&loop_, kStartTime, StartOne());
    if (started && *started) break;
    failure_ = started ? std::move(*started).error()
                       : Error(ErrorCode::kUnavailable, "the launcher does not answer");
    pause = pause_ = std::min<std::chrono::milliseconds>(2 * pause, kLongestPause);
  }
  failure_.reset();
  changed_.Wake();
}

Task<Result<std::shared_ptr<LauncherClient>>> LauncherLink::Get() {
  const auto until = Clock::now() + kPatience;
  while (client_->closed()) {
    const auto left = until - Clock::now();
    if (keeping_ == Keeping::kKeep && left > Clock::duration::zero()) {
      (void)co_await async::WithTimeout(&loop_, left, async::WaitFor(&changed_));
      continue;
    }
    co_return Error(ErrorCode::kUnavailable,
                    failure_
                        ? "the launcher died, and no other could be started: " + failure_->message()
                        : std::string("the launcher died"))
        .WithRemedy(failure_ && !failure_->remedy().empty()
                        ? failure_->remedy()
                        : "look at its messages, then try again");
  }
  co_return client_;
}

}  // namespace caisson::native
