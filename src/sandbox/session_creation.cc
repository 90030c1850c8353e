// The part of the SessionManager that makes sessions: admission, intent, sandbox, record.
#include "sandbox/session_creation.h"

#include <fmt/core.h>

#include <algorithm>

#include "async/race.h"
#include "base/crash_point.h"
#include "sandbox/ids.h"

namespace caisson::sandbox {
namespace {

// What of the limits asked for a prepared sandbox does not have yet.
Limits LiveLimits(const SessionSpec& spec) {
  Limits limits = spec.limits;
  limits.wall_time.reset();  // given with every command
  limits.output_bytes.reset();
  return limits;
}
bool Any(const Limits& limits) {
  return limits.memory_bytes || limits.swap_bytes || limits.cpu_millis || limits.pids ||
         limits.disk_bytes || limits.disk_inodes || limits.open_files || limits.io_read_bps ||
         limits.io_write_bps || limits.io_read_iops || limits.io_write_iops ||
         limits.memory_bandwidth_percent;
}

// The server's own defaults, where the request leaves the choice.
void AddDefaults(SessionSpec& spec, const ManagerOptions& options) {
  if (spec.profile != Profile::kDefault) return;
  if (!spec.limits.memory_bytes) spec.limits.memory_bytes = options.default_memory_bytes;
  if (!spec.limits.cpu_millis) spec.limits.cpu_millis = options.default_cpu_millis;
}

// A limit that scales begins between its bounds.
void BeginWithinBounds(SessionSpec& spec) {
  const DefaultLimits limits = EffectiveLimits(spec);
  const ScalingSpec& s = spec.scaling;
  if (s.memory_ceiling != 0)
    spec.limits.memory_bytes = std::clamp(limits.memory_bytes, s.memory_floor, s.memory_ceiling);
  if (s.cpu_ceiling != 0)
    spec.limits.cpu_millis = std::clamp(limits.cpu_millis, s.cpu_floor, s.cpu_ceiling);
}

Error StoppedWhileMade(const Session& session) {
  return {ErrorCode::kGone,
          fmt::format("session {} was destroyed while it was made", session.id())};
}

}  // namespace

// Somebody who waits for a creation. When the last of them goes without having taken the session,
// and no key lets them come back for it, the session goes too.
class SessionManager::Waiting {
 public:
  Waiting(SessionManager& manager, std::shared_ptr<Creation> creation)
      : manager_(manager), creation_(std::move(creation)) {
    ++creation_->waiting;
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    if (--creation_->waiting == 0 && creation_->result) manager_.Abandon(*creation_);
  }
  Result<std::shared_ptr<Session>> Take() {
    creation_->taken = true;
    return *creation_->result;
  }

 private:
  SessionManager& manager_;
  std::shared_ptr<Creation> creation_;
};

void SessionManager::Abandon(const Creation& creation) {
  if (creation.taken || creation.key || !creation.result->has_value()) return;
  tasks_.Spawn([](SessionManager* self, std::shared_ptr<Session> session) -> Task<void> {
    (void)co_await self->DestroyWork(std::move(session),
                                     "whoever asked for it left before it was made");
  }(this, **creation.result));
}

// The creation that this request begins, or the one under way that it is a repetition of.
Result<std::shared_ptr<SessionManager::Creation>> SessionManager::Enter(Owner owner,
                                                                        SessionSpec spec) {
  if (closing_)
    return Error(ErrorCode::kUnavailable, "the server is shutting down")
        .WithRemedy("try again soon");
  CAISSON_TRY(CheckSpec(spec));
  if (spec.provider.empty()) spec.provider = options_.default_provider;
  Provider* provider = FindProvider(spec.provider);
  if (provider == nullptr)
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("there is no provider \"{}\" here", spec.provider))
        .WithRemedy("leave it away, or name one that the server was started with");
  if (spec.profile == Profile::kStrict && !provider->capabilities().strict_profile)
    return Error(ErrorCode::kUnsupported,
                 fmt::format("the provider {} has no strict profile", spec.provider));
  CAISSON_TRY(CheckIsolation(provider->capabilities().isolation,
                             std::max(spec.min_isolation, options_.min_isolation)));
  AddDefaults(spec, options_);
  BeginWithinBounds(spec);
  std::optional<IdempotentCreate> key;
  if (!spec.idempotency_key.empty()) {
    key = IdempotentCreate{owner.tenant, spec.idempotency_key, DigestOf(spec)};
    const auto same = creations_.find({key->tenant, key->key});
    if (same != creations_.end()) {
      if (same->second->key->digest == key->digest) return same->second;
      return Error(ErrorCode::kConflict, "the idempotency key was used for another request")
          .WithRemedy("use a new key for a new request");
    }
  }
  auto creation = std::make_shared<Creation>(parts_.loop, std::move(owner), std::move(spec),
                                             *provider, std::move(key));
  if (creation->key) creations_[{creation->key->tenant, creation->key->key}] = creation;
  ++creating_;
  tasks_.Spawn(CreationTask(creation));
  return creation;
}

