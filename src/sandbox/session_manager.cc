#include "sandbox/session_manager.h"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>

#include "async/race.h"
#include "base/crash_point.h"
#include "base/units.h"
#include "sandbox/session_creation.h"
#include "sandbox/session_recovery.h"
#include "sandbox/shield.h"

namespace caisson::sandbox {
namespace {

Error NotFound(const std::string& id) {
  return Error(ErrorCode::kNotFound, fmt::format("there is no session {}", id))
      .WithRemedy("list the sessions");
}
Error Gone(const SessionRecord& record) {
  return Error(ErrorCode::kGone, fmt::format("session {} has ended ({}): {}", record.id,
                                             NameOf(record.state), record.reason))
      .WithRemedy("create another one");
}

bool Changes(const Limits& l) {
  return l.memory_bytes || l.swap_bytes || l.cpu_millis || l.pids || l.disk_bytes ||
         l.disk_inodes || l.open_files || l.io_read_bps || l.io_write_bps || l.io_read_iops ||
         l.io_write_iops || l.memory_bandwidth_percent || l.wall_time || l.output_bytes;
}
template <typename T>
void Take(std::optional<T>& into, const std::optional<T>& from) {
  if (from) into = from;
}
void Merge(Limits& into, const Limits& from) {
  Take(into.memory_bytes, from.memory_bytes);
  Take(into.swap_bytes, from.swap_bytes);
  Take(into.cpu_millis, from.cpu_millis);
  Take(into.pids, from.pids);
  Take(into.disk_bytes, from.disk_bytes);
  Take(into.disk_inodes, from.disk_inodes);
  Take(into.open_files, from.open_files);
  Take(into.io_read_bps, from.io_read_bps);
  Take(into.io_write_bps, from.io_write_bps);
  Take(into.io_read_iops, from.io_read_iops);
  Take(into.io_write_iops, from.io_write_iops);
  Take(into.memory_bandwidth_percent, from.memory_bandwidth_percent);
  Take(into.wall_time, from.wall_time);
  Take(into.output_bytes, from.output_bytes);
}

}  // namespace

Result<std::string> BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  if (!std::getline(file, id) || id.empty())
    return Error(ErrorCode::kIo, "read /proc/sys/kernel/random/boot_id");
  return id;
}

SessionManager::SessionManager(ManagerParts parts, ManagerOptions options)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      ender_(parts_.loop, options_.ender, table_, parts_.journal, parts_.events, parts_.keeper),
      deadline_changed_(parts_.loop),
      tasks_(parts_.loop),
      background_(parts_.loop) {
  for (Provider* provider : parts_.providers)
    provider->OnLoss([this, provider](const Loss& loss) { OnLoss(*provider, loss); });
}

SessionManager::~SessionManager() {
  for (Provider* provider : parts_.providers) provider->OnLoss(nullptr);
}

Task<Status> SessionManager::Start() {
  CAISSON_CO_TRY(co_await SessionRecovery(*this).Run());
  if (parts_.commands != nullptr)
    CAISSON_CO_TRY(co_await parts_.commands->CloseForgotten(
        [this](const std::string& session_id, uint32_t process) {
          const auto session = table_.FindId(session_id);
          return session && session->FindProcess(process).has_value();
        }));
  background_.Spawn(ReapTask());
  background_.Spawn(AuditTask());
  co_return Status();
}

Task<void> SessionManager::Close(std::chrono::milliseconds patience) {
  closing_ = true;
  background_.Cancel();
  const auto until = async::Loop::Clock::now() + patience;
  (void)co_await async::WithTimeout(&parts_.loop, patience, async::Await(tasks_.Join()));
  (void)co_await async::WithTimeout(&parts_.loop, until - async::Loop::Clock::now(),
                                    async::Await(ender_.Join()));
  tasks_.Cancel();
  ender_.Cancel();
}

Provider* SessionManager::FindProvider(const std::string& name) const {
  const auto found =
      std::ranges::find_if(parts_.providers, [&](const Provider* p) { return p->name() == name; });
  return found == parts_.providers.end() ? nullptr : *found;
}

