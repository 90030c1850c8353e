#include "auth/session_token.h"

#include "auth/crypto.h"
#include "base/bytes.h"
#include "base/encoding.h"
#include "base/text.h"

namespace caisson::auth {
namespace {

constexpr std::string_view kPrefix = "cst_";
constexpr size_t kMacSize = 32;
constexpr size_t kMaxToken = 1024;

Error Refused(std::string_view what, std::string_view why) {
  return Error(ErrorCode::kPermissionDenied, Concat({"the ", what, " ", why}))
      .WithRemedy(Concat({"ask for a new ", what}));
}

}  // namespace

SessionTokens::SessionTokens(std::string_view master) : key_(DeriveKey(master, "session-token")) {}

std::string SessionTokens::Issue(const SessionGrant& grant) const {
  std::string body;
  ByteWriter out(body);
  out.Bytes(grant.session_id);
  out.Bytes(grant.tenant);
  out.Int(grant.generation);
  out.Int(grant.expires_ms);
  return Concat({kPrefix, ToBase64Url(body + HmacSha256(key_, body))});
}

Result<SessionGrant> SessionTokens::Check(std::string_view token, int64_t now_ms) const {
  const auto invalid = [] { return Refused("session token", "is not valid"); };
  if (!token.starts_with(kPrefix) || token.size() > kMaxToken) return invalid();
  const auto bytes = FromBase64Url(token.substr(kPrefix.size()));
  if (!bytes || bytes->size() < kMacSize) return invalid();
  const std::string_view body = std::string_view(*bytes).substr(0, bytes->size() - kMacSize);
  const std::string_view mac = std::string_view(*bytes).substr(body.size());
  if (!ConstantTimeEqual(mac, HmacSha256(key_, body))) return invalid();
  ByteReader in(body);
  SessionGrant grant;
  grant.session_id = in.String(kMaxToken);
  grant.tenant = in.String(kMaxToken);
  grant.generation = in.Int<int64_t>();
  grant.expires_ms = in.Int<int64_t>();
  if (!in.AtEnd()) return invalid();
  if (now_ms >= grant.expires_ms) return Refused("session token", "has expired");
  return grant;
}

Principal PrincipalOf(const SessionGrant& grant) {
  Principal principal;
  principal.tenant = grant.tenant;
  principal.key_id = Concat({"token:", grant.session_id});
  principal.name = principal.key_id;
  principal.role = Role::kDeveloper;
  principal.session = grant.session_id;
  principal.expires_ms = grant.expires_ms;
  return principal;
}

SignedUrls::SignedUrls(std::string_view master) : key_(DeriveKey(master, "signed-url")) {}

std::string SignedUrls::Sign(const UrlGrant& grant) const {
  std::string body;
  ByteWriter out(body);
  out.Bytes(grant.method);
  out.Bytes(grant.path);
  out.Bytes(grant.user);
  out.Bytes(grant.session_id);
  out.Int(grant.generation);
  out.Int(grant.expires_ms);
  return ToBase64Url(HmacSha256(key_, body));
}

Status SignedUrls::Check(const UrlGrant& grant, std::string_view signature, int64_t now_ms) const {
  if (!ConstantTimeEqual(Sign(grant), signature)) return Refused("signed URL", "is not valid");
  if (now_ms >= grant.expires_ms) return Refused("signed URL", "has expired");
  return {};
}

}  // namespace caisson::auth
