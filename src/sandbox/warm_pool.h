// WarmPool: sandboxes made ahead, so that a create finds one ready.
//
// A kind is a provider, an environment and a profile. How many of a kind wait follows how often it
// is asked for: the rate of claims, averaged over the last moments, times the time it takes to
// react, between a floor and a ceiling. Sandboxes are made one after another, in the background,
// when no create needs the host more and the host has room; what waits in vain goes again. Those
// that wait belong to the pool alone and are in no record: the next server removes them. Belongs to
// one Loop's thread.
#pragma once

#include <chrono>
#include <compare>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "async/task_set.h"
#include "sandbox/admission.h"
#include "sandbox/session_keeper.h"

namespace caisson::sandbox {

struct WarmKind {
  std::string environment = "host";  // the provider's own name for it
  Profile profile = Profile::kDefault;

  auto operator<=>(const WarmKind&) const = default;
};

struct WarmPoolOptions {
  size_t ceiling = 16;  // of one kind; 0: no pool
  size_t kinds = 64;    // more are not prepared
  std::chrono::milliseconds average_over = std::chrono::seconds(20);
  std::chrono::milliseconds react_in = std::chrono::seconds(2);
  std::chrono::milliseconds max_age = std::chrono::minutes(10);  // the host's files change
  std::chrono::milliseconds look_every = std::chrono::seconds(1);
  std::chrono::milliseconds back_off = std::chrono::seconds(5);  // after a failure to make one
  StringMap environments;                                        // as ManagerOptions::environments
};

// The rate of something that happens now and then, averaged with exponential decay.
class RateTracker {
 public:
  using Clock = async::Loop::Clock;
  explicit RateTracker(std::chrono::milliseconds average_over) : over_(average_over) {}
  void Note(Clock::time_point now);
  double PerSecond(Clock::time_point now) const;

 private:
  std::chrono::duration<double> over_;
  double rate_ = 0;
  Clock::time_point at_;
};

class WarmPool : public WarmSource {
 public:
  // `busy` says that creates are under way which go first. Everything given outlives it.
  WarmPool(async::Loop& loop, Admission& admission, std::function<bool()> busy,
           WarmPoolOptions options);
  ~WarmPool() override;

  // At least so many of this kind wait from now on.
  void KeepReady(Provider& provider, WarmKind kind, size_t floor);

  std::unique_ptr<Sandbox> Claim(Provider& provider, const SessionSpec& spec) override;
  void Made(Provider& provider, const SessionSpec& spec) override;
  bool Holds(const std::string& sandbox_id) const override;

  // How many wait; claims that found one and that did not.
  size_t ready() const;
  size_t hits() const { return hits_; }
  size_t misses() const { return misses_; }

  // Makes no more and ends those that wait.
  Task<void> Close();

 private:
  using Clock = async::Loop::Clock;
  struct Ready {
    std::unique_ptr<Sandbox> sandbox;
    Clock::time_point made;
  };
  struct Shelf {
    explicit Shelf(Provider& provider, std::chrono::milliseconds average_over)
        : provider(provider), rate(average_over) {}
    Provider& provider;
    RateTracker rate;
    size_t floor = 0;
    std::deque<Ready> ready;  // oldest first
    Clock::time_point not_before;
  };
  using ShelfKey = std::pair<std::string, WarmKind>;

  Shelf* ShelfOf(Provider& provider, const WarmKind& kind);
  WarmKind KindOf(const SessionSpec& spec) const;
  size_t Target(const Shelf& shelf, Clock::time_point now) const;
  Task<void> FillTask();
  Task<bool> MakeOne(Shelf* shelf, WarmKind kind);
  Task<void> EndTask(Provider* provider, std::unique_ptr<Sandbox> sandbox);
  void DropSurplus(Shelf& shelf, Clock::time_point now);
  void DropGone(Shelf& shelf);
  Task<void> DropDead(Shelf* shelf);
  void End(Shelf& shelf, std::unique_ptr<Sandbox> sandbox);

  async::Loop& loop_;
  Admission& admission_;
  const std::function<bool()> busy_;
  const WarmPoolOptions options_;
  std::map<ShelfKey, std::unique_ptr<Shelf>> shelves_;
  std::set<std::string> held_;  // waiting, being made, or ending
  size_t hits_ = 0, misses_ = 0;
  async::Event wanted_;
  async::TaskSet ending_;
  async::TaskSet filling_;
};

// Whether a prepared sandbox with default limits can become what `spec` asks for, by changing its
// limits live.
bool FitsWarm(const SessionSpec& spec);

}  // namespace caisson::sandbox