// --- looking ------------------------------------------------------------------------------------

Task<Result<std::shared_ptr<Session>>> SessionManager::Get(Access access, std::string id_or_name) {
  if (auto live = table_.Find(access, id_or_name)) {
    if (HasEnded(live->state()) || live->state() == SessionState::kStopping)
      co_return Gone(live->record());
    co_return live;
  }
  CAISSON_CO_ASSIGN(const auto record, co_await Recorded(std::move(access), std::move(id_or_name)));
  co_return Gone(record);
}

Task<Result<SessionRecord>> SessionManager::Describe(Access access, std::string id_or_name) {
  if (auto live = table_.Find(access, id_or_name)) co_return live->record();
  co_return co_await Recorded(std::move(access), std::move(id_or_name));
}

// One that has ended, by id or by the name it had.
Task<Result<SessionRecord>> SessionManager::Recorded(Access access, std::string id_or_name) {
  CAISSON_CO_ASSIGN(auto record, co_await parts_.journal.Find(id_or_name));
  if (!record) {
    CAISSON_CO_ASSIGN(record, co_await parts_.journal.FindNamed(access.home, id_or_name));
  }
  if (!record || !access.Sees(*record)) co_return NotFound(id_or_name);
  co_return *std::move(record);
}

Task<Result<SessionPage>> SessionManager::List(SessionQuery query) {
  if (query.states.empty())
    query.states = {SessionState::kCreating, SessionState::kRunning, SessionState::kPaused,
                    SessionState::kStopping};
  CAISSON_CO_ASSIGN(auto page, co_await parts_.journal.List(std::move(query)));
  for (auto& record : page.sessions)
    if (auto live = table_.FindId(record.id)) record = live->record();
  co_return page;
}

// --- changing -----------------------------------------------------------------------------------

Task<Status> SessionManager::Call(Task<Status> call, std::string what) {
  auto done = co_await async::WithTimeout(&parts_.loop, options_.call_time, std::move(call));
  if (done) co_return *std::move(done);
  co_return Error(ErrorCode::kDeadlineExceeded, what + " took too long");
}

Task<Result<SessionRecord>> SessionManager::Patch(Access access, std::string id,
                                                  SessionPatch patch) {
  if (patch.timeout) CAISSON_CO_TRY(CheckTimeout(*patch.timeout));
  if (patch.metadata) CAISSON_CO_TRY(CheckMetadata(*patch.metadata));
  if (patch.labels) CAISSON_CO_TRY(CheckLabels(*patch.labels));
  CAISSON_CO_ASSIGN(auto session, co_await Get(access, std::move(id)));
  co_return co_await Shield(&parts_.loop, &tasks_, PatchWork(session, std::move(patch)));
}

Task<Result<SessionRecord>> SessionManager::PatchWork(std::shared_ptr<Session> session,
                                                      SessionPatch patch) {
  const auto turn = co_await session->turn().Take();
  if (session->state() != SessionState::kPaused) CAISSON_CO_TRY(session->MustBeRunning());
  if (Changes(patch.limits)) {
    if (!FindProvider(session->record().provider)->capabilities().live_limits)
      co_return Error(ErrorCode::kUnsupported,
                      fmt::format("the provider {} cannot change limits of a session that runs",
                                  session->record().provider));
    auto updated = co_await async::WithTimeout(&parts_.loop, options_.call_time,
                                               session->sandbox()->Update(patch.limits));
    if (!updated)
      co_return Error(ErrorCode::kDeadlineExceeded, "changing the limits took too long");
    if (!*updated) co_return std::move(*updated).error();
    CrashPoint("patch.applied");
  }
  SessionSpec& spec = session->mutable_record().spec;
  Merge(spec.limits, patch.limits);
  if (patch.metadata) spec.metadata = *std::move(patch.metadata);
  if (patch.labels) spec.labels = *std::move(patch.labels);
  if (patch.timeout) session->SetTimeout(*patch.timeout);
  session->mutable_record().updated = parts_.clock();
  NoteDeadline(*session);
  session->Publish(EventKind::kSessionUpdated);
  CAISSON_CO_TRY(co_await parts_.journal.Save(session->record()));
  CrashPoint("patch.recorded");
  co_return session->record();
}

