// SessionManager: every session from the request to create it to its end.
//
// The one place that makes and ends sessions. Intent is written down before any effect, and what is
// acknowledged is written down before that. Work that changes something goes on when its caller
// leaves: creating, pausing, patching and destroying run to their end, each within a time. Belongs
// to one Loop's thread. Outlives every task it gives out and every Session.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/task_set.h"
#include "sandbox/admission.h"
#include "sandbox/command_records.h"
#include "sandbox/session_audit.h"
#include "sandbox/session_ender.h"
#include "sandbox/session_journal.h"
#include "sandbox/session_keeper.h"
#include "sandbox/session_table.h"

namespace caisson::sandbox {

struct ManagerOptions {
  std::string default_provider = "native";
  // Names of environments that stand for another one of the provider's: {"Python3": "host"}.
  StringMap environments;
  IsolationLevel min_isolation = IsolationLevel::kAny;  // of every session
  // Memory and CPU of sessions of the default profile that name none, instead of the profile's.
  std::optional<uint64_t> default_memory_bytes;
  std::optional<uint32_t> default_cpu_millis;
  std::string boot_id;  // of this host; see BootId
  std::chrono::milliseconds create_time = std::chrono::seconds(60);
  std::chrono::milliseconds call_time = std::chrono::seconds(30);  // of one call to a sandbox
  std::chrono::milliseconds audit_interval = std::chrono::seconds(30);
  EnderOptions ender;
};
// The kernel's id of this boot.
Result<std::string> BootId();

// What the manager works with; all of it outlives the manager.
struct ManagerParts {
  async::Loop& loop;
  EventBus& events;
  SessionJournal& journal;
  Admission& admission;
  std::vector<Provider*> providers;
  WarmSource* warm = nullptr;          // none: every create makes a sandbox
  SessionKeeper* keeper = nullptr;     // none: nothing outlives a session
  CommandRecords* commands = nullptr;  // none: ended commands are soon forgotten
  WallClock clock = SystemTime;
};

// What of a session is to change. Empty fields stay.
struct SessionPatch {
  std::optional<std::chrono::milliseconds> timeout;  // from now
  Limits limits;
  std::optional<StringMap> metadata, labels;  // replace the old ones
};

class SessionManager : private SessionObserver {
 public:
  SessionManager(ManagerParts parts, ManagerOptions options);
  ~SessionManager() override;

  // Takes up what an earlier server left (session_recovery.h) and begins to reap and audit. Until
  // it has completed, nothing else is called.
  Task<Status> Start();

  // A running session. Two creates with the same idempotency key and request give the same one,
  // also at the same time; another request under the key is kConflict.
  // kInvalidArgument, kLimitRefused, kUnsupported, kConflict (name), kResourceExhausted, and what
  // the provider says.
  Task<Result<std::shared_ptr<Session>>> Create(Owner owner, SessionSpec spec);

  // By id or name. kNotFound when there never was one that the caller may see, kGone with the
  // reason when it has ended.
  Task<Result<std::shared_ptr<Session>>> Get(Access access, std::string id_or_name);
  // The same for those who only look: ended ones too, until their records are purged.
  Task<Result<SessionRecord>> Describe(Access access, std::string id_or_name);
  Task<Result<SessionPage>> List(SessionQuery query);

  // All or nothing where the provider can; a limit that is refused changes nothing.
  Task<Result<SessionRecord>> Patch(Access access, std::string id, SessionPatch patch);
  // The same for those who move limits by themselves (session_scaling.h).
  Task<Status> SetLimits(std::shared_ptr<Session> session, Limits limits);
  // Lets its timeout begin anew.
  Task<Result<SessionRecord>> Touch(Access access, std::string id);
  // Pausing a paused one is fine, resuming a running one too.
  Task<Result<SessionRecord>> Pause(Access access, std::string id);
  Task<Result<SessionRecord>> Resume(Access access, std::string id);

  // Acknowledged when it is written down; the rest happens in the background. Fine for one that is
  // ending or has ended.
  Task<Status> Destroy(Access access, std::string id, std::string reason);

  // Compares records, live sessions and what the providers hold; see session_audit.h.
  Task<Result<AuditReport>> Audit();

  // Stops reaping and taking creates, and waits for what is under way, at most so long. Sandboxes
  // live on for the next server.
  Task<void> Close(std::chrono::milliseconds patience);

  const SessionTable& sessions() const { return table_; }
  Provider* FindProvider(const std::string& name) const;
  // Creates that wait or run, and ends that are under way.
  size_t creating() const { return creating_; }
  size_t ending() const { return ender_.running(); }

 private:
  friend class SessionRecovery;
  struct Creation;
  class Waiting;
  using CreationKey = std::pair<std::string, std::string>;  // tenant, key

  void OnProcess(Session& session, std::shared_ptr<ProcessFeed> process) override;
  void OnSuspect(Session& session) override;
  void OnLoss(const Provider& provider, const Loss& loss);
  Task<Result<std::vector<KeptArtifact>>> Keep(Session* session,
                                               std::vector<std::string> globs) override;
  Task<bool> EndIsKnown(const Session* session, uint32_t process) override;

  // session_creation.cc
  Result<std::shared_ptr<Creation>> Enter(Owner owner, SessionSpec spec);
  Task<void> CreationTask(std::shared_ptr<Creation> creation);
  Task<Result<std::shared_ptr<Session>>> Make(Creation* creation);
  Task<Result<std::shared_ptr<Session>>> MakeWarm(Creation* creation,
                                                  std::shared_ptr<Session> session,
                                                  std::unique_ptr<Sandbox> sandbox);
  Task<Result<std::shared_ptr<Session>>> MakeCold(Creation* creation,
                                                  std::shared_ptr<Session> session);
  Task<Result<std::shared_ptr<Session>>> Announce(Creation* creation,
                                                  std::shared_ptr<Session> session);
  Error Undo(std::shared_ptr<Session> session, Provider* provider, Error error);
  void Abandon(const Creation& creation);
  SandboxSpec ToSandboxSpec(const SessionRecord& record) const;

  Task<Result<SessionRecord>> Recorded(Access access, std::string id_or_name);
  Task<Result<SessionRecord>> PatchWork(std::shared_ptr<Session> session, SessionPatch patch);
  Task<Result<SessionRecord>> PauseWork(std::shared_ptr<Session> session);
  Task<Result<SessionRecord>> ResumeWork(std::shared_ptr<Session> session);
  Task<Status> DestroyWork(std::shared_ptr<Session> session, std::string reason);
  Task<Status> Call(Task<Status> call, std::string what);

  Task<void> ReapTask();
  void NoteDeadline(const Session& session);
  Task<void> ExpireTask(std::shared_ptr<Session> session);
  Task<void> AuditTask();
  Task<void> LookAtSuspects();

  ManagerParts parts_;
  const ManagerOptions options_;
  SessionTable table_;
  SessionEnder ender_;
  std::map<CreationKey, std::shared_ptr<Creation>> creations_;  // those with a key
  size_t creating_ = 0;
  bool closing_ = false;
  bool looking_ = false;  // at suspects
  async::Loop::Clock::time_point armed_ = async::Loop::Clock::time_point::max();
  async::Event deadline_changed_;
  std::vector<std::string> orphans_;  // of the last audit
  async::TaskSet tasks_;              // work that callers wait for
  async::TaskSet background_;         // reaper and audit
};

}  // namespace caisson::sandbox
