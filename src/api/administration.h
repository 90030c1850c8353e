// Administration: the part of a server that is about its callers: keys, tokens, the gate, shares,
// usage, webhooks, alerts. Owns each of them and wires them to one another; cli/serve makes one.
//
// In two steps, since sessions need the quotas and the rest needs the sessions: Create, then Begin.
// Belongs to one Loop's thread; what it is given outlives it.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/alert_watch.h"
#include "api/allowances.h"
#include "api/authenticator.h"
#include "api/configured_gate.h"
#include "api/open_streams.h"
#include "api/usage_recorder.h"
#include "api/webhook_sender.h"
#include "async/task_set.h"
#include "auth/browser_guard.h"
#include "auth/jwt.h"
#include "auth/keys.h"
#include "auth/session_token.h"
#include "net/fetch.h"

namespace caisson::api {

class Administration {
 public:
  struct Parts {
    async::Loop& loop;
    log::Logger log;
    sandbox::EventBus& events;
    store::Store& store;
    const telemetry::Registry& metrics;
  };
  struct Options {
    ConfiguredGate::Mode mode = ConfiguredGate::Mode::kCredentials;
    uid_t own_uid = 0;
    auth::BrowserGuardConfig browser;
    std::vector<auth::JwtIssuer> issuers;
    Allowances::Defaults allowances;
    net::AddressPolicy webhook_addresses = net::PublicAddressesOnly;
    WebhookSender::Options webhooks;
  };

  // Errors name what of the options cannot be used, or are the store's.
  static Task<Result<std::unique_ptr<Administration>>> Create(Parts parts, Options options);

  // Begins to count, to send and to watch. To be called before sessions.Start, so that nothing of
  // what it finds goes by unseen; `sessions` outlives this.
  Task<Status> Begin(sandbox::SessionManager* sessions, std::vector<telemetry::AlertRule> rules);
  // Writes down what is only in memory, and asks nothing of the sessions any more.
  Task<Status> Close();

  // A key for the first admin, when there is no key at all yet.
  Task<Result<std::optional<auth::IssuedKey>>> MakeFirstKey();

  Gate& gate() { return *gate_; }
  sandbox::Quotas& quotas() { return allowances_; }
  auth::KeyRing& keys() { return *keys_; }
  const auth::SessionTokens& tokens() const { return tokens_; }
  Allowances& allowances() { return allowances_; }
  OpenStreams& streams() { return streams_; }
  UsageRecorder& usage() { return *usage_; }  // after Begin
  WebhookSender& webhooks() { return webhooks_; }
  AlertWatch& alerts() { return *alerts_; }  // after Begin

 private:
  Administration(Parts parts, Options options, auth::SessionTokens tokens);
  Status MakeGate();
  Task<void> SaveUsesTask();

  Parts parts_;
  Options options_;
  auth::SessionTokens tokens_;
  OpenStreams streams_;
  Allowances allowances_;
  std::unique_ptr<auth::KeyRing> keys_;
  std::vector<std::unique_ptr<Authenticator>> authenticators_;
  std::unique_ptr<ConfiguredGate> gate_;
  net::Fetcher fetcher_;
  WebhookSender webhooks_;
  std::unique_ptr<UsageRecorder> usage_;
  std::unique_ptr<AlertWatch> alerts_;
  async::TaskSet tasks_;
};

}  // namespace caisson::api
