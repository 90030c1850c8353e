#include "api/configured_gate.h"

#include <utility>

#include "api/credential.h"
#include "base/text.h"

namespace caisson::api {
namespace {

Error Nobody(std::string why) {
  return Error(ErrorCode::kUnauthenticated, std::move(why))
      .WithRemedy("send a key or token as \"Authorization: Bearer KEY\" or \"X-API-Key: KEY\"");
}

auth::Principal AdminOfThisMachine(std::string id, std::string name) {
  return {.tenant = kDefaultTenant,
          .key_id = std::move(id),
          .name = std::move(name),
          .role = auth::Role::kAdmin};
}

// The answer to a browser that asks before it lets a page send the real request.
net::Response Preflight() {
  return net::Response::Empty(204)
      .WithHeader("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
      .WithHeader("Access-Control-Allow-Headers",
                  "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, Range, "
                  "Traceparent, X-API-Key, X-Request-Id")
      .WithHeader("Access-Control-Max-Age", "600");
}

net::Headers CorsHeaders(const std::string& origin) {
  return {{"Access-Control-Allow-Origin", origin},
          {"Access-Control-Expose-Headers",
           "Location, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After, "
           "X-Request-Id"},
          {"Vary", "Origin"}};
}

}  // namespace

Gate::Look ConfiguredGate::LookAt(const net::Request& request) const {
  // A web page reaches no unix socket; whoever does may call the host what they like.
  const bool local = request.peer.credentials.has_value();
  const auth::GuardVerdict verdict =
      guard_.Judge({.host = local ? "localhost" : request.host(),
                    .origin = request.headers.Get("origin"),
                    .sec_fetch_site = request.headers.Get("sec-fetch-site")});
  Look look;
  if (verdict.kind != auth::GuardVerdict::Kind::kPass) {
    const bool misdirected = verdict.kind == auth::GuardVerdict::Kind::kMisdirected;
    look.refusal = net::Response::Problem(
        misdirected ? 421 : 403,
        Error(ErrorCode::kPermissionDenied, verdict.reason)
            .WithRemedy(misdirected ? "use a name that this server answers to (--allow-host)"
                                    : "allow the page's origin (--allow-origin)"));
    return look;
  }
  if (verdict.allow_origin.empty()) return look;
  look.headers = CorsHeaders(verdict.allow_origin);
  if (request.method == "OPTIONS" &&
      request.headers.Find("access-control-request-method") != nullptr)
    look.refusal = Preflight();
  return look;
}

Task<Result<auth::Principal>> ConfiguredGate::Identify(const net::Request* request) {
  co_return WhoIs(*request);
}

Result<auth::Principal> ConfiguredGate::WhoIs(const net::Request& request) {
  const net::Peer& peer = request.peer;
  if (options_.mode == Mode::kNone) {
    if (!peer.loopback) return Nobody("this server takes calls from its own machine only");
    return AdminOfThisMachine("none", "anybody on this machine");
  }
  CAISSON_ASSIGN(const auto credential, CredentialOf(request));
  if (credential) return Check(*credential);
  if (!peer.credentials) return Nobody("the request shows no key and no token");
  const uint32_t uid = peer.credentials->uid;
  if (uid != options_.own_uid && uid != 0)
    return Nobody(Concat(
        {"user ", std::to_string(uid), " is not the server's own, and the request shows no key"}));
  const std::string id = "unix:" + std::to_string(uid);
  return AdminOfThisMachine(id, id);
}

Result<auth::Principal> ConfiguredGate::Check(const std::string& credential) {
  for (Authenticator* authenticator : authenticators_) {
    if (!authenticator->Recognises(credential)) continue;
    auto principal = authenticator->Check(credential);
    if (principal) return principal;
    return std::move(principal).error().WithCode(ErrorCode::kUnauthenticated);
  }
  return Nobody("the credential is neither a key nor a token of this server");
}

Gate::Share ConfiguredGate::Take(const auth::Principal& principal, Cost cost) {
  auto taken = allowances_.Take(principal.key_id, cost, std::chrono::steady_clock::now());
  if (taken.allowed && options_.on_call) options_.on_call(principal);
  return {std::move(taken.allowed), std::move(taken.headers)};
}

}  // namespace caisson::api
