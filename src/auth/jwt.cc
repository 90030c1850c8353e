#include "auth/jwt.h"

#include <algorithm>
#include <cctype>

#include "base/encoding.h"
#include "base/text.h"
#include "json/json.h"

namespace caisson::auth {
namespace {

constexpr size_t kMaxToken = 8 << 10;
constexpr int64_t kLeewayMs = 60'000;
constexpr int64_t kMaxLifeMs = 24LL * 3600 * 1000;
constexpr size_t kMaxText = 256;

Error Refused(std::string_view why) {
  return Error(ErrorCode::kPermissionDenied, Concat({"the token is not valid: ", why}))
      .WithRemedy("get a new token from its issuer");
}

Result<json::Object> DecodeObject(std::string_view part, std::string_view what) {
  const auto text = FromBase64Url(part);
  if (!text) return Refused(Concat({"its ", what, " is not base64url"}));
  auto value = json::Parse(*text, {.max_bytes = kMaxToken, .max_depth = 16});
  if (!value || !value->is_object()) return Refused(Concat({"its ", what, " is no JSON object"}));
  return std::move(value->get_object());
}

// A text claim of a sensible length; nothing when it is absent or something else.
std::optional<std::string> TextClaim(const json::Object& claims, std::string_view name) {
  const json::Value* value = claims.if_contains(name);
  if (value == nullptr || !value->is_string()) return std::nullopt;
  const std::string_view text = value->get_string();
  if (text.empty() || text.size() > kMaxText) return std::nullopt;
  return std::string(text);
}

// A NumericDate in milliseconds. kPermissionDenied when it is there and no time.
Result<std::optional<int64_t>> TimeClaim(const json::Object& claims, std::string_view name) {
  const json::Value* value = claims.if_contains(name);
  if (value == nullptr) return std::optional<int64_t>();
  constexpr double kMaxSeconds = 1e11;  // the year 5138
  const double seconds = value->is_int64()    ? static_cast<double>(value->get_int64())
                         : value->is_double() ? value->get_double()
                                              : -1;
  if (seconds < 0 || seconds > kMaxSeconds) return Refused(Concat({name, " is no time"}));
  return std::optional(static_cast<int64_t>(seconds * 1000));
}

Status CheckHeader(const json::Object& header, JwsAlgorithm algorithm) {
  for (const std::string_view name : {"jku", "jwk", "x5u", "x5c", "crit"}) {
    if (header.contains(name)) return Refused(Concat({"its header has ", name}));
  }
  if (TextClaim(header, "alg") != NameOf(algorithm)) {
    return Refused(Concat({"its issuer signs with ", NameOf(algorithm)}));
  }
  if (!header.contains("typ")) return {};
  std::string type = TextClaim(header, "typ").value_or("");
  for (char& c : type) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (type != "jwt" && type != "at+jwt") return Refused("it is of another type than JWT");
  return {};
}

Status CheckTimes(const json::Object& claims, int64_t now_ms) {
  CAISSON_ASSIGN(const auto expires, TimeClaim(claims, "exp"));
  CAISSON_ASSIGN(const auto issued, TimeClaim(claims, "iat"));
  CAISSON_ASSIGN(const auto not_before, TimeClaim(claims, "nbf"));
  if (!expires) return Refused("it has no end (exp)");
  if (now_ms >= *expires + kLeewayMs) return Refused("it has expired");
  if (*expires - now_ms > kMaxLifeMs + kLeewayMs) return Refused("it ends more than 24 h from now");
  if (not_before && now_ms < *not_before - kLeewayMs) return Refused("it is not valid yet (nbf)");
  if (issued && now_ms < *issued - kLeewayMs) return Refused("it was issued in the future (iat)");
  if (issued && *expires - *issued > kMaxLifeMs) return Refused("it lives longer than 24 h");
  return {};
}

bool HasAudience(const json::Object& claims, std::string_view audience) {
  const json::Value* value = claims.if_contains("aud");
  if (value == nullptr) return false;
  const auto matches = [audience](const json::Value& entry) {
    return entry.is_string() && std::string_view(entry.get_string()) == audience;
  };
  if (value->is_array()) return std::ranges::any_of(value->get_array(), matches);
  return matches(*value);
}

// The key that the header's kid names; the only one when neither has a kid.
const JwsKey* KeyFor(const std::vector<JwsKey>& keys, const json::Object& header) {
  if (!header.contains("kid")) return keys.size() == 1 ? &keys.front() : nullptr;
  const auto kid = TextClaim(header, "kid");
  if (!kid) return nullptr;
  // A key given by itself has no kid; it is then the only one.
  if (keys.size() == 1 && keys.front().kid().empty()) return &keys.front();
  const auto found = std::ranges::find(keys, *kid, &JwsKey::kid);
  return found == keys.end() ? nullptr : &*found;
}

Result<Principal> PrincipalFrom(const json::Object& claims, const JwtIssuer& config) {
  const auto subject = TextClaim(claims, "sub");
  const auto role = TextClaim(claims, config.role_claim);
  const auto tenant = TextClaim(claims, config.tenant_claim);
  if (!subject) return Refused("it has no subject (sub)");
  if (!role) return Refused(Concat({"it has no role (", config.role_claim, ")"}));
  if (!tenant) return Refused(Concat({"it has no tenant (", config.tenant_claim, ")"}));
  const auto known = RoleFrom(*role);
  if (!known) return Refused(Concat({"there is no role ", Quoted(*role)}));
  Principal principal;
  principal.tenant = *tenant;
  principal.key_id = Concat({"jwt:", *subject});
  principal.name = *subject;
  principal.role = *known;
  if (!config.scope_claim.empty()) {
    const auto scope = TextClaim(claims, config.scope_claim);
    auto scopes = ParseScopes(scope.value_or(""));
    if (!scope || !scopes || scopes->empty()) {
      return Refused(Concat({"it has no scopes (", config.scope_claim, ")"}));
    }
    principal.scopes = *std::move(scopes);
  }
  return principal;
}

Result<std::vector<JwsKey>> KeysOf(const JwtIssuer& issuer) {
  if (issuer.key.empty() == issuer.jwks.empty()) {
    return Error(ErrorCode::kInvalidArgument, "give either a key or a key set");
  }
  if (!issuer.jwks.empty()) return JwsKey::FromJwks(issuer.algorithm, issuer.jwks);
  auto key = issuer.algorithm == JwsAlgorithm::kHs256
                 ? JwsKey::FromSecret(issuer.key)
                 : JwsKey::FromPem(issuer.algorithm, issuer.key);
  if (!key) return std::move(key).error();
  return std::vector<JwsKey>{*std::move(key)};
}

}  // namespace

Result<JwtVerifier> JwtVerifier::Create(const std::vector<JwtIssuer>& issuers) {
  std::vector<Entry> entries;
  for (const JwtIssuer& issuer : issuers) {
    const auto refuse = [&issuer](Error error) {
      return std::move(error).Because(Concat({"the JWT issuer ", Quoted(issuer.issuer)}));
    };
    const auto bad = [&](std::string why) {
      return refuse(Error(ErrorCode::kInvalidArgument, std::move(why)));
    };
    if (issuer.issuer.empty() || issuer.audience.empty()) return bad("name issuer and audience");
    if (issuer.role_claim.empty() || issuer.tenant_claim.empty()) {
      return bad("name the claims of role and tenant");
    }
    const auto same = [&issuer](const Entry& entry) {
      return entry.config.issuer == issuer.issuer;
    };
    if (std::ranges::any_of(entries, same)) return bad("is named twice");
    auto keys = KeysOf(issuer);
    if (!keys) return refuse(std::move(keys).error());
    entries.push_back({issuer, *std::move(keys)});
  }
  return JwtVerifier(std::move(entries));
}

Result<Principal> JwtVerifier::Check(std::string_view token, int64_t now_ms) const {
  if (token.size() > kMaxToken) return Refused("it is longer than 8 KiB");
  const size_t first = token.find('.');
  const size_t second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos) {
    return Refused("it has not three parts");
  }
  CAISSON_ASSIGN(const json::Object header, DecodeObject(token.substr(0, first), "header"));
  CAISSON_ASSIGN(const json::Object claims,
                 DecodeObject(token.substr(first + 1, second - first - 1), "payload"));
  const auto signature = FromBase64Url(token.substr(second + 1));
  if (!signature) return Refused("its signature is not base64url");

  const auto issuer = TextClaim(claims, "iss");
  const auto entry = std::ranges::find_if(
      entries_, [&issuer](const Entry& e) { return issuer && e.config.issuer == *issuer; });
  if (entry == entries_.end()) return Refused("its issuer (iss) is not known");
  CAISSON_TRY(CheckHeader(header, entry->config.algorithm));
  const JwsKey* key = KeyFor(entry->keys, header);
  if (key == nullptr) return Refused("its key (kid) is not known");
  if (!key->Verifies(token.substr(0, second), *signature)) return Refused("its signature is wrong");

  CAISSON_TRY(CheckTimes(claims, now_ms));
  if (!HasAudience(claims, entry->config.audience)) return Refused("it is for another audience");
  CAISSON_ASSIGN(Principal principal, PrincipalFrom(claims, entry->config));
  CAISSON_ASSIGN(const auto expires, TimeClaim(claims, "exp"));
  principal.expires_ms = *expires + kLeewayMs;
  return principal;
}

}  // namespace caisson::auth
