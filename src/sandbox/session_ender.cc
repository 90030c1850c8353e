#include "sandbox/session_ender.h"

#include <algorithm>

#include "async/race.h"
#include "base/crash_point.h"

namespace caisson::sandbox {
namespace {

// A paused sandbox has to go on first: nobody in it would hand out its files. Where that is
// refused, for want of a freezer, it was never paused.
Task<Result<std::vector<KeptArtifact>>> WakeAndKeep(Session* session, SessionKeeper* keeper) {
  (void)co_await session->sandbox()->Resume();
  co_return co_await keeper->Keep(session, session->spec().artifacts);
}

}  // namespace

void SessionEnder::End(std::shared_ptr<Session> session, Provider& provider) {
  ending_.insert(session->record().sandbox_id);
  tasks_.Spawn(EndTask(std::move(session), &provider));
}

void SessionEnder::Sweep(Provider& provider, std::string sandbox_id) {
  if (!ending_.insert(sandbox_id).second) return;
  tasks_.Spawn(SweepTask(&provider, std::move(sandbox_id)));
}

Task<void> SessionEnder::EndTask(std::shared_ptr<Session> session, Provider* provider) {
  const std::string sandbox_id = session->record().sandbox_id;
  const auto& globs = session->spec().artifacts;
  if (keeper_ != nullptr && !globs.empty() && session->sandbox() != nullptr) {
    auto kept = co_await async::WithTimeout(&loop_, options_.keep_time,
                                            WakeAndKeep(session.get(), keeper_));
    if (!kept || !*kept)
      session->Publish(EventKind::kAlert,
                       {{"what", "artifacts were not all kept"},
                        {"reason", kept ? kept->error().message() : "it took too long"}});
  }
  session->mutable_record().stats = co_await EndSandbox(provider, session->sandbox(), sandbox_id);
  CrashPoint("destroy.gone");
  (void)session->MoveTo(SessionState::kDestroyed, "");  // stopping may become destroyed
  ending_.erase(sandbox_id);
  co_await SaveEnd(std::move(session));
}

void SessionEnder::Conclude(std::shared_ptr<Session> session, Provider* provider,
                            SessionState state, std::string reason) {
  if (!session->MoveTo(state, std::move(reason))) return;
  const std::string& sandbox_id = session->record().sandbox_id;
  if (provider != nullptr && !sandbox_id.empty()) Sweep(*provider, sandbox_id);
  tasks_.Spawn(SaveEnd(std::move(session)));
}

// The end is written down until it is: a full disk is no reason to forget it. The session has its
// place in the table until then, so that nobody takes it for one that never was.
Task<void> SessionEnder::SaveEnd(std::shared_ptr<Session> session) {
  auto pause = options_.first_retry;
  for (;;) {
    const auto saved = co_await journal_.Save(session->record());
    if (saved || saved.error().code() == ErrorCode::kNotFound) break;
    session->Publish(EventKind::kAlert, {{"what", "the end of a session was not written down"},
                                         {"reason", saved.error().message()}});
    co_await loop_.Sleep(pause);
    pause = std::min(pause * 2, options_.last_retry);
  }
  CrashPoint("destroy.ended");
  table_.Remove(*session);
}

Task<void> SessionEnder::SweepTask(Provider* provider, std::string sandbox_id) {
  (void)co_await EndSandbox(provider, nullptr, sandbox_id);
  ending_.erase(sandbox_id);
}

Task<std::optional<SandboxStats>> SessionEnder::EndSandbox(Provider* provider, Sandbox* sandbox,
                                                           std::string sandbox_id) {
  auto pause = options_.first_retry;
  for (;; sandbox = nullptr) {  // an object whose Destroy failed is of no use any more
    auto ended = co_await async::WithTimeout(&loop_, options_.destroy_time,
                                             TryOnce(provider, sandbox, sandbox_id));
    if (ended && *ended) co_return **ended;
    auto left = co_await async::WithTimeout(&loop_, options_.destroy_time, provider->List());
    if (left && *left && std::ranges::find(**left, sandbox_id) == (*left)->end())
      co_return std::nullopt;  // it has gone, and took its figures along
    events_.Publish({.kind = EventKind::kAlert,
                     .details = {{"what", "a sandbox does not end"}, {"sandbox", sandbox_id}}});
    co_await loop_.Sleep(pause);
    pause = std::min(pause * 2, options_.last_retry);
  }
}

Task<std::optional<SandboxStats>> SessionEnder::TryOnce(Provider* provider, Sandbox* sandbox,
                                                        std::string sandbox_id) {
  if (sandbox == nullptr) {
    const auto removed = co_await provider->Remove(sandbox_id);
    if (!removed) co_return std::nullopt;
    co_return SandboxStats{};
  }
  auto stats = co_await sandbox->Destroy();
  if (!stats) co_return std::nullopt;
  co_return *stats;
}

}  // namespace caisson::sandbox
