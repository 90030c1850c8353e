#include "sandbox/session.h"

#include <fmt/core.h>
#include <signal.h>

#include <algorithm>

#include "base/crash_point.h"
#include "base/text.h"

namespace caisson::sandbox {
namespace {

std::string CommandText(const std::vector<std::string>& argv) {
  std::string text;
  for (const auto& argument : argv) {
    if (!text.empty()) text += ' ';
    text += argument;
    if (text.size() > 200) return text.substr(0, 200) + "…";
  }
  return text;
}

std::optional<EventKind> KindOf(SessionState from, SessionState to) {
  switch (to) {
    case SessionState::kRunning:
      return from == SessionState::kPaused ? EventKind::kSessionResumed
                                           : EventKind::kSessionRunning;
    case SessionState::kPaused:
      return EventKind::kSessionPaused;
    case SessionState::kDestroyed:
      return EventKind::kSessionDestroyed;
    case SessionState::kFailed:
      return EventKind::kSessionFailed;
    case SessionState::kLost:
      return EventKind::kSessionLost;
    case SessionState::kCreating:
    case SessionState::kStopping:
      break;
  }
  return std::nullopt;
}

}  // namespace

// Shared by who asked for a start and the task that does it. When the asker goes before it has
// taken the command, the task still ends, and a foreground command is killed with the last
// reference.
struct Session::Starting {
  Starting(Session& session, Manner manner)
      : session(session), manner(manner), done(session.loop_) {}
  Starting(const Starting&) = delete;
  Starting& operator=(const Starting&) = delete;
  ~Starting() {
    if (feed && manner == Manner::kForeground) session.Kill(std::move(feed));
  }
  Session& session;
  const Manner manner;
  async::Event done;
  std::optional<Error> error;
  std::shared_ptr<ProcessFeed> feed;
  std::unique_ptr<ProcessFeed::Subscription> output;  // of a foreground command
};

ForegroundExec::ForegroundExec(std::shared_ptr<Session> session,
                               std::shared_ptr<ProcessFeed> process,
                               std::unique_ptr<ProcessFeed::Subscription> output)
    : session_(std::move(session)), process_(std::move(process)), output_(std::move(output)) {}

ForegroundExec::~ForegroundExec() {
  output_.reset();
  if (!process_->outcome()) session_->Kill(process_);
}

Session::Session(async::Loop& loop, EventBus& events, WallClock clock, SessionObserver& observer,
                 SessionRecord record)
    : loop_(loop),
      events_(events),
      clock_(std::move(clock)),
      observer_(observer),
      record_(std::move(record)),
      turn_(loop),
      tasks_(loop) {
  SetRemaining(record_.spec.timeout);
}

Session::~Session() = default;

Status Session::MustBeRunning() const {
  switch (record_.state) {
    case SessionState::kRunning:
      return {};
    case SessionState::kPaused:
      return Error(ErrorCode::kConflict, fmt::format("session {} is paused", id()))
          .WithRemedy("resume it first");
    case SessionState::kCreating:
      return Error(ErrorCode::kConflict, fmt::format("session {} is still being made", id()))
          .WithRemedy("wait until it is running");
    case SessionState::kStopping:
    case SessionState::kDestroyed:
    case SessionState::kFailed:
    case SessionState::kLost:
      break;
  }
  return Error(ErrorCode::kGone, fmt::format("session {} has ended ({}): {}", id(),
                                             NameOf(record_.state), record_.reason))
      .WithRemedy("create another one");
}

Status Session::MoveTo(SessionState state, std::string reason) {
  const SessionState from = record_.state;
  if (!MayBecome(from, state))
    return Error(ErrorCode::kConflict, fmt::format("session {} is {} and cannot become {}", id(),
                                                   NameOf(from), NameOf(state)));
  record_.state = state;
  record_.updated = clock_();
  if (HasEnded(state)) record_.ended = record_.updated;
  if (!reason.empty()) record_.reason = std::move(reason);
  if (const auto kind = KindOf(from, state)) {
    if (record_.reason.empty())
      Publish(*kind);
    else
      Publish(*kind, {{"reason", record_.reason}});
  }
  return {};
}

void Session::Publish(EventKind kind, std::vector<std::pair<std::string, std::string>> details) {
  events_.Publish({.kind = kind,
                   .session_id = record_.id,
                   .tenant = record_.owner.tenant,
                   .key_id = record_.owner.key_id,
                   .details = std::move(details)});
}

void Session::SetSandbox(std::unique_ptr<Sandbox> sandbox) {
  sandbox_ = std::move(sandbox);
  record_.sandbox_id = sandbox_->id();
}

void Session::SetTimeout(std::chrono::milliseconds timeout) {
  record_.spec.timeout = timeout;
  SetRemaining(timeout);
}

void Session::SetRemaining(std::chrono::milliseconds remaining) {
  deadline_ = Clock::now() + remaining;
  record_.expires = clock_() + remaining;
}

// What the session says about every command, where the command says nothing. The limits of one
// command are given each time: a sandbox that was adopted does not remember them.
void Session::Complete(ExecSpec& spec) const {
  for (const auto& [name, value] : record_.spec.env) spec.env.try_emplace(name, value);
  if (spec.user.empty()) spec.user = record_.spec.user;
  const DefaultLimits limits = EffectiveLimits(record_.spec);
  if (!spec.timeout) spec.timeout = limits.wall_time;
  if (!spec.output_limit) spec.output_limit = limits.output_bytes;
}

Task<Result<std::shared_ptr<Session::Starting>>> Session::Launch(ExecSpec spec, Manner manner) {
  CAISSON_CO_TRY(MustBeRunning());
  Complete(spec);
  auto starting = std::make_shared<Starting>(*this, manner);
  tasks_.Spawn(LaunchTask(std::move(spec), starting));
  co_await starting->done.Wait();
  if (starting->error) co_return *std::move(starting->error);
  co_return starting;
}

Task<void> Session::LaunchTask(ExecSpec spec, std::shared_ptr<Starting> starting) {
  const Manner manner = starting->manner;
  ProcessFacts facts{
      CommandText(spec.argv), spec.label, spec.stdio, clock_(), spec.argv, spec.cwd, spec.user};
  auto started = co_await sandbox_->Start(std::move(spec));
  if (!started) {
    NoteFailure(started.error());
    starting->error = std::move(started).error();
    co_return starting->done.Set();
  }
  CrashPoint("exec.started");
  auto feed = std::make_shared<ProcessFeed>(loop_, *std::move(started), std::move(facts));
  processes_[feed->handle()] = {feed, manner};
  observer_.OnProcess(*this, feed);
  if (manner == Manner::kForeground) starting->output = feed->Subscribe(Pace::kHolds, {});
  feed->Start();
  Publish(EventKind::kExecStarted,
          {{"process", std::to_string(feed->handle())}, {"command", feed->facts().command}});
  Follow(feed, manner, Ending::kAnnounced);
  starting->feed = std::move(feed);
  starting->done.Set();
  starting.reset();
}

void Session::Follow(std::shared_ptr<ProcessFeed> feed, Manner manner, Ending ending) {
  tasks_.Spawn(FollowTask(std::move(feed), manner, ending));
}

Task<void> Session::FollowTask(std::shared_ptr<ProcessFeed> feed, Manner manner, Ending ending) {
  const ExecOutcome outcome = co_await feed->Wait();
  CrashPoint("exec.ended");
  if (ending == Ending::kAnnounced)
    Publish(EventKind::kExecEnded, {{"process", std::to_string(feed->handle())},
                                    {"status", std::string(NameOf(outcome.status))},
                                    {"exit_code", std::to_string(outcome.exit_code)},
                                    {"reason", outcome.reason}});
  if (outcome.status == OutcomeStatus::kLost) observer_.OnSuspect(*this);
  if (manner == Manner::kForeground) {
    processes_.erase(feed->handle());
    co_await ReleaseTask(feed->handle());
  } else {
    ForgetOldest();
  }
}

Task<void> Session::ReleaseTask(uint32_t handle) {
  // The sandbox forgets all of them at its end, so a failure leaves nothing.
  (void)co_await sandbox_->Release(handle);
}

void Session::ForgetOldest() {
  size_t ended = 0;
  for (const auto& [handle, entry] : processes_)
    if (entry.manner == Manner::kDetached && entry.feed->outcome()) ++ended;
  for (auto at = processes_.begin(); at != processes_.end() && ended > kEndedKept;) {
    if (at->second.manner == Manner::kForeground || !at->second.feed->outcome()) {
      ++at;
      continue;
    }
    tasks_.Spawn(ReleaseTask(at->first));
    at = processes_.erase(at);
    --ended;
  }
}

void Session::Kill(std::shared_ptr<ProcessFeed> process) {
  tasks_.Spawn(KillTask(std::move(process)));
}

Task<void> Session::KillTask(std::shared_ptr<ProcessFeed> feed) {
  // One that has ended, or whose sandbox has, needs no killing.
  (void)co_await feed->Signal(SIGKILL, SignalScope::kTree);
}

Task<void> Session::FeedTask(std::shared_ptr<ProcessFeed> feed, std::string input) {
  // A command that closes its stdin early has read what it wanted.
  if (co_await feed->Write(std::move(input))) (void)co_await feed->CloseStdin();
}

void Session::NoteFailure(const Error& error) {
  if (error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kGone ||
      error.code() == ErrorCode::kProtocol)
    observer_.OnSuspect(*this);
}

Task<Result<std::shared_ptr<ProcessFeed>>> Session::Start(ExecSpec spec) {
  spec.on_overflow = OnOverflow::kDropOldest;
  CAISSON_CO_ASSIGN(auto starting, co_await Launch(std::move(spec), Manner::kDetached));
  co_return std::move(starting->feed);
}

Task<Result<std::unique_ptr<ForegroundExec>>> Session::StartForeground(ExecRequest request) {
  ExecSpec& spec = request.spec;
  spec.on_overflow = OnOverflow::kBlock;
  if (!request.input.empty()) spec.stdin_kind = StdinKind::kOpen;
  CAISSON_CO_ASSIGN(auto starting, co_await Launch(std::move(spec), Manner::kForeground));
  if (!request.input.empty()) tasks_.Spawn(FeedTask(starting->feed, std::move(request.input)));
  co_return std::make_unique<ForegroundExec>(shared_from_this(), std::move(starting->feed),
                                             std::move(starting->output));
}

Task<Result<ExecReport>> Session::Exec(ExecRequest request) {
  const size_t cap = request.output_cap;
  std::vector<std::string> artifacts = std::move(request.artifacts);
  CAISSON_CO_ASSIGN(auto running, co_await StartForeground(std::move(request)));
  ExecReport report;
  report.process = running->process().handle();
  report.started = running->process().facts().started;
  while (auto item = co_await running->Next()) {
    if (auto* chunk = std::get_if<OutputChunk>(&*item)) {
      const bool out = chunk->stream == Stream::kStdout;
      std::string& text = out ? report.out : report.err;
      const size_t room = std::min(cap - text.size(), chunk->data.size());
      text.append(chunk->data, 0, room);
      (out ? report.out_omitted : report.err_omitted) += chunk->data.size() - room;
    } else if (auto* gap = std::get_if<OutputGap>(&*item)) {
      (gap->stream == Stream::kStdout ? report.out_omitted : report.err_omitted) +=
          gap->to - gap->from;
    } else {
      report.outcome = std::get<ExecOutcome>(*std::move(item));
    }
  }
  if (!artifacts.empty() && record_.state == SessionState::kRunning) {
    CAISSON_CO_ASSIGN(report.artifacts, co_await observer_.Keep(this, std::move(artifacts)));
  }
  co_return report;
}

std::vector<std::shared_ptr<ProcessFeed>> Session::Processes() const {
  std::vector<std::shared_ptr<ProcessFeed>> feeds;
  for (const auto& [handle, entry] : processes_) feeds.push_back(entry.feed);
  return feeds;
}

Result<std::shared_ptr<ProcessFeed>> Session::FindProcess(uint32_t handle) const {
  const auto found = processes_.find(handle);
  if (found != processes_.end()) return found->second.feed;
  return Error(ErrorCode::kNotFound, fmt::format("no process {} in session {}", handle, id()))
      .WithRemedy("list the session's processes");
}

Task<Status> Session::Release(uint32_t handle) {
  CAISSON_CO_TRY(MustBeRunning());
  CAISSON_CO_ASSIGN(auto feed, FindProcess(handle));
  if (!feed->outcome())
    co_return Error(ErrorCode::kConflict, fmt::format("process {} still runs", handle))
        .WithRemedy("end it with a signal first");
  processes_.erase(handle);
  co_return co_await sandbox_->Release(handle);
}

Result<Files*> Session::files() {
  CAISSON_TRY(MustBeRunning());
  return &sandbox_->files();
}

Task<Result<SandboxStats>> Session::Stats() {
  if (record_.state != SessionState::kPaused) CAISSON_CO_TRY(MustBeRunning());
  auto stats = co_await sandbox_->Stats();
  if (!stats) NoteFailure(stats.error());
  co_return stats;
}

Task<Status> Session::AdoptProcesses() {
  CAISSON_CO_ASSIGN(auto infos, co_await sandbox_->Processes());
  for (auto& info : infos) {
    auto attached = co_await sandbox_->Attach(info.handle, info.stdout_begin, info.stderr_begin);
    if (!attached) co_return std::move(attached).error();
    const auto started = WallTime(std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::nanoseconds(info.started_ns)));
    const bool known = info.ended && co_await observer_.EndIsKnown(this, info.handle);
    ProcessFacts facts{std::move(info.command), std::move(info.label), Stdio::kPipes, started};
    facts.origin = ProcessOrigin::kAdopted;
    auto feed = std::make_shared<ProcessFeed>(loop_, *std::move(attached), std::move(facts));
    // Whoever waited for it has gone with the former server; its output is there for the next.
    processes_[feed->handle()] = {feed, Manner::kDetached};
    observer_.OnProcess(*this, feed);
    feed->Start();
    Follow(feed, Manner::kDetached, known ? Ending::kKnown : Ending::kAnnounced);
  }
  co_return Status();
}

}  // namespace caisson::sandbox
