// LauncherLink: the launcher that a provider works with, and the next one when it dies.
//
// A launcher takes its sandboxes along when it dies, so nothing is handed over: whoever holds the
// dead one sees that it is closed, and what is made from then on is made by its successor. With
// Keeping::kKeep the successor is started at once, and ever more slowly when launchers keep dying;
// with kEphemeral there is none. Belongs to one Loop's thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "async/task_set.h"
#include "providers/native/launcher_client.h"

namespace caisson::native {

class LauncherLink {
 public:
  static Task<Result<std::unique_ptr<LauncherLink>>> Open(async::Loop* loop, LauncherPaths paths,
                                                          Keeping keeping, Pooling pooling);
  ~LauncherLink();

  // The launcher. While its successor is being started, waits for that, a few seconds;
  // kUnavailable, with why the start failed, when there is none by then.
  Task<Result<std::shared_ptr<LauncherClient>>> Get();
  // The last one that answered, dead or alive.
  const std::shared_ptr<LauncherClient>& last() const { return client_; }

  // The launcher is about to be ended: nothing succeeds it.
  void Retire() { keeping_ = Keeping::kEphemeral; }

  // `on_death` runs when a launcher has died, before its successor is there; `on_lost` for each
  // sandbox that a living launcher reports as ended unasked.
  void Observe(std::function<void()> on_death,
               std::function<void(const wire::launcher::Lost&)> on_lost);

 private:
  using Clock = async::Loop::Clock;
  LauncherLink(async::Loop& loop, LauncherPaths paths, Keeping keeping, Pooling pooling)
      : loop_(loop),
        paths_(std::move(paths)),
        keeping_(keeping),
        pooling_(pooling),
        changed_(loop),
        tasks_(loop) {}
  Task<Status> StartOne();
  void OnClosed();
  // Waits for the end of one that is our child, so that it leaves no zombie.
  Task<void> Reap(pid_t pid);
  Task<void> Replace(std::chrono::milliseconds pause);

  async::Loop& loop_;
  const LauncherPaths paths_;
  Keeping keeping_;
  const Pooling pooling_;
  std::shared_ptr<LauncherClient> client_;
  Clock::time_point started_;
  std::chrono::milliseconds pause_{0};  // before the next start
  std::optional<Error> failure_;        // of the last start
  std::function<void()> on_death_;
  std::function<void(const wire::launcher::Lost&)> on_lost_;
  async::Event changed_;
  async::TaskSet tasks_;
};

}  // namespace caisson::native
