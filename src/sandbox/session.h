// Session: one live session: its state, its sandbox, its commands.
//
// Made and ended by the SessionManager, which also writes it down; everybody else uses it through a
// shared_ptr and holds that for as long as one of its tasks runs. State changes follow the table of
// session_record.h and publish events. Belongs to one Loop's thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "async/task_set.h"
#include "sandbox/event_bus.h"
#include "sandbox/exec_report.h"
#include "sandbox/process_feed.h"
#include "sandbox/session_record.h"
#include "sandbox/turn.h"

namespace caisson::sandbox {

class Session;

// What a session asks of those around it.
class SessionObserver {
 public:
  virtual ~SessionObserver() = default;
  // A command has started; its output may be followed.
  virtual void OnProcess(Session& session, std::shared_ptr<ProcessFeed> process) = 0;
  // A call failed in a way that a sandbox that has gone would explain.
  virtual void OnSuspect(Session& session) = 0;
  // Copies what matches out of the sandbox.
  virtual Task<Result<std::vector<KeptArtifact>>> Keep(Session* session,
                                                       std::vector<std::string> globs) = 0;
  // Whether it is on record that this command has ended, so that it need not be told again.
  virtual Task<bool> EndIsKnown(const Session* session, uint32_t process) = 0;
};

// A command whose caller stays with it: output in order, none of it lost, and the command waits for
// the caller to take it. When this goes before the command has ended, the whole tree is killed.
class ForegroundExec {
 public:
  ForegroundExec(std::shared_ptr<Session> session, std::shared_ptr<ProcessFeed> process,
                 std::unique_ptr<ProcessFeed::Subscription> output);
  ~ForegroundExec();
  ForegroundExec(const ForegroundExec&) = delete;
  ForegroundExec& operator=(const ForegroundExec&) = delete;

  // The next piece; nothing after the outcome.
  Task<std::optional<FeedItem>> Next() { return output_->Next(); }
  ProcessFeed& process() { return *process_; }

 private:
  std::shared_ptr<Session> session_;
  std::shared_ptr<ProcessFeed> process_;
  std::unique_ptr<ProcessFeed::Subscription> output_;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  using Clock = async::Loop::Clock;
  // Ended detached commands whose output and outcome can still be had; the oldest go first.
  static constexpr size_t kEndedKept = 16;

  // The bus, the clock and the observer outlive it.
  Session(async::Loop& loop, EventBus& events, WallClock clock, SessionObserver& observer,
          SessionRecord record);
  ~Session();

  const std::string& id() const { return record_.id; }
  const SessionRecord& record() const { return record_; }
  const SessionSpec& spec() const { return record_.spec; }
  SessionState state() const { return record_.state; }
  Clock::time_point deadline() const { return deadline_; }
  // Null before it runs; stays when the session has ended, and then refuses every call.
  Sandbox* sandbox() const { return sandbox_.get(); }

  // Starts a command that nobody waits for. kConflict unless running.
  Task<Result<std::shared_ptr<ProcessFeed>>> Start(ExecSpec spec);
  // Starts one that the caller reads to its end.
  Task<Result<std::unique_ptr<ForegroundExec>>> StartForeground(ExecRequest request);
  // Runs one to its end and collects its output.
  Task<Result<ExecReport>> Exec(ExecRequest request);

  // The commands that run, and those of the ended that are still known, oldest first.
  std::vector<std::shared_ptr<ProcessFeed>> Processes() const;
  // kNotFound when there is none of this handle.
  Result<std::shared_ptr<ProcessFeed>> FindProcess(uint32_t handle) const;
  // Forgets an ended command. kConflict while it runs.
  Task<Status> Release(uint32_t handle);

  // kConflict unless running: the file system of a paused sandbox answers nobody.
  Result<Files*> files();
  Task<Result<SandboxStats>> Stats();

  // kGone or kConflict when the state is another, saying what to do.
  Status MustBeRunning() const;

  // --- for the SessionManager and its parts --------------------------------------------------
  // Changes the state by the table, notes why, and publishes it. kConflict when it may not.
  Status MoveTo(SessionState state, std::string reason);
  void Publish(EventKind kind, std::vector<std::pair<std::string, std::string>> details = {});
  void SetSandbox(std::unique_ptr<Sandbox> sandbox);
  // Lets its life end so long from now.
  void SetTimeout(std::chrono::milliseconds timeout);
  // The same with less than the whole timeout left, after a restart.
  void SetRemaining(std::chrono::milliseconds remaining);
  SessionRecord& mutable_record() { return record_; }
  // Takes up every process that the sandbox knows, with the output it still has.
  Task<Status> AdoptProcesses();
  // Pausing, resuming and patching take turns.
  Turn& turn() { return turn_; }
  // Kills the command's tree, soon.
  void Kill(std::shared_ptr<ProcessFeed> process);

 private:
  enum class Manner { kForeground, kDetached };
  enum class Ending { kAnnounced, kKnown };  // whether its end is news
  struct Entry {
    std::shared_ptr<ProcessFeed> feed;
    Manner manner;
  };
  struct Starting;

  Task<Result<std::shared_ptr<Starting>>> Launch(ExecSpec spec, Manner manner);
  Task<void> LaunchTask(ExecSpec spec, std::shared_ptr<Starting> starting);
  void Follow(std::shared_ptr<ProcessFeed> feed, Manner manner, Ending ending);
  Task<void> FollowTask(std::shared_ptr<ProcessFeed> feed, Manner manner, Ending ending);
  static Task<void> KillTask(std::shared_ptr<ProcessFeed> feed);
  static Task<void> FeedTask(std::shared_ptr<ProcessFeed> feed, std::string input);
  Task<void> ReleaseTask(uint32_t handle);
  void Complete(ExecSpec& spec) const;
  void ForgetOldest();
  void NoteFailure(const Error& error);

  async::Loop& loop_;
  EventBus& events_;
  const WallClock clock_;
  SessionObserver& observer_;
  SessionRecord record_;
  Clock::time_point deadline_;
  std::unique_ptr<Sandbox> sandbox_;
  std::map<uint32_t, Entry> processes_;
  Turn turn_;
  async::TaskSet tasks_;
};

}  // namespace caisson::sandbox
