#include "sandbox/warm_pool.h"

#include <algorithm>
#include <cmath>

#include "async/race.h"
#include "sandbox/ids.h"

namespace caisson::sandbox {
namespace {

constexpr std::chrono::seconds kCallTime{30};

}  // namespace

bool FitsWarm(const SessionSpec& spec) {
  const Limits& l = spec.limits;
  // A disk in memory is half of the memory at most, and its kind is chosen when it is made.
  const auto& defaults = spec.profile == Profile::kStrict ? kStrictLimits : kDefaultLimits;
  return l.memory_bytes.value_or(defaults.memory_bytes) >= defaults.memory_bytes && !l.swap_bytes &&
         !l.disk_bytes && !l.disk_inodes && !l.io_read_bps && !l.io_write_bps && !l.io_read_iops &&
         !l.io_write_iops && !l.memory_bandwidth_percent;
}

void RateTracker::Note(Clock::time_point now) {
  rate_ = PerSecond(now) + 1 / over_.count();
  at_ = now;
}

double RateTracker::PerSecond(Clock::time_point now) const {
  const std::chrono::duration<double> since = now - at_;
  return rate_ * std::exp(-since / over_);
}

WarmPool::WarmPool(async::Loop& loop, Admission& admission, std::function<bool()> busy,
                   WarmPoolOptions options)
    : loop_(loop),
      admission_(admission),
      busy_(std::move(busy)),
      options_(std::move(options)),
      wanted_(loop),
      ending_(loop),
      filling_(loop) {
  filling_.Spawn(FillTask());
}

WarmPool::~WarmPool() = default;

// The shelf of the kind, made when there is none; null when there are too many.
WarmPool::Shelf* WarmPool::ShelfOf(Provider& provider, const WarmKind& kind) {
  const ShelfKey key{std::string(provider.name()), kind};
  const auto found = shelves_.find(key);
  if (found != shelves_.end()) return found->second.get();
  if (shelves_.size() >= options_.kinds) return nullptr;
  return (shelves_[key] = std::make_unique<Shelf>(provider, options_.average_over)).get();
}

WarmKind WarmPool::KindOf(const SessionSpec& spec) const {
  const auto alias = options_.environments.find(spec.environment);
  return {alias != options_.environments.end() ? alias->second : spec.environment, spec.profile};
}

void WarmPool::KeepReady(Provider& provider, WarmKind kind, size_t floor) {
  if (Shelf* shelf = ShelfOf(provider, kind)) shelf->floor = floor;
  wanted_.Wake();
}

// Only what a sandbox could be made of gets a shelf: names alone are anybody's.
void WarmPool::Made(Provider& provider, const SessionSpec& spec) {
  const WarmKind kind = KindOf(spec);
  if (options_.ceiling == 0 || !FitsWarm(spec) || !provider.capabilities().live_limits ||
      shelves_.contains({std::string(provider.name()), kind}))
    return;
  if (Shelf* shelf = ShelfOf(provider, kind)) shelf->rate.Note(Clock::now());
  wanted_.Wake();
}

std::unique_ptr<Sandbox> WarmPool::Claim(Provider& provider, const SessionSpec& spec) {
  if (options_.ceiling == 0 || !FitsWarm(spec) || !provider.capabilities().live_limits)
    return nullptr;
  const auto found = shelves_.find({std::string(provider.name()), KindOf(spec)});
  if (found == shelves_.end()) {
    ++misses_;
    return nullptr;
  }
  Shelf& shelf = *found->second;
  shelf.rate.Note(Clock::now());
  wanted_.Wake();
  DropGone(shelf);
  if (shelf.ready.empty()) {
    ++misses_;
    return nullptr;
  }
  ++hits_;
  auto sandbox = std::move(shelf.ready.front().sandbox);
  shelf.ready.pop_front();
  held_.erase(sandbox->id());
  return sandbox;
}

bool WarmPool::Holds(const std::string& sandbox_id) const { return held_.contains(sandbox_id); }

size_t WarmPool::ready() const {
  size_t count = 0;
  for (const auto& [key, shelf] : shelves_) count += shelf->ready.size();
  return count;
}

// Less than a fiftieth of a claim expected within the time to react is no demand.
size_t WarmPool::Target(const Shelf& shelf, Clock::time_point now) const {
  const double expected =
      shelf.rate.PerSecond(now) * std::chrono::duration<double>(options_.react_in).count();
  const auto wanted = expected < 0.02 ? 0 : static_cast<size_t>(std::ceil(expected));
  return std::min(std::max(wanted, shelf.floor), std::max(options_.ceiling, shelf.floor));
}

Task<void> WarmPool::FillTask() {
  auto looked = Clock::now();
  for (;;) {
    bool made = false;
    for (auto at = shelves_.begin(); at != shelves_.end(); ++at) {
      Shelf& shelf = *at->second;
      const auto now = Clock::now();
      DropGone(shelf);
      DropSurplus(shelf, now);
      if (shelf.ready.size() >= Target(shelf, now) || now < shelf.not_before) continue;
      // Creates go first, for a while: a stream of them without end would starve itself.
      for (int i = 0; i < 10 && busy_(); ++i) co_await loop_.Sleep(std::chrono::milliseconds(2));
      if (!admission_.HasRoom()) continue;
      made = co_await MakeOne(&shelf, at->first.second) || made;
    }
    if (Clock::now() - looked > 10 * options_.look_every) {
      for (auto& [key, shelf] : shelves_) co_await DropDead(shelf.get());
      looked = Clock::now();
    }
    if (!made)
      (void)co_await async::WithTimeout(&loop_, options_.look_every, async::WaitFor(&wanted_));
  }
}

Task<bool> WarmPool::MakeOne(Shelf* shelf, WarmKind kind) {
  SandboxSpec spec;
  spec.id = NewId();
  spec.environment = kind.environment;
  spec.profile = kind.profile;
  const std::string id = spec.id;
  held_.insert(id);
  auto made = co_await async::WithTimeout(&loop_, kCallTime, shelf->provider.Create(spec));
  if (!made || !*made) {
    held_.erase(id);  // what comes of it all the same is an orphan, and found as one
    shelf->not_before = Clock::now() + options_.back_off;
    co_return false;
  }
  shelf->ready.push_back({**std::move(made), Clock::now()});
  co_return true;
}

void WarmPool::DropSurplus(Shelf& shelf, Clock::time_point now) {
  const size_t target = Target(shelf, now);
  while (!shelf.ready.empty() &&
         (shelf.ready.size() > target || now - shelf.ready.front().made > options_.max_age)) {
    End(shelf, std::move(shelf.ready.front().sandbox));
    shelf.ready.pop_front();
  }
}

// Those that have gone by themselves are of no use to anybody.
void WarmPool::DropGone(Shelf& shelf) {
  std::erase_if(shelf.ready, [this](const Ready& ready) {
    if (!ready.sandbox->gone()) return false;
    held_.erase(ready.sandbox->id());
    return true;
  });
}

// The same for what is known only by asking.
Task<void> WarmPool::DropDead(Shelf* shelf) {
  if (shelf->ready.empty()) co_return;
  const auto before = Clock::now();
  auto listed = co_await async::WithTimeout(&loop_, kCallTime, shelf->provider.List());
  if (!listed || !*listed) co_return;
  const std::set<std::string> living((*listed)->begin(), (*listed)->end());
  std::erase_if(shelf->ready, [&](const Ready& ready) {
    if (ready.made >= before || living.contains(ready.sandbox->id())) return false;
    held_.erase(ready.sandbox->id());
    return true;
  });
}

void WarmPool::End(Shelf& shelf, std::unique_ptr<Sandbox> sandbox) {
  ending_.Spawn(EndTask(&shelf.provider, std::move(sandbox)));
}

Task<void> WarmPool::EndTask(Provider* provider, std::unique_ptr<Sandbox> sandbox) {
  const std::string id = sandbox->id();
  auto ended = co_await async::WithTimeout(&loop_, kCallTime, sandbox->Destroy());
  if (!ended || !*ended) (void)co_await async::WithTimeout(&loop_, kCallTime, provider->Remove(id));
  held_.erase(id);  // if it is still there, the audit finds it
}

Task<void> WarmPool::Close() {
  filling_.Cancel();
  for (auto& [key, shelf] : shelves_)
    while (!shelf->ready.empty()) {
      End(*shelf, std::move(shelf->ready.front().sandbox));
      shelf->ready.pop_front();
    }
  return ending_.Join();
}

}  // namespace caisson::sandbox