Task<Result<std::shared_ptr<Session>>> SessionManager::Create(Owner owner, SessionSpec spec) {
  CAISSON_CO_ASSIGN(auto creation, Enter(std::move(owner), std::move(spec)));
  Waiting waiting(*this, creation);
  co_await creation->done.Wait();
  co_return waiting.Take();
}

Task<void> SessionManager::CreationTask(std::shared_ptr<Creation> creation) {
  // Enter gives the creation out before anything ends it.
  co_await parts_.loop.Yield();
  creation->result = co_await Make(creation.get());
  --creating_;
  if (creation->key) creations_.erase({creation->key->tenant, creation->key->key});
  creation->done.Set();
  if (creation->waiting == 0) Abandon(*creation);
}

Task<Result<std::shared_ptr<Session>>> SessionManager::Make(Creation* creation) {
  const Owner& owner = creation->owner;
  const SessionSpec& spec = creation->spec;
  if (creation->key) {
    CAISSON_CO_ASSIGN(auto known, co_await parts_.journal.FindIdempotent(*creation->key));
    if (known) {
      // One that failed was never anybody's; its record gives the key back.
      CAISSON_CO_ASSIGN(const auto record, co_await Describe({owner.tenant}, *known));
      if (record.state != SessionState::kFailed) co_return co_await Get({owner.tenant}, *known);
    }
  }
  if (table_.HasName(owner.tenant, spec.name))
    co_return Error(ErrorCode::kConflict,
                    fmt::format("a session with the name {} lives already", spec.name))
        .WithRemedy("choose another name, or destroy that one");
  CAISSON_CO_ASSIGN(auto lease, co_await parts_.admission.Admit(owner, DemandOf(spec), spec.queue));
  if (table_.HasName(owner.tenant, spec.name))
    co_return Error(ErrorCode::kConflict,
                    fmt::format("a session with the name {} lives already", spec.name))
        .WithRemedy("choose another name, or destroy that one");
  SessionRecord record;
  record.id = NewId();
  record.owner = owner;
  record.provider = spec.provider;
  record.sandbox_id = record.id;
  record.boot_id = options_.boot_id;
  record.spec = spec;
  record.created = record.updated = parts_.clock();
  auto session = std::make_shared<Session>(parts_.loop, parts_.events, parts_.clock,
                                           static_cast<SessionObserver&>(*this), record);
  table_.Add(session, std::move(lease));
  CrashPoint("create.admitted");
  session->Publish(EventKind::kSessionCreated, {{"environment", spec.environment}});
  std::unique_ptr<Sandbox> warm;
  if (parts_.warm != nullptr && spec.warm == WarmUse::kWhenReady)
    warm = parts_.warm->Claim(creation->provider, spec);
  if (warm) co_return co_await MakeWarm(creation, std::move(session), std::move(warm));
  co_return co_await MakeCold(creation, std::move(session));
}

// A prepared sandbox needs one record only: nothing has to be made after it.
Task<Result<std::shared_ptr<Session>>> SessionManager::MakeWarm(Creation* creation,
                                                                std::shared_ptr<Session> session,
                                                                std::unique_ptr<Sandbox> sandbox) {
  const Limits limits = LiveLimits(creation->spec);
  Provider& provider = creation->provider;
  if (Any(limits)) {
    auto updated =
        co_await async::WithTimeout(&parts_.loop, options_.call_time, sandbox->Update(limits));
    if (!updated || !*updated) {
      // Whether it can be done at all, a sandbox made for it will tell.
      const std::string id = sandbox->id();
      sandbox.reset();
      ender_.Sweep(provider, id);
      co_return co_await MakeCold(creation, std::move(session));
    }
  }
  session->SetSandbox(std::move(sandbox));
  session->SetTimeout(creation->spec.timeout);
  SessionRecord running = session->record();
  running.state = SessionState::kRunning;
  CrashPoint("create_warm.claimed");
  if (auto written = co_await parts_.journal.Insert(std::move(running), creation->key); !written) {
    ender_.Sweep(provider, session->record().sandbox_id);
    (void)session->MoveTo(SessionState::kFailed, written.error().message());
    table_.Remove(*session);
    co_return std::move(written).error();
  }
  CrashPoint("create_warm.recorded");
  co_return co_await Announce(creation, std::move(session));
}

