// EventArchive: every event in the store, in order, so that it can be had again after the bus has
// forgotten it and after the server has died.
//
// One task takes what the bus publishes and writes it in groups; the bus tells an event when it is
// written. Numbers that could not be written (a full disk) are told all the same and kept as a
// range that is missing. Belongs to one Loop's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "async/task_set.h"
#include "log/logger.h"
#include "sandbox/event_bus.h"
#include "store/store.h"

namespace caisson::sandbox {

class EventArchive {
 public:
  // What the number of a bus's first event must be: one that was never used.
  static Task<Result<uint64_t>> NextNumber(store::Store* store);

  // Begins to keep what `bus` publishes from now on. Everything given outlives it.
  EventArchive(async::Loop& loop, EventBus& bus, store::Store& store, log::Logger log);

  struct Page {
    std::vector<EventItem> items;  // oldest first; what is no longer kept is EventsMissed
    uint64_t next = 0;             // where the next page begins; beyond the range when it is done
  };
  // A part of the kept events numbered `range`, of those that the filter wants.
  Task<Result<Page>> Read(EventFilter filter, EventsMissed range);

 private:
  Task<void> KeepTask();
  Task<void> Keep(std::vector<EventItem> items);

  EventBus& bus_;
  store::Store& store_;
  const log::Logger log_;
  std::unique_ptr<EventBus::Subscription> published_;
  async::TaskSet tasks_;
};

// Events from a number on: out of the archive as far as the bus has forgotten them, then live.
class EventReader {
 public:
  // From the event after number `after`; without one, from now. `archive` may be null: then what
  // the bus has forgotten is missed. Both outlive it.
  EventReader(EventBus& bus, EventArchive* archive, EventFilter filter,
              std::optional<uint64_t> after);

  // The next one, as soon as there is one. Nothing is lost when the task is ended before.
  Task<Result<EventItem>> Next();
  // The same, when it is there already.
  Task<Result<std::optional<EventItem>>> Poll();

 private:
  std::optional<EventItem> Take();
  Task<Status> Recall();

  EventArchive* archive_;
  const EventFilter filter_;
  std::unique_ptr<EventBus::Subscription> live_;
  std::deque<EventItem> recalled_;
  std::optional<EventsMissed> wanted_;  // of the archive
};

}  // namespace caisson::sandbox
