#include "api/administration.h"

#include <utility>

#include "api/time_text.h"
#include "auth/crypto.h"

namespace caisson::api {
namespace {

constexpr const char* kMasterSecret = "master.secret";
constexpr unsigned kFetchThreads = 4;
constexpr std::chrono::seconds kSaveUses{30};

}  // namespace

Administration::Administration(Parts parts, Options options, auth::SessionTokens tokens)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      tokens_(std::move(tokens)),
      streams_(parts_.loop),
      allowances_(options_.allowances),
      fetcher_(parts_.loop, options_.webhook_addresses, kFetchThreads),
      webhooks_(
          {.loop = parts_.loop,
           .log = parts_.log,
           .events = parts_.events,
           .store = parts_.store,
           .post =
               [this](net::FetchRequest request) { return fetcher_.Fetch(std::move(request)); }},
          options_.webhooks),
      tasks_(parts_.loop) {}

Task<Result<std::unique_ptr<Administration>>> Administration::Create(Parts parts, Options options) {
  CAISSON_CO_ASSIGN(const std::string master,
                    auth::LoadOrMakeSecret(parts.store.data_dir(), kMasterSecret));
  std::unique_ptr<Administration> made(
      new Administration(std::move(parts), std::move(options), auth::SessionTokens(master)));
  CAISSON_CO_ASSIGN(
      made->keys_,
      co_await auth::KeyRing::Load(
          &made->parts_.store, {.now_ms = NowMs, .on_revoked = [self = made.get()](const auto& id) {
                                  self->streams_.End(id);
                                  self->allowances_.Forget(id);
                                }}));
  for (const store::KeyRecord& key : made->keys_->List())
    if (const auto applied = made->allowances_.Apply(key); !applied)
      made->parts_.log.Error("a key is held to nothing but its least", applied.error());
  CAISSON_CO_TRY(made->MakeGate());
  co_return std::move(made);
}

Status Administration::MakeGate() {
  CAISSON_ASSIGN(auth::BrowserGuard guard, auth::BrowserGuard::Create(options_.browser));
  authenticators_.push_back(std::make_unique<KeyAuthenticator>(*keys_));
  authenticators_.push_back(std::make_unique<TokenAuthenticator>(tokens_, NowMs));
  if (!options_.issuers.empty()) {
    CAISSON_ASSIGN(auto verifier, auth::JwtVerifier::Create(options_.issuers));
    authenticators_.push_back(std::make_unique<JwtAuthenticator>(std::move(verifier), NowMs));
  }
  std::vector<Authenticator*> known;
  for (const auto& authenticator : authenticators_) known.push_back(authenticator.get());
  ConfiguredGate::Options options{.mode = options_.mode,
                                  .own_uid = options_.own_uid,
                                  .on_call = [this](const auth::Principal& principal) {
                                    if (usage_ != nullptr) usage_->CountRequest(principal);
                                  }};
  gate_ = std::make_unique<ConfiguredGate>(std::move(options), std::move(guard), std::move(known),
                                           allowances_);
  return {};
}

Task<Status> Administration::Begin(sandbox::SessionManager* sessions,
                                   std::vector<telemetry::AlertRule> rules) {
  usage_ = std::make_unique<UsageRecorder>(UsageRecorder::Parts{.loop = parts_.loop,
                                                                .log = parts_.log,
                                                                .events = parts_.events,
                                                                .sessions = *sessions,
                                                                .store = parts_.store});
  alerts_ = std::make_unique<AlertWatch>(
      AlertWatch::Parts{
          .loop = parts_.loop,
          .log = parts_.log,
          .events = parts_.events,
          .metrics = parts_.metrics,
          .post = [this](net::FetchRequest request) { return fetcher_.Fetch(std::move(request)); }},
      std::move(rules));
  CAISSON_CO_TRY(co_await webhooks_.Start());
  tasks_.Spawn(SaveUsesTask());
  co_return Status();
}

Task<void> Administration::SaveUsesTask() {
  for (;;) {
    co_await parts_.loop.Sleep(kSaveUses);
    if (const auto saved = co_await keys_->SaveUses(); !saved)
      parts_.log.Warn("the times of keys' last use were not written", saved.error());
  }
}

Task<Status> Administration::Close() {
  auto saved = co_await keys_->SaveUses();
  if (usage_ != nullptr) {
    usage_->Stop();
    CAISSON_CO_TRY(co_await usage_->Flush());
  }
  co_return saved;
}

Task<Result<std::optional<auth::IssuedKey>>> Administration::MakeFirstKey() {
  if (!keys_->List().empty()) co_return std::optional<auth::IssuedKey>();
  auth::NewKey key;
  key.name = "first admin";
  key.tenant = kDefaultTenant;
  key.role = auth::Role::kAdmin;
  key.created_by = "server";
  CAISSON_CO_ASSIGN(auto issued, co_await keys_->Create(std::move(key)));
  CAISSON_CO_TRY(allowances_.Apply(issued.record));
  co_return std::optional<auth::IssuedKey>(std::move(issued));
}

}  // namespace caisson::api
