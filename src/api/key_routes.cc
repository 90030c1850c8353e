// /api/keys: make, list, rotate and revoke API keys.
//
// A key's secret is in the answer that makes it and nowhere else: not in the log, not in the audit
// log, not in an error. What is answered is on the disk.
#include "api/allowances.h"
#include "api/call.h"
#include "api/configured_gate.h"
#include "api/delegation.h"
#include "api/key_limits.h"
#include "api/routes.h"
#include "api/services.h"
#include "api/time_text.h"
#include "auth/keys.h"
#include "base/crash_point.h"
#include "base/text.h"

namespace caisson::api {
namespace {

using auth::Resource;
using auth::Verb;

constexpr int64_t kMaxDays = 3650;
constexpr std::chrono::nanoseconds kMaxLife = std::chrono::hours(24 * kMaxDays);

std::string_view StateOf(const store::KeyRecord& key) {
  if (key.revoked_ms) return "revoked";
  if (key.expires_ms && *key.expires_ms <= NowMs()) return "expired";
  return "active";
}

json::Array ScopesOf(std::string_view scopes) {
  json::Array list;
  while (!scopes.empty()) {
    const size_t end = std::min(scopes.find(' '), scopes.size());
    if (end > 0) list.push_back(json::String(scopes.substr(0, end)));
    scopes.remove_prefix(std::min(end + 1, scopes.size()));
  }
  return list;
}

json::Object ToJson(const store::KeyRecord& key) {
  auto limits = json::Parse(key.limits);
  return {{"id", key.id},
          {"name", key.name},
          {"tenant", key.tenant},
          {"role", key.role},
          {"scopes", ScopesOf(key.scopes)},
          {"limits", limits ? *std::move(limits) : json::Value(json::Object())},
          {"state", StateOf(key)},
          {"created_by", key.created_by},
          {"created_at", TimeText(key.created_ms)},
          {"expires_at", TimeOrNull(key.expires_ms)},
          {"rotated_at", TimeOrNull(key.rotated_ms)},
          {"last_used_at", TimeOrNull(key.last_used_ms)},
          {"revoked_at", TimeOrNull(key.revoked_ms)}};
}

Reply Issued(int status, const auth::IssuedKey& issued) {
  json::Object answer = ToJson(issued.record);
  answer["key"] = issued.key;
  return net::Response::Json(status, json::Write(answer))
      .WithHeader("Cache-Control", "no-store")
      .WithHeader("Location", "/api/keys/" + issued.record.id);
}

bool Sees(const auth::Principal& principal, const store::KeyRecord& key) {
  return auth::ReachOf(principal.role) == auth::Reach::kAll || key.tenant == principal.tenant;
}

// The key that the path names. kNotFound when there is none that the caller may see.
Result<store::KeyRecord> KeyOf(Call* call) {
  const std::string& id = call->Param("id");
  auto key = call->services().keys.Find(id);
  if (!key || !Sees(call->principal(), *key))
    return Error(ErrorCode::kNotFound, "there is no key " + Quoted(id))
        .WithRemedy("list the keys with GET /api/keys");
  return *std::move(key);
}

Result<auth::Principal> PrincipalOf(const store::KeyRecord& key) {
  auth::Principal principal;
  principal.tenant = key.tenant;
  CAISSON_ASSIGN(principal.role, auth::RoleFrom(key.role));
  CAISSON_ASSIGN(principal.scopes, auth::ParseScopes(key.scopes));
  return principal;
}

bool IsTenantName(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("-_.").contains(c);
  });
}

Result<auth::NewKey> ReadNewKey(const json::Value& body, const auth::Principal& caller) {
  auth::NewKey key;
  json::Reader in(body);
  key.name = in.Required<std::string>("name", {.min = 1, .max = 128});
  const auto role = in.Required<std::string>("role");
  key.tenant = in.Optional<std::string>("tenant", {.min = 1, .max = 64}).value_or(caller.tenant);
  const auto scopes = in.OptionalList<std::string>("scopes", {.min = 1, .max = 64});
  const auto life =
      in.OptionalDuration("expires_in", {.min = std::chrono::seconds(1), .max = kMaxLife});
  in.OptionalObject("limits", [&key](json::Reader& limits) {
    key.limits = json::Write(ToJson(ReadKeyLimits(limits)));
  });
  CAISSON_TRY(in.Finish());
  if (!IsTenantName(key.tenant))
    return Error(ErrorCode::kInvalidArgument, "tenant: " + Quoted(key.tenant) + " is no name")
        .WithRemedy("use letters, digits, '-', '_' and '.'");
  CAISSON_ASSIGN(key.role, auth::RoleFrom(role));
  if (scopes) {
    std::string text;
    for (const std::string& scope : *scopes) text += scope + " ";
    CAISSON_ASSIGN(key.scopes, auth::ParseScopes(text));
  }
  if (life)
    key.expires_ms = NowMs() + std::chrono::duration_cast<std::chrono::milliseconds>(*life).count();
  key.created_by = caller.key_id;
  return key;
}

