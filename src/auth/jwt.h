// JwtVerifier: JSON Web Tokens (RFC 7519) of the issuers that the configuration names.
//
// The issuer a token claims picks the configuration; algorithm and keys come from there, and the
// header must agree. Refused are: other algorithms than the issuer's (so "none", and HMAC under a
// public key), keys or addresses of keys inside the token (jwk, jku, x5c, x5u), critical extensions
// (crit), names that occur twice, tokens above 8 KiB, tokens without an end or with one more than
// 24 h away. Clocks may differ by 60 s. Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "auth/jws.h"
#include "auth/roles.h"
#include "base/result.h"

namespace caisson::auth {

struct JwtIssuer {
  std::string issuer;    // "iss"
  std::string audience;  // must be in "aud"
  JwsAlgorithm algorithm = JwsAlgorithm::kRs256;
  std::string key;   // a secret (HS256) or a public key in PEM; or
  std::string jwks;  // the text of a JSON Web Key Set
  std::string role_claim = "role";
  std::string tenant_claim = "tenant";
  std::string scope_claim;  // optional: a text as ParseScopes reads it, which narrows the role
};

class JwtVerifier {
 public:
  // kInvalidArgument, naming the issuer, for a configuration that cannot be used.
  static Result<JwtVerifier> Create(const std::vector<JwtIssuer>& issuers);

  // Who shows this token. kPermissionDenied, which a caller sees as "not authenticated", saying
  // what is wrong with it.
  Result<Principal> Check(std::string_view token, int64_t now_ms) const;

 private:
  struct Entry {
    JwtIssuer config;
    std::vector<JwsKey> keys;
  };
  explicit JwtVerifier(std::vector<Entry> entries) : entries_(std::move(entries)) {}

  std::vector<Entry> entries_;
};

}  // namespace caisson::auth
