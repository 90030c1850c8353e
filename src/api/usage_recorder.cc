#include "api/usage_recorder.h"

#include <utility>

#include "api/time_text.h"
#include "sandbox/session.h"

namespace caisson::api {
namespace {

using sandbox::EventKind;

void Add(store::UsageRecord& to, const store::UsageRecord& more) {
  to.requests += more.requests;
  to.creates += more.creates;
  to.execs += more.execs;
  to.cpu_us += more.cpu_us;
  to.sandbox_ms += more.sandbox_ms;
  to.bytes_in += more.bytes_in;
  to.bytes_out += more.bytes_out;
}

}  // namespace

UsageRecorder::UsageRecorder(Parts parts)
    : parts_(std::move(parts)),
      events_(
          parts_.events.Subscribe({.kinds = {EventKind::kSessionRunning, EventKind::kExecEnded,
                                             EventKind::kSessionDestroyed,
                                             EventKind::kSessionFailed, EventKind::kSessionLost}})),
      tasks_(parts_.loop) {
  tasks_.Spawn(ListenTask());
  tasks_.Spawn(FlushTask());
}

store::UsageRecord& UsageRecorder::Today(const std::string& tenant, const std::string& key_id) {
  const int64_t day = store::DayOf(NowMs());
  store::UsageRecord& row = rows_[{tenant, key_id, day}];
  row.tenant = tenant;
  row.key_id = key_id;
  row.day = day;
  return row;
}

void UsageRecorder::CountRequest(const auth::Principal& principal) {
  ++Today(principal.tenant, principal.key_id).requests;
}

Task<void> UsageRecorder::ListenTask() {
  for (;;) co_await Take(co_await events_->Next());
}

Task<void> UsageRecorder::Take(sandbox::EventItem item) {
  if (const auto* missed = std::get_if<sandbox::EventsMissed>(&item)) {
    parts_.log.Warn("usage was not counted: events came too fast",
                    {{"from", missed->from}, {"to", missed->to}});
    co_return;
  }
  const auto& event = std::get<sandbox::SessionEvent>(item);
  if (event.kind == EventKind::kSessionRunning) {
    ++Today(event.tenant, event.key_id).creates;
  } else if (event.kind == EventKind::kExecEnded) {
    ++Today(event.tenant, event.key_id).execs;
  } else {
    co_await TakeEnd(event.session_id);
  }
}

// How long it lived and what it used stands in its record.
Task<void> UsageRecorder::TakeEnd(std::string session_id) {
  const auto record = co_await parts_.sessions.Describe({}, session_id);
  if (!record) {
    parts_.log.Warn("usage of a session was not counted", record.error(),
                    {{"session_id", session_id}});
    co_return;
  }
  store::UsageRecord& row = Today(record->owner.tenant, record->owner.key_id);
  if (record->ended) row.sandbox_ms += (*record->ended - record->created).count();
  if (record->stats) row.cpu_us += record->stats->cpu.count();
}

Task<Status> UsageRecorder::Flush() {
  if (rows_.empty()) co_return Status();
  const auto rows = std::exchange(rows_, {});
  auto written = co_await parts_.store.Write(
      store::Durability::kSoon,
      [rows](store::Database& db) -> Status {
        for (const auto& [key, row] : rows) CAISSON_TRY(store::AddUsage(db, row));
        return {};
      },
      store::Purpose::kShrink);
  if (!written)
    for (const auto& [key, row] : rows) {
      auto [place, fresh] = rows_.try_emplace(key, row);
      if (!fresh) Add(place->second, row);
    }
  co_return written;
}

Task<void> UsageRecorder::FlushTask() {
  for (;;) {
    co_await parts_.loop.Sleep(parts_.interval);
    if (const auto written = co_await Flush(); !written)
      parts_.log.Warn("usage was not written", written.error());
  }
}

}  // namespace caisson::api