Task<Status> SessionManager::SetLimits(std::shared_ptr<Session> session, Limits limits) {
  SessionPatch patch;
  patch.limits = limits;
  auto patched =
      co_await Shield(&parts_.loop, &tasks_, PatchWork(std::move(session), std::move(patch)));
  if (!patched) co_return std::move(patched).error();
  co_return Status();
}

Task<Result<SessionRecord>> SessionManager::Touch(Access access, std::string id) {
  CAISSON_CO_ASSIGN(auto session, co_await Get(access, std::move(id)));
  SessionPatch patch;
  patch.timeout = session->spec().timeout;
  co_return co_await Shield(&parts_.loop, &tasks_, PatchWork(session, std::move(patch)));
}

Task<Result<SessionRecord>> SessionManager::Pause(Access access, std::string id) {
  CAISSON_CO_ASSIGN(auto session, co_await Get(access, std::move(id)));
  co_return co_await Shield(&parts_.loop, &tasks_, PauseWork(session));
}

// A crash between freezing and writing it down leaves a record that says running: recovery goes by
// the record and thaws.
Task<Result<SessionRecord>> SessionManager::PauseWork(std::shared_ptr<Session> session) {
  const auto turn = co_await session->turn().Take();
  if (session->state() == SessionState::kPaused) co_return session->record();
  CAISSON_CO_TRY(session->MustBeRunning());
  if (!FindProvider(session->record().provider)->capabilities().pause)
    co_return Error(ErrorCode::kUnsupported,
                    fmt::format("the provider {} cannot pause", session->record().provider));
  if (auto paused = co_await Call(session->sandbox()->Pause(), "pausing"); !paused) {
    (void)co_await Call(session->sandbox()->Resume(), "resuming");  // as good as it can be
    co_return std::move(paused).error();
  }
  CrashPoint("pause.frozen");
  CAISSON_CO_TRY(session->MoveTo(SessionState::kPaused, ""));
  if (auto saved = co_await parts_.journal.Save(session->record()); !saved) {
    (void)co_await Call(session->sandbox()->Resume(), "resuming");
    (void)session->MoveTo(SessionState::kRunning, "");
    co_return std::move(saved).error();
  }
  CrashPoint("pause.recorded");
  co_return session->record();
}

Task<Result<SessionRecord>> SessionManager::Resume(Access access, std::string id) {
  CAISSON_CO_ASSIGN(auto session, co_await Get(access, std::move(id)));
  co_return co_await Shield(&parts_.loop, &tasks_, ResumeWork(session));
}

Task<Result<SessionRecord>> SessionManager::ResumeWork(std::shared_ptr<Session> session) {
  const auto turn = co_await session->turn().Take();
  if (session->state() == SessionState::kRunning) co_return session->record();
  if (session->state() != SessionState::kPaused) CAISSON_CO_TRY(session->MustBeRunning());
  CAISSON_CO_TRY(co_await Call(session->sandbox()->Resume(), "resuming"));
  CrashPoint("resume.thawed");
  CAISSON_CO_TRY(session->MoveTo(SessionState::kRunning, ""));
  CAISSON_CO_TRY(co_await parts_.journal.Save(session->record()));
  co_return session->record();
}

Task<Status> SessionManager::Destroy(Access access, std::string id, std::string reason) {
  auto live = table_.Find(access, id);
  if (live) co_return co_await Shield(&parts_.loop, &tasks_, DestroyWork(live, std::move(reason)));
  CAISSON_CO_TRY(co_await Recorded(std::move(access), std::move(id)));
  co_return Status();
}

Task<Status> SessionManager::DestroyWork(std::shared_ptr<Session> session, std::string reason) {
  const bool made = session->state() != SessionState::kCreating;
  if (!session->MoveTo(SessionState::kStopping, std::move(reason))) co_return Status();
  // A full disk does not keep a sandbox alive: it ends all the same. The promise that it stays
  // ended is then kept by its being gone before anybody is told.
  CrashPoint("destroy.asked");
  const auto saved = co_await parts_.journal.Save(session->record());
  CrashPoint("destroy.recorded");
  if (!made) co_return Status();  // whoever makes it ends it
  ender_.End(session, *FindProvider(session->record().provider));
  while (!saved && session->state() == SessionState::kStopping)
    co_await parts_.loop.Sleep(std::chrono::milliseconds(5));
  co_return Status();
}

