// /api/sessions/{id}/tokens: tokens for one sandbox, to be handed to what runs there or beside it.
#include "api/authenticator.h"
#include "api/call.h"
#include "api/delegation.h"
#include "api/routes.h"
#include "api/services.h"
#include "api/session_json.h"

namespace caisson::api {
namespace {

constexpr std::chrono::hours kMaxLife{24};
constexpr std::chrono::hours kUsualLife{1};

Task<Result<Reply>> CreateToken(Call* call) {
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  json::Reader in(body);
  const auto life =
      in.OptionalDuration("expires_in", {.min = std::chrono::seconds(1), .max = kMaxLife});
  CAISSON_CO_TRY(in.Finish());
  CAISSON_CO_ASSIGN(const auto session,
                    co_await call->services().sessions.Get(call->access(), call->Param("id")));
  const sandbox::WallTime expires =
      sandbox::SystemTime() +
      std::chrono::duration_cast<std::chrono::milliseconds>(life.value_or(kUsualLife));
  const auth::SessionGrant grant{.session_id = session->id(),
                                 .tenant = session->record().owner.tenant,
                                 .generation = kSandboxGeneration,
                                 .expires_ms = expires.time_since_epoch().count()};
  CAISSON_CO_TRY(CheckDelegation(call->principal(), auth::PrincipalOf(grant)));
  const json::Object answer{{"token", call->services().tokens.Issue(grant)},
                            {"session_id", grant.session_id},
                            {"expires_at", ToText(expires)}};
  co_return net::Response::Json(201, json::Write(answer)).WithHeader("Cache-Control", "no-store");
}

}  // namespace

void AddTokenRoutes(std::vector<Route>& routes) {
  // Whoever may make sessions may hand one on. A token may not: it makes no further ones.
  routes.push_back({.method = "POST",
                    .pattern = "/api/sessions/{id}/tokens",
                    .permission = {auth::Verb::kCreate, auth::Resource::kSessions},
                    .handler = CreateToken,
                    .id = "createToken",
                    .group = "sessions",
                    .summary = "A token for this session and nothing else",
                    .request = "TokenCreate",
                    .outcomes = {{201, "Token"}},
                    .audited = Audited::kAlways});
}

}  // namespace caisson::api
