#include "api/dispatcher.h"

#include <algorithm>
#include <exception>

#include "api/open_streams.h"
#include "async/race.h"
#include "base/random.h"
#include "base/text.h"
#include "net/body.h"
#include "store/audit_log.h"

namespace caisson::api {
namespace {

constexpr size_t kMaxRequestId = 64;

// The caller's own id for the request, when it is one that can be shown anywhere; else a new one.
std::string RequestIdOf(const net::Request& request) {
  const std::string_view given = request.headers.Get("x-request-id");
  const auto plain = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  };
  if (!given.empty() && given.size() <= kMaxRequestId && std::ranges::all_of(given, plain))
    return std::string(given);
  return "req_" + RandomBase62(16);
}

int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Error NoSuchRoute(const net::Request& request) {
  return Error(ErrorCode::kNotFound, "there is nothing at " + request.method + " " + request.path)
      .WithRemedy("see /docs or /openapi.json for what there is");
}

// Whether an answer may go on for as long as both ends like, so that its key's end must end it.
bool MayStream(const Route& route) {
  return std::ranges::any_of(route.outcomes, [](const Outcome& outcome) {
    return outcome.status == 101 || outcome.media == "text/event-stream" ||
           outcome.media == "application/x-ndjson";
  });
}

// A body that stops coming is the client's delay, not ours.
std::optional<int> LateBody(net::Exchange& exchange, const Error& error) {
  const bool late = error.code() == ErrorCode::kDeadlineExceeded && exchange.body().stalled();
  return late ? std::optional(408) : std::nullopt;
}

// Completes when the credential has expired; never for one that does not. The clock may be set
// meanwhile, so it is looked at again and again.
Task<std::monostate> Expiry(async::Loop* loop, std::optional<int64_t> expires_ms) {
  constexpr std::chrono::milliseconds kLook = std::chrono::seconds(10), kDay = std::chrono::days(1);
  for (;;) {
    const std::chrono::milliseconds left(expires_ms ? *expires_ms - NowMs() : kDay.count());
    if (left.count() <= 0) co_return std::monostate();
    co_await loop->Sleep(std::min(left, expires_ms ? kLook : kDay));
  }
}

// Says why a stream has to end.
Task<std::string> CredentialEnds(async::Loop* loop, async::Event* revoked,
                                 std::optional<int64_t> expires_ms) {
  const auto first =
      co_await async::FirstOf(loop, async::WaitFor(revoked), Expiry(loop, expires_ms));
  co_return first.index() == 0 ? "the key was revoked" : "the credential has expired";
}

Error MayNot(const Call& call) {
  const Permission& permission = call.route().permission;
  return Error(ErrorCode::kPermissionDenied,
               "role " + std::string(NameOf(call.principal().role)) + " may not " +
                   std::string(NameOf(permission.verb())) + " " +
                   std::string(NameOf(permission.resource())) +
                   (call.principal().scopes.empty() ? "" : " with the scopes of this key"))
      .WithRemedy("use a key whose role and scopes allow it");
}

}  // namespace

net::Response ErrorResponse(ErrorShape shape, const Error& error, const std::string& request_id,
                            std::optional<int> other_status) {
  const int status = other_status.value_or(InfoOf(error.code()).http_status);
  if (shape == ErrorShape::kProblem) return net::Response::Problem(status, error, request_id);
  json::Object body{{"error", error.message()}, {"code", error.name()}};
  if (!error.remedy().empty()) body["remediation"] = error.remedy();
  body["request_id"] = request_id;
  return net::Response::Json(status, json::Write(body));
}

Result<std::unique_ptr<Dispatcher>> Dispatcher::Create(Services& services, Gate& gate,
                                                       std::vector<Route> routes) {
  std::unique_ptr<Dispatcher> dispatcher(new Dispatcher(services, gate, std::move(routes)));
  for (size_t i = 0; i < dispatcher->routes_.size(); ++i) {
    const Route& route = dispatcher->routes_[i];
    if (auto added = dispatcher->router_.Add(route.method, route.pattern, i); !added)
      return std::move(added).error().Because("add the route " + std::string(route.id));
  }
  return dispatcher;
}

Task<void> Dispatcher::Handle(net::Exchange* exchange) {
  const auto begin = std::chrono::steady_clock::now();
  HeadedExchange headed(*exchange);
  Progress progress;
  progress.request_id = RequestIdOf(headed.request());
  headed.headers().Set("X-Request-Id", progress.request_id);
  telemetry::Span span = services_.tracer.Start(
      headed.request().method, telemetry::SpanKind::kServer,
      telemetry::ParseTraceparent(headed.request().headers.Get("traceparent")));
  progress.span = span.context();
  std::optional<net::Response> response = co_await Answer(&headed, &progress);
  if (response && !headed.answered())
    (void)co_await headed.Send(*std::move(response));  // a client that has gone needs none
  progress.status = headed.status();
  Describe(span, headed.request(), progress);
  Note(headed.request(), progress, std::chrono::steady_clock::now() - begin);
}