Task<Result<Reply>> CreateKey(Call* call) {
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  CAISSON_CO_ASSIGN(auth::NewKey key, ReadNewKey(body, call->principal()));
  auth::Principal holder;
  holder.tenant = key.tenant;
  holder.role = key.role;
  holder.scopes = key.scopes;
  CAISSON_CO_TRY(CheckDelegation(call->principal(), holder));
  CAISSON_CO_ASSIGN(const auto issued, co_await call->services().keys.Create(std::move(key)));
  CrashPoint("key.recorded");
  CAISSON_CO_TRY(call->services().allowances.Apply(issued.record));
  co_return Issued(201, issued);
}

Task<Result<Reply>> ListKeys(Call* call) {
  json::Array keys;
  for (const auto& key : call->services().keys.List())
    if (Sees(call->principal(), key)) keys.push_back(ToJson(key));
  co_return Reply::Json(200, json::Object{{"keys", std::move(keys)}});
}

Task<Result<Reply>> GetKey(Call* call) {
  CAISSON_CO_ASSIGN(const auto key, KeyOf(call));
  co_return Reply::Json(200, ToJson(key));
}

// Whoever gets a key's new secret has its rights.
Task<Result<Reply>> RotateKey(Call* call) {
  CAISSON_CO_ASSIGN(const auto key, KeyOf(call));
  CAISSON_CO_ASSIGN(const auto holder, PrincipalOf(key));
  CAISSON_CO_TRY(CheckDelegation(call->principal(), holder));
  CAISSON_CO_ASSIGN(const auto issued, co_await call->services().keys.Rotate(key.id));
  co_return Issued(200, issued);
}

Task<Result<Reply>> FinishRotation(Call* call) {
  CAISSON_CO_ASSIGN(const auto key, KeyOf(call));
  CAISSON_CO_TRY(co_await call->services().keys.FinishRotation(key.id));
  co_return Reply::Nothing();
}

Task<Result<Reply>> RevokeKey(Call* call) {
  CAISSON_CO_ASSIGN(const auto key, KeyOf(call));
  CAISSON_CO_TRY(co_await call->services().keys.Revoke(key.id));
  co_return Reply::Nothing();
}

}  // namespace

void AddKeyRoutes(std::vector<Route>& routes) {
  const auto add = [&](Route route) { routes.push_back(std::move(route)); };
  add({.method = "POST",
       .pattern = "/api/keys",
       .permission = {Verb::kCreate, Resource::kKeys},
       .handler = CreateKey,
       .id = "createKey",
       .group = "keys",
       .summary = "Make an API key; this answer alone shows it",
       .request = "KeyCreate",
       .outcomes = {{201, "IssuedKey"}},
       .audited = Audited::kAlways});
  add({.method = "GET",
       .pattern = "/api/keys",
       .permission = {Verb::kRead, Resource::kKeys},
       .handler = ListKeys,
       .id = "listKeys",
       .group = "keys",
       .summary = "All keys, revoked and expired ones too, oldest first",
       .outcomes = {{200, "KeyList"}}});
  add({.method = "GET",
       .pattern = "/api/keys/{id}",
       .permission = {Verb::kRead, Resource::kKeys},
       .handler = GetKey,
       .id = "getKey",
       .group = "keys",
       .summary = "One key, without its secret",
       .outcomes = {{200, "Key"}}});
  add({.method = "DELETE",
       .pattern = "/api/keys/{id}",
       .permission = {Verb::kDelete, Resource::kKeys},
       .handler = RevokeKey,
       .id = "revokeKey",
       .group = "keys",
       .summary = "Revoke a key for good; its open streams end",
       .outcomes = {{204, ""}},
       .audited = Audited::kAlways});
  add({.method = "POST",
       .pattern = "/api/keys/{id}/rotate",
       .permission = {Verb::kUpdate, Resource::kKeys},
       .handler = RotateKey,
       .id = "rotateKey",
       .group = "keys",
       .summary = "Give a key a second secret; the old one goes on for a day",
       .outcomes = {{200, "IssuedKey"}},
       .audited = Audited::kAlways});
  add({.method = "POST",
       .pattern = "/api/keys/{id}/rotate/finish",
       .permission = {Verb::kUpdate, Resource::kKeys},
       .handler = FinishRotation,
       .id = "finishKeyRotation",
       .group = "keys",
       .summary = "End the old secret of a key that is being rotated, now",
       .outcomes = {{204, ""}},
       .audited = Audited::kAlways});
}

}  // namespace caisson::api
