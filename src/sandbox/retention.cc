#include "sandbox/retention.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "store/artifact_records.h"
#include "store/event_records.h"
#include "store/session_records.h"
#include "store/usage_records.h"

namespace caisson::sandbox {
namespace {

constexpr int kBatch = 200;         // rows that go in one piece of work
constexpr int kEventBatch = 1000;   // events are small
constexpr size_t kFileBatch = 100;  // directories

using Strings = std::vector<std::string>;

// Work that removes, and its result; `work` may be run a second time.
template <typename T>
Task<Result<T>> WriteFor(store::Store* store, std::function<Result<T>(store::Database&)> work) {
  const auto result = std::make_shared<T>();
  CAISSON_CO_TRY(co_await store->Write(
      store::Durability::kSoon,
      [work = std::move(work), result](store::Database& db) -> Status {
        CAISSON_ASSIGN(*result, work(db));
        return {};
      },
      store::Purpose::kShrink));
  co_return std::move(*result);
}

}  // namespace

Retention::Retention(Parts parts, RetentionOptions options)
    : parts_(std::move(parts)), options_(options), tasks_(parts_.loop) {}

void Retention::Start() { tasks_.Spawn(WatchTask()); }

int64_t Retention::Before(std::chrono::milliseconds age) const {
  return (parts_.clock() - age).time_since_epoch().count();
}

Task<void> Retention::WatchTask() {
  for (;;) {
    const auto done = co_await Pass();
    if (!done) parts_.log.Warn("what is old was not all forgotten", done.error());
    if (done && done->Any())
      parts_.log.Info("forgot what was older than it has to be", {{"sessions", done->sessions},
                                                                  {"logs", done->logs},
                                                                  {"artifacts", done->artifacts},
                                                                  {"events", done->events},
                                                                  {"unclaimed", done->unclaimed}});
    co_await parts_.loop.Sleep(options_.interval);
  }
}

Task<Result<Forgotten>> Retention::Pass() {
  Forgotten done;
  CAISSON_CO_TRY(co_await ForgetSessions(&done));
  CAISSON_CO_TRY(co_await ForgetEvents(&done));
  CAISSON_CO_TRY(co_await ForgetUsage());
  CAISSON_CO_TRY(co_await ForgetArtifacts(&done));
  CAISSON_CO_TRY(co_await SweepLogs(&done));
  CAISSON_CO_TRY(co_await SweepArtifacts(&done));
  co_return done;
}

// --- records ---------------------------------------------------------------------------------

// With their labels and commands; their logs go with the sweep.
Task<Status> Retention::ForgetSessions(Forgotten* done) {
  if (options_.records.count() == 0) co_return Status();
  const int64_t before = Before(options_.records);
  for (;;) {
    CAISSON_CO_ASSIGN(const auto ids,
                      co_await WriteFor<Strings>(&parts_.store, [before](store::Database& db) {
                        return store::PurgeSessions(db, before, kBatch);
                      }));
    done->sessions += static_cast<int64_t>(ids.size());
    if (ids.size() < kBatch) co_return Status();
  }
}

Task<Status> Retention::ForgetEvents(Forgotten* done) {
  const int64_t before = options_.events.count() == 0 ? 0 : Before(options_.events);
  for (;;) {
    CAISSON_CO_ASSIGN(const auto count,
                      co_await WriteFor<int64_t>(
                          &parts_.store, [before, keep = options_.max_events](store::Database& db) {
                            return store::PurgeEvents(db, before, keep, kEventBatch);
                          }));
    done->events += count;
    if (count < kEventBatch) co_return Status();
  }
}

Task<Status> Retention::ForgetUsage() {
  if (options_.usage.count() == 0) co_return Status();
  const int64_t day = store::DayOf(Before(options_.usage));
  co_return co_await parts_.store.Write(
      store::Durability::kSoon, [day](store::Database& db) { return store::PurgeUsage(db, day); },
      store::Purpose::kShrink);
}

Task<Status> Retention::ForgetArtifacts(Forgotten* done) {
  if (options_.artifacts.count() == 0) co_return Status();
  const int64_t before = Before(options_.artifacts);
  for (;;) {
    CAISSON_CO_ASSIGN(auto ids,
                      co_await WriteFor<Strings>(&parts_.store, [before](store::Database& db) {
                        return store::PurgeArtifacts(db, before, kBatch);
                      }));
    const size_t count = ids.size();
    CAISSON_CO_TRY(co_await Remove(store::BlobArea::kArtifacts, std::move(ids)));
    done->artifacts += static_cast<int64_t>(count);
    if (count < kBatch) co_return Status();
  }
}

// --- files -----------------------------------------------------------------------------------

Task<Result<Strings>> Retention::Ids(store::BlobArea area) {
  return async::Offload(&parts_.loop, &parts_.disk,
                        [blobs = &parts_.blobs, area] { return blobs->Ids(area); });
}

Task<Status> Retention::Remove(store::BlobArea area, Strings ids) {
  return async::Offload(&parts_.loop, &parts_.disk,
                        [blobs = &parts_.blobs, area, ids = std::move(ids)]() -> Status {
                          for (const auto& id : ids) CAISSON_TRY(blobs->RemoveAll(area, id));
                          return {};
                        });
}

// Logs of sessions that ended long ago, and of those that no record knows.
Task<Status> Retention::SweepLogs(Forgotten* done) {
  CAISSON_CO_ASSIGN(const auto all, co_await Ids(store::BlobArea::kSessions));
  const int64_t before = options_.logs.count() == 0 ? 0 : Before(options_.logs);
  for (size_t at = 0; at < all.size(); at += kFileBatch) {
    const auto begin = all.begin() + static_cast<ptrdiff_t>(at);
    const Strings batch(begin,
                        begin + static_cast<ptrdiff_t>(std::min(kFileBatch, all.size() - at)));
    CAISSON_CO_ASSIGN(auto old,
                      co_await parts_.store.Read<Strings>(
                          [batch, before](store::Database& db) -> Result<Strings> {
                            Strings ids;
                            for (const auto& id : batch) {
                              CAISSON_ASSIGN(const auto record, store::FindSession(db, id));
                              if (!record || (record->ended_ms && *record->ended_ms < before))
                                ids.push_back(id);
                            }
                            return ids;
                          }));
    const size_t count = old.size();
    if (count == 0) continue;
    CAISSON_CO_TRY(co_await Remove(store::BlobArea::kSessions, std::move(old)));
    done->logs += static_cast<int64_t>(count);
  }
  co_return Status();
}

// Files whose artifact has no record: a crash came between the two.
Task<Status> Retention::SweepArtifacts(Forgotten* done) {
  CAISSON_CO_ASSIGN(const auto all, co_await Ids(store::BlobArea::kArtifacts));
  const int64_t before = Before(options_.unclaimed);
  for (size_t at = 0; at < all.size(); at += kFileBatch) {
    const auto begin = all.begin() + static_cast<ptrdiff_t>(at);
    const Strings batch(begin,
                        begin + static_cast<ptrdiff_t>(std::min(kFileBatch, all.size() - at)));
    CAISSON_CO_ASSIGN(
        auto unknown,
        co_await parts_.store.Read<Strings>([batch](store::Database& db) -> Result<Strings> {
          Strings ids;
          for (const auto& id : batch) {
            CAISSON_ASSIGN(const auto record, store::FindArtifact(db, id));
            if (!record) ids.push_back(id);
          }
          return ids;
        }));
    CAISSON_CO_ASSIGN(
        auto old,
        co_await async::Offload(
            &parts_.loop, &parts_.disk,
            [blobs = &parts_.blobs, unknown = std::move(unknown), before]() -> Result<Strings> {
              Strings ids;
              for (const auto& id : unknown) {
                const auto time = blobs->ModifiedMs(store::BlobArea::kArtifacts, id);
                if (time && *time < before) ids.push_back(id);
              }
              return ids;
            }));
    const size_t count = old.size();
    if (count == 0) continue;
    CAISSON_CO_TRY(co_await Remove(store::BlobArea::kArtifacts, std::move(old)));
    done->unclaimed += static_cast<int64_t>(count);
  }
  co_return Status();
}

}  // namespace caisson::sandbox