Task<Result<std::shared_ptr<Session>>> SessionManager::MakeCold(Creation* creation,
                                                                std::shared_ptr<Session> session) {
  Provider& provider = creation->provider;
  session->mutable_record().sandbox_id = session->id();
  if (auto intent = co_await parts_.journal.Insert(session->record(), creation->key); !intent) {
    // Nothing has happened yet, and nothing remembers it.
    (void)session->MoveTo(SessionState::kFailed, intent.error().message());
    table_.Remove(*session);
    co_return std::move(intent).error();
  }
  CrashPoint("create.intended");
  auto made = co_await async::WithTimeout(&parts_.loop, options_.create_time,
                                          provider.Create(ToSandboxSpec(session->record())));
  if (!made)
    co_return Undo(
        session, &provider,
        Error(ErrorCode::kDeadlineExceeded,
              fmt::format("the provider {} did not make the sandbox in time", provider.name()))
            .WithRemedy("try again; see the server's health if it persists"));
  if (!*made) {
    Error error = std::move(*made).error();
    // What the provider does not find is what the request names.
    if (error.code() == ErrorCode::kNotFound)
      error = std::move(error).WithCode(ErrorCode::kInvalidArgument);
    co_return Undo(session, nullptr, std::move(error));
  }
  CrashPoint("create.made");
  session->SetSandbox(**std::move(made));
  session->SetTimeout(creation->spec.timeout);
  SessionRecord running = session->record();
  running.state = SessionState::kRunning;
  if (session->state() == SessionState::kCreating) {
    if (auto written = co_await parts_.journal.Save(std::move(running)); !written)
      co_return Undo(session, &provider, std::move(written).error());
  }
  CrashPoint("create.recorded");
  if (parts_.warm != nullptr) parts_.warm->Made(provider, creation->spec);
  co_return co_await Announce(creation, std::move(session));
}

Task<Result<std::shared_ptr<Session>>> SessionManager::Announce(Creation* creation,
                                                                std::shared_ptr<Session> session) {
  if (!session->MoveTo(SessionState::kRunning, "")) {
    // Somebody destroyed it meanwhile; its end begins only now that there is something to end.
    (void)co_await parts_.journal.Save(session->record());
    ender_.End(session, creation->provider);
    co_return StoppedWhileMade(*session);
  }
  if (session->sandbox()->gone()) {
    // It was lost between its making and now, when nobody looked.
    ender_.Conclude(session, nullptr, SessionState::kLost, "its sandbox ended as it was made");
    co_return Error(ErrorCode::kUnavailable, "the sandbox ended as soon as it was made")
        .WithRemedy("try again");
  }
  if (auto* lease = table_.LeaseOf(session->id())) lease->Made();
  NoteDeadline(*session);
  co_return session;
}

// The session could not be made: says so in its record, and leaves nothing behind.
Error SessionManager::Undo(std::shared_ptr<Session> session, Provider* provider, Error error) {
  const bool stopping = session->state() == SessionState::kStopping;
  ender_.Conclude(std::move(session), provider,
                  stopping ? SessionState::kDestroyed : SessionState::kFailed,
                  stopping ? std::string() : error.message());
  return error;
}

SandboxSpec SessionManager::ToSandboxSpec(const SessionRecord& record) const {
  SandboxSpec spec;
  spec.id = record.sandbox_id;
  const auto alias = options_.environments.find(record.spec.environment);
  spec.environment = alias != options_.environments.end() ? alias->second : record.spec.environment;
  spec.profile = record.spec.profile;
  spec.user = record.spec.user;
  spec.env = record.spec.env;
  spec.limits = record.spec.limits;
  return spec;
}

}  // namespace caisson::sandbox
