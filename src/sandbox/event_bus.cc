#include "sandbox/event_bus.h"

#include <algorithm>
#include <array>

namespace caisson::sandbox {
namespace {

constexpr std::array<std::string_view, 15> kNames = {
    "session.created", "session.running", "session.paused",    "session.resumed", "session.updated",
    "session.scaled",  "session.expired", "session.destroyed", "session.failed",  "session.lost",
    "exec.started",    "exec.ended",      "artifact.kept",     "alert",           "audit",
};

}  // namespace

std::string_view NameOf(EventKind kind) { return kNames[static_cast<size_t>(kind)]; }

std::optional<EventKind> EventKindFrom(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<EventKind>(found - kNames.begin());
}

bool EventFilter::Wants(const SessionEvent& event) const {
  if (tenant && *tenant != event.tenant) return false;
  if (key_id && *key_id != event.key_id) return false;
  if (!session_id.empty() && session_id != event.session_id) return false;
  return kinds.empty() || std::ranges::find(kinds, event.kind) != kinds.end();
}

EventBus::EventBus(async::Loop& loop, WallClock clock, size_t capacity, uint64_t next)
    : clock_(std::move(clock)), capacity_(capacity), next_(next), published_(loop), told_(loop) {}

uint64_t EventBus::Publish(SessionEvent event) {
  event.sequence = next_++;
  event.time = clock_();
  ring_.push_back(std::move(event));
  if (ring_.size() > capacity_) ring_.pop_front();
  published_.Wake();
  if (told_end_ == UINT64_MAX) told_.Wake();
  return next_ - 1;
}

void EventBus::TellWhenKept() { told_end_ = next_; }

void EventBus::KeptThrough(uint64_t number) {
  told_end_ = number + 1;
  told_.Wake();
}

Task<void> EventBus::Settled() {
  const uint64_t end = next_;
  while (told_end_ < end) co_await told_.Wait();
}

std::unique_ptr<EventBus::Subscription> EventBus::Subscribe(EventFilter filter,
                                                            std::optional<uint64_t> after,
                                                            Sight sight) {
  // A number from the future, of another data directory say, is as good as none.
  const uint64_t from = after && *after < next_ ? *after + 1 : next_;
  return std::make_unique<Subscription>(*this, std::move(filter), from, sight);
}

std::optional<EventItem> EventBus::Subscription::Poll() {
  const uint64_t oldest = bus_->next_ - bus_->ring_.size();
  const uint64_t end = sight_ == Sight::kTold ? bus_->TellableEnd() : bus_->next_;
  if (next_ < oldest && next_ < end) {
    const EventsMissed missed{next_, std::min(oldest, end) - 1};
    next_ = missed.to + 1;
    return missed;
  }
  while (next_ < end) {
    const SessionEvent& event = bus_->ring_[next_ - oldest];
    ++next_;
    if (filter_.Wants(event)) return event;
  }
  return std::nullopt;
}

Task<EventItem> EventBus::Subscription::Next() {
  for (;;) {
    if (auto item = Poll()) co_return *std::move(item);
    co_await (sight_ == Sight::kTold ? bus_->told_ : bus_->published_).Wait();
  }
}

}  // namespace caisson::sandbox
