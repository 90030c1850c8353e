#include "sandbox/session_audit.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "sandbox/session_manager.h"

namespace caisson::sandbox {
namespace {

bool HasSandbox(SessionState state) {
  return state == SessionState::kRunning || state == SessionState::kPaused;
}

}  // namespace

// What changes while this looks is not held against anybody: a session counts only when it had its
// sandbox before the provider was asked and still has it afterwards.
Task<Result<AuditReport>> SessionManager::Audit() {
  AuditReport report;
  std::map<std::string, std::shared_ptr<Session>> before;  // by id
  for (auto& session : table_.All())
    if (HasSandbox(session->state())) before.emplace(session->id(), session);
  std::map<std::string, std::set<std::string>> held;  // provider → sandbox ids
  for (Provider* provider : parts_.providers) {
    CAISSON_CO_ASSIGN(auto ids, co_await provider->List());
    report.sandboxes += ids.size();
    held[std::string(provider->name())] = {ids.begin(), ids.end()};
  }
  CAISSON_CO_ASSIGN(auto records, co_await parts_.journal.Live());
  report.records = records.size();
  report.sessions = table_.size();
  auto find = [&](FindingKind kind, std::string session, std::string sandbox, std::string provider,
                  std::string text) {
    report.findings.push_back(
        {kind, std::move(session), std::move(sandbox), std::move(provider), std::move(text)});
  };

  std::map<std::string, std::string> users;  // sandbox → session
  for (const auto& [id, session] : before) {
    const SessionRecord& live = session->record();
    if (!HasSandbox(live.state)) continue;
    if (!held[live.provider].contains(live.sandbox_id))
      find(FindingKind::kMissingSandbox, id, live.sandbox_id, live.provider,
           fmt::format("session {} is {} and its sandbox is not there", id, NameOf(live.state)));
    if (const auto [other, added] = users.emplace(live.sandbox_id, id); !added)
      find(FindingKind::kSharedSandbox, id, live.sandbox_id, live.provider,
           fmt::format("sessions {} and {} have the same sandbox", other->second, id));
    const auto record = std::ranges::find_if(records, [&](const auto& r) { return r.id == id; });
    if (record == records.end())
      find(FindingKind::kUnrecorded, id, live.sandbox_id, live.provider,
           fmt::format("session {} lives and has no record", id));
    else if (HasSandbox(record->state) && record->state != live.state &&
             record->updated == live.updated)
      find(FindingKind::kStateDiffers, id, live.sandbox_id, live.provider,
           fmt::format("session {} is {} and its record says {}", id, NameOf(live.state),
                       NameOf(record->state)));
  }
  for (const auto& record : records)
    if (!table_.FindId(record.id) && HasSandbox(record.state))
      find(FindingKind::kUnknownRecord, record.id, record.sandbox_id, record.provider,
           fmt::format("a record says that session {} is {}, and it is not", record.id,
                       NameOf(record.state)));
  std::set<std::string> used;
  for (const auto& session : table_.All()) used.insert(session->record().sandbox_id);
  for (const auto& [provider, ids] : held)
    for (const auto& id : ids)
      if (!used.contains(id) && !ender_.IsEnding(id) &&
          (parts_.warm == nullptr || !parts_.warm->Holds(id)))
        find(FindingKind::kOrphan, "", id, provider,
             fmt::format("sandbox {} of {} belongs to no session", id, provider));
  co_return report;
}

// Missing sandboxes make lost sessions. A sandbox that is nobody's twice in a row goes: once may
// be a matter of the moment.
Task<void> SessionManager::AuditTask() {
  for (;;) {
    co_await parts_.loop.Sleep(options_.audit_interval);
    const auto report = co_await Audit();
    if (!report) {
      parts_.events.Publish({.kind = EventKind::kAlert,
                             .details = {{"what", "the self-audit could not be done"},
                                         {"reason", report.error().message()}}});
      continue;
    }
    std::vector<std::string> orphans;
    for (const auto& finding : report->findings) {
      auto session = table_.FindId(finding.session_id);
      if (finding.kind == FindingKind::kMissingSandbox && session)
        ender_.Conclude(session, nullptr, SessionState::kLost,
                        "its sandbox has gone without our doing");
      if (finding.kind == FindingKind::kOrphan) {
        orphans.push_back(finding.sandbox_id);
        if (std::ranges::find(orphans_, finding.sandbox_id) == orphans_.end()) continue;
        ender_.Sweep(*FindProvider(finding.provider), finding.sandbox_id);
      }
      parts_.events.Publish({.kind = EventKind::kAudit,
                             .session_id = finding.session_id,
                             .details = {{"finding", finding.text}}});
    }
    orphans_ = std::move(orphans);
  }
}

}  // namespace caisson::sandbox