Task<std::optional<net::Response>> Dispatcher::Answer(HeadedExchange* exchange,
                                                      Progress* progress) {
  const net::Request& request = exchange->request();
  Gate::Look look = gate_.LookAt(request);
  for (const auto& [name, value] : look.headers) exchange->headers().Set(name, value);
  if (look.refusal) co_return std::move(look.refusal);
  net::RouteMatch match = router_.Match(request.method, request.segments);
  if (match.kind != net::RouteMatch::Kind::kFound)
    co_return co_await Refuse(exchange, std::move(match), progress);
  const Route& route = routes_[match.route];
  progress->route = route.id;
  progress->pattern = route.pattern;
  Call call(services_, *exchange, route, std::move(match), progress->request_id);
  call.set_trace(progress->span);
  auto reply = co_await Run(&call, &exchange->headers());
  progress->key_id = call.principal().key_id;
  if (!reply)
    co_return ErrorResponse(route.errors, reply.error(), progress->request_id,
                            LateBody(*exchange, reply.error()));
  co_return std::move(reply->response());
}

Task<net::Response> Dispatcher::Refuse(net::Exchange* exchange, net::RouteMatch match,
                                       Progress* progress) {
  const net::Request& request = exchange->request();
  if (match.kind == net::RouteMatch::Kind::kNoSuchPath)
    co_return net::Response::Problem(NoSuchRoute(request), progress->request_id);
  co_return net::Response::Problem(
      405,
      Error(ErrorCode::kInvalidArgument,
            request.path + " does not take the method " + request.method)
          .WithRemedy("use one of " + match.allow),
      progress->request_id)
      .WithHeader("Allow", match.allow);
}

Task<Result<Reply>> Dispatcher::Run(Call* call, net::Headers* headers) {
  if (auto admitted = co_await Admit(call, headers); !admitted)
    co_return std::move(admitted).error();
  CAISSON_CO_TRY(call->CheckQuery());
  if (call->route().audited == Audited::kAlways) CAISSON_CO_TRY(co_await Audit(call, "allow", ""));
  if (!MayStream(call->route())) co_return co_await call->route().handler(call);
  OpenStreams::Entry open(services_.streams, call->principal().key_id);
  auto first = co_await async::FirstOf(
      &services_.loop, call->route().handler(call),
      CredentialEnds(&services_.loop, &open.ended(), call->principal().expires_ms));
  if (first.index() == 0) co_return std::get<0>(std::move(first));
  co_return Error(ErrorCode::kUnauthenticated, std::get<1>(std::move(first)))
      .WithRemedy("use another key");
}

Task<Status> Dispatcher::Admit(Call* call, net::Headers* headers) {
  const Permission& permission = call->route().permission;
  if (permission.everybody()) co_return Status();
  auto principal = co_await gate_.Identify(&call->request());
  if (!principal) {
    headers->Set("WWW-Authenticate", "Bearer realm=\"caisson\"");
    CAISSON_CO_TRY(co_await Audit(call, "deny", principal.error().message()));
    co_return std::move(principal).error();
  }
  call->set_principal(*std::move(principal));
  if (!call->principal().Allows(permission.verb(), permission.resource())) {
    Error error = MayNot(*call);
    CAISSON_CO_TRY(co_await Audit(call, "deny", error.message()));
    co_return error;
  }
  Gate::Share share = gate_.Take(call->principal(), call->route().cost);
  for (const auto& [name, value] : share.headers) headers->Set(name, value);
  co_return std::move(share.allowed);
}

// The record is committed, and so survives the server's death, before anything is done; it is on
// the disk within the store's 50 ms. Changes of keys, which outlive a reboot, wait for the disk.
Task<Status> Dispatcher::Audit(Call* call, std::string decision, std::string reason) {
  const Permission& permission = call->route().permission;
  store::AuditRecord record;
  record.time_ms = NowMs();
  record.tenant = call->principal().tenant;
  record.actor = call->principal().name;
  record.key_id = call->principal().key_id;
  record.source = call->request().peer.ToString();
  record.verb = NameOf(permission.verb());
  record.object = call->object();
  record.decision = std::move(decision);
  record.reason = std::move(reason);
  record.request_id = call->request_id();
  const auto durability = permission.resource() == auth::Resource::kKeys
                              ? store::Durability::kDurable
                              : store::Durability::kSoon;
  co_return co_await services_.store.Write(
      durability, [record](store::Database& db) { return store::AppendAudit(db, record); },
      store::Purpose::kShrink);
}

// By the conventions of OpenTelemetry for HTTP servers. The path is the route's pattern: what
// callers put into it are ids, and names of files.
void Dispatcher::Describe(telemetry::Span& span, const net::Request& request,
                          const Progress& progress) {
  if (!progress.pattern.empty()) {
    span.Rename(Concat({request.method, " ", progress.pattern}));
    span.Set("http.route", progress.pattern);
  }
  span.Set("http.request.method", request.method);
  span.Set("http.response.status_code", int64_t{progress.status});
  span.Set("client.address", request.peer.address);
  span.Set("caisson.request_id", progress.request_id);
  if (progress.status >= 500) span.Fail(std::to_string(progress.status));
}

void Dispatcher::Note(const net::Request& request, const Progress& progress,
                      std::chrono::steady_clock::duration took) {
  services_.metrics.CountRequest(progress.route, progress.status, took);
  if (!services_.log.Enabled(log::Level::kDebug) && progress.status < 500) return;
  const log::Level level = progress.status >= 500 ? log::Level::kError : log::Level::kDebug;
  services_.log.Write(level, "request",
                      {{"request_id", progress.request_id},
                       {"method", request.method},
                       {"path", request.path},
                       {"route", progress.route},
                       {"status", progress.status},
                       {"key_id", progress.key_id},
                       {"peer", request.peer.ToString()},
                       {"seconds", took}});
}

}  // namespace caisson::api
