// /api/webhooks: targets that are told what happens, and what became of each delivery.
//
// The secret that signs deliveries is in the answer that makes the webhook and nowhere else.
#include <algorithm>
#include <charconv>

#include "api/call.h"
#include "api/routes.h"
#include "api/services.h"
#include "api/time_text.h"
#include "api/webhook_sender.h"
#include "base/random.h"
#include "base/text.h"
#include "net/url.h"

namespace caisson::api {
namespace {

using auth::Resource;
using auth::Verb;
using store::DeliveryRecord;
using store::WebhookRecord;

constexpr std::string_view kEveryTenant = "*";

bool SeesAll(const auth::Principal& principal) {
  return auth::ReachOf(principal.role) == auth::Reach::kAll;
}

json::Array TypesOf(std::string_view types) {
  json::Array list;
  while (!types.empty()) {
    const size_t end = std::min(types.find(' '), types.size());
    if (end > 0) list.push_back(json::String(types.substr(0, end)));
    types.remove_prefix(std::min(end + 1, types.size()));
  }
  return list;
}

json::Object ToJson(const WebhookRecord& webhook) {
  const bool every = webhook.tenant == kEveryTenant;
  return {{"id", webhook.id},
          {"tenant", every ? json::Value() : json::Value(webhook.tenant)},
          {"url", webhook.url},
          {"types", TypesOf(webhook.types)},
          {"active", webhook.status == WebhookRecord::Status::kActive},
          {"created_at", TimeText(webhook.created_ms)}};
}

json::Object ToJson(const DeliveryRecord& delivery) {
  auto event = json::Parse(delivery.body);
  const bool pending = delivery.state == store::DeliveryState::kPending;
  return {{"id", delivery.id},
          {"webhook_id", delivery.webhook_id},
          {"state", NameOf(delivery.state)},
          {"attempts", delivery.attempts},
          {"next_attempt_at", pending ? json::Value(TimeText(delivery.next_ms)) : json::Value()},
          {"last_error",
           delivery.last_error.empty() ? json::Value() : json::Value(delivery.last_error)},
          {"created_at", TimeText(delivery.created_ms)},
          {"ended_at", TimeOrNull(delivery.ended_ms)},
          {"event", event ? *std::move(event) : json::Value()}};
}

Status CheckUrl(const std::string& url) {
  CAISSON_ASSIGN(const net::Url parsed, net::ParseUrl(url));
  if (parsed.scheme == net::Url::Scheme::kUnix)
    return Error(ErrorCode::kInvalidArgument, "url: a webhook cannot go to a unix socket")
        .WithRemedy("give an address that begins with https:// or http://");
  return {};
}

// Blank-separated, each of them known.
Result<std::string> JoinTypes(const std::vector<std::string>& types) {
  std::string joined;
  for (const std::string& type : types) {
    if (!sandbox::EventKindFrom(type))
      return Error(ErrorCode::kInvalidArgument, "types: there is no event type " + Quoted(type))
          .WithRemedy("use such as session.running, exec.ended or alert, or leave types out");
    if (!joined.empty()) joined += ' ';
    joined += type;
  }
  return joined;
}

WebhookRecord::Status StatusOf(const std::optional<bool>& active) {
  return active.value_or(true) ? WebhookRecord::Status::kActive : WebhookRecord::Status::kPaused;
}

Result<WebhookRecord> ReadWebhook(const json::Value& body, const auth::Principal& caller) {
  WebhookRecord webhook;
  json::Reader in(body);
  webhook.url = in.Required<std::string>("url", {.min = 1, .max = 2048});
  const auto types = in.OptionalList<std::string>("types", {.max = 32});
  const auto secret = in.Optional<std::string>("secret", {.min = 16, .max = 256});
  webhook.status = StatusOf(in.Optional<bool>("active"));
  const bool every = in.Optional<bool>("every_tenant").value_or(false);
  CAISSON_TRY(in.Finish());
  CAISSON_TRY(CheckUrl(webhook.url));
  CAISSON_ASSIGN(webhook.types, JoinTypes(types.value_or(std::vector<std::string>())));
  if (every && !SeesAll(caller))
    return Error(ErrorCode::kPermissionDenied, "the events of every tenant are for admins")
        .WithRemedy("leave every_tenant out");
  webhook.id = "wh_" + RandomBase62(16);
  webhook.tenant = every ? std::string(kEveryTenant) : caller.tenant;
  webhook.secret = secret.value_or("whsec_" + RandomBase62(43));
  webhook.created_ms = NowMs();
  return webhook;
}

// The webhook that the path names. kNotFound when there is none that the caller may see.
Result<WebhookRecord> WebhookOf(Call* call) {
  const std::string& id = call->Param("id");
  auto webhook = call->services().webhooks.Find(id);
  if (!webhook || (!SeesAll(call->principal()) && webhook->tenant != call->principal().tenant))
    return Error(ErrorCode::kNotFound, "there is no webhook " + Quoted(id))
        .WithRemedy("list them with GET /api/webhooks");
  return *std::move(webhook);
}

Task<Result<Reply>> CreateWebhook(Call* call) {
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  CAISSON_CO_ASSIGN(const WebhookRecord webhook, ReadWebhook(body, call->principal()));
  CAISSON_CO_TRY(co_await call->services().webhooks.Add(webhook));
  json::Object answer = ToJson(webhook);
  answer["secret"] = webhook.secret;
  co_return net::Response::Json(201, json::Write(answer))
      .WithHeader("Cache-Control", "no-store")
      .WithHeader("Location", "/api/webhooks/" + webhook.id);
}

Task<Result<Reply>> ListWebhooks(Call* call) {
  json::Array list;
  for (const auto& webhook : call->services().webhooks.List())
    if (SeesAll(call->principal()) || webhook.tenant == call->principal().tenant)
      list.push_back(ToJson(webhook));
  co_return Reply::Json(200, json::Object{{"webhooks", std::move(list)}});
}

Task<Result<Reply>> GetWebhook(Call* call) {
  CAISSON_CO_ASSIGN(const auto webhook, WebhookOf(call));
  co_return Reply::Json(200, ToJson(webhook));
}

Task<Result<Reply>> PatchWebhook(Call* call) {
  CAISSON_CO_ASSIGN(WebhookRecord webhook, WebhookOf(call));
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  json::Reader in(body);
  const auto url = in.Optional<std::string>("url", {.min = 1, .max = 2048});
  const auto types = in.OptionalList<std::string>("types", {.max = 32});
  const auto active = in.Optional<bool>("active");
  CAISSON_CO_TRY(in.Finish());
  if (url) {
    CAISSON_CO_TRY(CheckUrl(*url));
    webhook.url = *url;
  }
  if (types) {
    CAISSON_CO_ASSIGN(webhook.types, JoinTypes(*types));
  }
  if (active) webhook.status = StatusOf(active);
  CAISSON_CO_TRY(co_await call->services().webhooks.Update(webhook));
  co_return Reply::Json(200, ToJson(webhook));
}

Task<Result<Reply>> DeleteWebhook(Call* call) {
  CAISSON_CO_ASSIGN(const auto webhook, WebhookOf(call));
  CAISSON_CO_TRY(co_await call->services().webhooks.Remove(webhook.id));
  co_return Reply::Nothing();
}

Task<Result<Reply>> TestWebhook(Call* call) {
  CAISSON_CO_ASSIGN(const auto webhook, WebhookOf(call));
  if (webhook.status != WebhookRecord::Status::kActive)
    co_return Error(ErrorCode::kConflict, "webhook " + webhook.id + " is not active")
        .WithRemedy("set active to true with PATCH");
  sandbox::SessionEvent event{.time = sandbox::SystemTime(),
                              .kind = sandbox::EventKind::kAlert,
                              .tenant = call->principal().tenant,
                              .details = {{"what", "a test of this webhook"}}};
  CAISSON_CO_ASSIGN(const int64_t delivery,
                    co_await call->services().webhooks.Enqueue(webhook.id, std::move(event)));
  co_return Reply::Json(202, json::Object{{"delivery_id", delivery}});
}

Result<std::optional<store::DeliveryState>> StateOf(const Call& call) {
  using store::DeliveryState;
  CAISSON_ASSIGN(const auto name, call.Query("state"));
  if (!name) return std::optional<DeliveryState>();
  for (const auto state :
       {DeliveryState::kPending, DeliveryState::kDelivered, DeliveryState::kDead})
    if (NameOf(state) == *name) return std::optional<DeliveryState>(state);
  return Error(ErrorCode::kInvalidArgument, "there is no state " + Quoted(*name))
      .WithRemedy("use pending, delivered or dead");
}

Task<Result<Reply>> ListDeliveries(Call* call) {
  CAISSON_CO_ASSIGN(const auto webhook, WebhookOf(call));
  CAISSON_CO_ASSIGN(const auto state, StateOf(*call));
  CAISSON_CO_ASSIGN(const auto limit, call->QueryInteger("limit", 1, 1000));
  CAISSON_CO_ASSIGN(
      const auto deliveries,
      co_await call->services().store.Read<std::vector<DeliveryRecord>>(
          [id = webhook.id, state, most = static_cast<int>(limit.value_or(100))](
              store::Database& db) { return store::ListDeliveries(db, id, state, most); }));
  json::Array list;
  for (const auto& delivery : deliveries) list.push_back(ToJson(delivery));
  co_return Reply::Json(200, json::Object{{"deliveries", std::move(list)}});
}

Task<Result<Reply>> Redeliver(Call* call) {
  CAISSON_CO_ASSIGN(const auto webhook, WebhookOf(call));
  const std::string& text = call->Param("delivery");
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    co_return Error(ErrorCode::kNotFound, "there is no delivery " + Quoted(text));
  CAISSON_CO_TRY(co_await call->services().webhooks.Redeliver(webhook.id, number));
  co_return Reply::Json(202, json::Object{{"delivery_id", number}});
}

}  // namespace

void AddWebhookRoutes(std::vector<Route>& routes) {
  const auto add = [&](Route route) { routes.push_back(std::move(route)); };
  add({.method = "POST",
       .pattern = "/api/webhooks",
       .permission = {Verb::kCreate, Resource::kWebhooks},
       .handler = CreateWebhook,
       .id = "createWebhook",
       .group = "webhooks",
       .summary = "Tell a URL what happens; this answer alone shows the signing secret",
       .request = "WebhookCreate",
       .outcomes = {{201, "NewWebhook"}},
       .audited = Audited::kAlways});
  add({.method = "GET",
       .pattern = "/api/webhooks",
       .permission = {Verb::kRead, Resource::kWebhooks},
       .handler = ListWebhooks,
       .id = "listWebhooks",
       .group = "webhooks",
       .summary = "All webhooks, oldest first",
       .outcomes = {{200, "WebhookList"}}});
  add({.method = "GET",
       .pattern = "/api/webhooks/{id}",
       .permission = {Verb::kRead, Resource::kWebhooks},
       .handler = GetWebhook,
       .id = "getWebhook",
       .group = "webhooks",
       .summary = "One webhook, without its secret",
       .outcomes = {{200, "Webhook"}}});
  add({.method = "PATCH",
       .pattern = "/api/webhooks/{id}",
       .permission = {Verb::kUpdate, Resource::kWebhooks},
       .handler = PatchWebhook,
       .id = "patchWebhook",
       .group = "webhooks",
       .summary = "Change the URL or the types of events, stop it, or let it go on",
       .request = "WebhookPatch",
       .outcomes = {{200, "Webhook"}},
       .audited = Audited::kAlways});
  add({.method = "DELETE",
       .pattern = "/api/webhooks/{id}",
       .permission = {Verb::kDelete, Resource::kWebhooks},
       .handler = DeleteWebhook,
       .id = "deleteWebhook",
       .group = "webhooks",
       .summary = "Remove a webhook with its deliveries",
       .outcomes = {{204, ""}},
       .audited = Audited::kAlways});
  add({.method = "POST",
       .pattern = "/api/webhooks/{id}/test",
       .permission = {Verb::kUpdate, Resource::kWebhooks},
       .handler = TestWebhook,
       .id = "testWebhook",
       .group = "webhooks",
       .summary = "Send an event for trial",
       .outcomes = {{202, "DeliveryQueued"}},
       .audited = Audited::kAlways});
  add({.method = "GET",
       .pattern = "/api/webhooks/{id}/deliveries",
       .permission = {Verb::kRead, Resource::kWebhooks},
       .handler = ListDeliveries,
       .id = "listDeliveries",
       .group = "webhooks",
       .summary = "What was sent, waits, or was given up, newest first",
       .outcomes = {{200, "DeliveryList"}},
       .parameters = {{"state", "DeliveryState", "pending, delivered or dead"},
                      {"limit", "PageSize", "1 to 1000; default 100"}}});
  add({.method = "POST",
       .pattern = "/api/webhooks/{id}/deliveries/{delivery}/redeliver",
       .permission = {Verb::kUpdate, Resource::kWebhooks},
       .handler = Redeliver,
       .id = "redeliver",
       .group = "webhooks",
       .summary = "Send a delivery that has ended once more",
       .outcomes = {{202, "DeliveryQueued"}},
       .audited = Audited::kAlways});
}

}  // namespace caisson::api
