// EventBus: what happens to sessions, told to whoever listens.
//
// Events carry sequence numbers without gaps. The newest are kept in one ring of bounded size;
// each subscriber has its own place in it, so a slow one costs nothing and holds nobody up: what
// was overwritten before it came is told to it as a range. Where events are kept (event_archive.h),
// one is told only when it is: what anybody has heard of can be had again. Belongs to one Loop's
// thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "async/event.h"
#include "sandbox/wall_clock.h"

namespace caisson::sandbox {

enum class EventKind {
  kSessionCreated,  // accepted; its sandbox is being made
  kSessionRunning,
  kSessionPaused,
  kSessionResumed,
  kSessionUpdated,  // timeout, limits, metadata or labels
  kSessionScaled,   // limits moved by pressure
  kSessionExpired,  // its time was over; destroyed follows
  kSessionDestroyed,
  kSessionFailed,
  kSessionLost,
  kExecStarted,
  kExecEnded,
  kArtifactKept,
  kAlert,
  kAudit,  // the self-audit found something wrong
};
std::string_view NameOf(EventKind kind);  // "session.created", stable
std::optional<EventKind> EventKindFrom(std::string_view name);

struct SessionEvent {
  uint64_t sequence = 0;  // given by the bus
  WallTime time;          // given by the bus
  EventKind kind = EventKind::kAlert;
  std::string session_id;  // empty when it is about none
  std::string tenant;
  std::string key_id;  // of the session's owner
  std::vector<std::pair<std::string, std::string>> details;
};

// Which events a subscriber wants. Empty fields want all.
struct EventFilter {
  std::optional<std::string> tenant;
  std::optional<std::string> key_id;
  std::string session_id;
  std::vector<EventKind> kinds;

  bool Wants(const SessionEvent& event) const;
};

// Events that went by unseen.
struct EventsMissed {
  uint64_t from = 0, to = 0;  // sequence numbers, both included
};
using EventItem = std::variant<SessionEvent, EventsMissed>;

// What a subscriber is shown: events that may be told, or every one, for whoever keeps them.
enum class Sight { kTold, kPublished };

class EventBus {
 public:
  static constexpr size_t kDefaultCapacity = 4096;

  // The first event gets the number `next`, so that numbers go on after a restart.
  EventBus(async::Loop& loop, WallClock clock, size_t capacity = kDefaultCapacity,
           uint64_t next = 1);

  // Gives its number.
  uint64_t Publish(SessionEvent event);
  uint64_t next_sequence() const { return next_; }

  // From now on, events are told when KeptThrough has named them.
  void TellWhenKept();
  // All up to this number may be told.
  void KeptThrough(uint64_t number);
  // Completes when everything that was published before may be told.
  Task<void> Settled();

  class Subscription {
   public:
    Subscription(EventBus& bus, EventFilter filter, uint64_t next, Sight sight)
        : bus_(&bus), filter_(std::move(filter)), next_(next), sight_(sight) {}
    // The next one it wants, as soon as there is one.
    Task<EventItem> Next();
    // The same, when it is there already.
    std::optional<EventItem> Poll();

   private:
    EventBus* bus_;
    EventFilter filter_;
    uint64_t next_;  // the number it looks at next
    const Sight sight_;
  };
  // From the event after number `after`; without one, from now. The bus outlives it.
  std::unique_ptr<Subscription> Subscribe(EventFilter filter,
                                          std::optional<uint64_t> after = std::nullopt,
                                          Sight sight = Sight::kTold);

 private:
  uint64_t TellableEnd() const { return std::min(next_, told_end_); }

  const WallClock clock_;
  const size_t capacity_;
  uint64_t next_;
  uint64_t told_end_ = UINT64_MAX;  // one past the last that may be told
  std::deque<SessionEvent> ring_;
  async::Event published_;
  async::Event told_;
};

}  // namespace caisson::sandbox