// --- the reaper ---------------------------------------------------------------------------------

void SessionManager::NoteDeadline(const Session& session) {
  if (session.deadline() < armed_) deadline_changed_.Wake();
}

Task<void> SessionManager::ReapTask() {
  for (;;) {
    const auto now = async::Loop::Clock::now();
    armed_ = async::Loop::Clock::time_point::max();
    for (const auto& session : table_.All()) {
      if (session->state() != SessionState::kRunning && session->state() != SessionState::kPaused)
        continue;
      if (session->deadline() <= now)
        tasks_.Spawn(ExpireTask(session));
      else
        armed_ = std::min(armed_, session->deadline());
    }
    // Long sleeps are cut, so that nothing is missed for ever.
    armed_ = std::min(armed_, now + std::chrono::minutes(1));
    (void)co_await async::WithTimeout(&parts_.loop, armed_ - now,
                                      async::WaitFor(&deadline_changed_));
  }
}

Task<void> SessionManager::ExpireTask(std::shared_ptr<Session> session) {
  const auto timeout = session->spec().timeout;
  session->Publish(EventKind::kSessionExpired);
  (void)co_await DestroyWork(session,
                             fmt::format("its timeout of {} was over", FormatDuration(timeout)));
}

// --- what sessions ask for ----------------------------------------------------------------------

void SessionManager::OnProcess(Session& session, std::shared_ptr<ProcessFeed> process) {
  if (parts_.commands != nullptr) parts_.commands->Follow(session.id(), process);
  if (parts_.keeper != nullptr) parts_.keeper->Log(session, std::move(process));
}

Task<bool> SessionManager::EndIsKnown(const Session* session, uint32_t process) {
  if (parts_.commands == nullptr) co_return false;
  const auto record = co_await parts_.commands->Find(session->id(), process);
  co_return record && *record && (*record)->ended;
}

Task<Result<std::vector<KeptArtifact>>> SessionManager::Keep(Session* session,
                                                             std::vector<std::string> globs) {
  if (parts_.keeper == nullptr)
    co_return Error(ErrorCode::kUnsupported, "this server keeps no artifacts");
  CAISSON_CO_TRY(CheckGlobs(globs));
  co_return co_await parts_.keeper->Keep(session, std::move(globs));
}

void SessionManager::OnSuspect(Session& session) {
  if (session.state() != SessionState::kRunning && session.state() != SessionState::kPaused) return;
  if (closing_ || std::exchange(looking_, true)) return;
  tasks_.Spawn(LookAtSuspects());
}

// Those that are being made or ended are seen to by whoever does that.
void SessionManager::OnLoss(const Provider& provider, const Loss& loss) {
  for (const auto& session : table_.All()) {
    const SessionRecord& record = session->record();
    if (record.state != SessionState::kRunning && record.state != SessionState::kPaused) continue;
    if (record.provider != provider.name() || session->sandbox() == nullptr) continue;
    if (loss.sandbox_id.empty() ? session->sandbox()->gone() : loss.sandbox_id == record.sandbox_id)
      ender_.Conclude(session, nullptr, SessionState::kLost, loss.reason);
  }
}

// One look at everything serves all who were suspected meanwhile.
Task<void> SessionManager::LookAtSuspects() {
  co_await parts_.loop.Yield();
  looking_ = false;
  const auto report = co_await Audit();
  if (!report) co_return;  // the next audit comes by itself
  for (const auto& finding : report->findings) {
    auto session = table_.FindId(finding.session_id);
    if (finding.kind == FindingKind::kMissingSandbox && session)
      ender_.Conclude(session, nullptr, SessionState::kLost,
                      "its sandbox has gone without our doing");
  }
}

}  // namespace caisson::sandbox
