#include "sandbox/session_recovery.h"

#include <algorithm>

#include "async/race.h"
#include "base/crash_point.h"

namespace caisson::sandbox {

Task<Status> SessionRecovery::Run() {
  auto& parts = manager_.parts_;
  for (Provider* provider : parts.providers) {
    CAISSON_CO_ASSIGN(auto ids, co_await provider->List());
    held_[std::string(provider->name())] = {ids.begin(), ids.end()};
  }
  CrashPoint("recovery.listed");
  CAISSON_CO_ASSIGN(auto records, co_await parts.journal.Live());
  std::set<std::string> known;
  for (const auto& record : records) known.insert(record.sandbox_id);
  for (const auto& [name, ids] : held_)
    for (const auto& id : ids)
      if (!known.contains(id)) manager_.ender_.Sweep(*manager_.FindProvider(name), id);
  CrashPoint("recovery.swept");
  for (auto& record : records) {
    co_await Settle(std::move(record));
    CrashPoint("recovery.settled");
  }
  co_return Status();
}

Task<void> SessionRecovery::Settle(SessionRecord record) {
  auto& parts = manager_.parts_;
  auto& ender = manager_.ender_;
  Provider* provider = manager_.FindProvider(record.provider);
  const bool held = provider != nullptr && held_[record.provider].contains(record.sandbox_id);
  const SessionState state = record.state;
  const auto left =
      std::clamp(record.expires - parts.clock(), std::chrono::milliseconds(0), record.spec.timeout);
  const bool rebooted = record.boot_id != manager_.options_.boot_id;
  // In the table it is still what the record says; a taken-over one becomes running below.
  if (state == SessionState::kRunning || state == SessionState::kPaused)
    record.state = SessionState::kCreating;
  auto session =
      std::make_shared<Session>(parts.loop, parts.events, parts.clock,
                                static_cast<SessionObserver&>(manager_), std::move(record));
  session->SetRemaining(left);
  manager_.table_.Add(session,
                      parts.admission.Count(session->record().owner, DemandOf(session->spec())));
  Provider* sweep = held ? provider : nullptr;
  if (state == SessionState::kStopping) {
    if (held) co_return ender.End(session, *provider);
    co_return ender.Conclude(session, nullptr, SessionState::kDestroyed, "");
  }
  if (state == SessionState::kCreating)
    co_return ender.Conclude(session, sweep, SessionState::kFailed,
                             "the server ended while it was being made");
  if (provider == nullptr)
    co_return ender.Conclude(session, nullptr, SessionState::kLost,
                             "this server has no provider " + session->record().provider);
  if (!held)
    co_return ender.Conclude(
        session, nullptr, SessionState::kLost,
        rebooted ? "the host was restarted" : "its sandbox ended while no server ran");
  const auto taken = co_await async::WithTimeout(&parts.loop, manager_.options_.call_time,
                                                 TakeOver(session, provider, state));
  if (!taken || !*taken)
    co_return ender.Conclude(
        session, sweep, SessionState::kLost,
        "its sandbox could not be taken over: " +
            (taken ? taken->error().message() : std::string("it did not answer")));
  (void)co_await parts.journal.Save(session->record());  // as it was, and if not, the same again
}

Task<Status> SessionRecovery::TakeOver(std::shared_ptr<Session> session, Provider* provider,
                                       SessionState state) {
  CAISSON_CO_ASSIGN(auto sandbox, co_await provider->Adopt(session->record().sandbox_id));
  CrashPoint("recovery.adopted");
  session->SetSandbox(std::move(sandbox));
  // The freezer goes by the record, also when the crash came between the two.
  CAISSON_CO_TRY(co_await session->AdoptProcesses());
  CrashPoint("recovery.processes");
  CAISSON_CO_TRY(session->MoveTo(SessionState::kRunning, ""));
  if (state == SessionState::kPaused) {
    CAISSON_CO_TRY(co_await session->sandbox()->Pause());
    CAISSON_CO_TRY(session->MoveTo(SessionState::kPaused, ""));
  }
  if (auto* lease = manager_.table_.LeaseOf(session->id())) lease->Made();
  co_return Status();
}

}  // namespace caisson::sandbox
