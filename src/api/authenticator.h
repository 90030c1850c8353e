// Authenticator: one kind of credential, and who stands behind it. The way in for more kinds: write
// one, and give it to the ConfiguredGate.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "auth/jwt.h"
#include "auth/keys.h"
#include "auth/roles.h"
#include "auth/session_token.h"
#include "base/result.h"

namespace caisson::api {

using ClockMs = std::function<int64_t()>;  // milliseconds since 1970

class Authenticator {
 public:
  virtual ~Authenticator() = default;
  // Whether a credential has the form of this kind. The first that says so decides alone.
  virtual bool Recognises(std::string_view credential) const = 0;
  // Who shows it. Any error means nobody; its text must not tell more than the holder may know.
  virtual Result<auth::Principal> Check(std::string_view credential) = 0;
};

// API keys: "csn_…".
class KeyAuthenticator final : public Authenticator {
 public:
  explicit KeyAuthenticator(auth::KeyRing& keys) : keys_(keys) {}
  bool Recognises(std::string_view credential) const override;
  Result<auth::Principal> Check(std::string_view credential) override;

 private:
  auth::KeyRing& keys_;
};

// Session tokens: "cst_…". Whether the session still lives is found out by whoever looks for it.
class TokenAuthenticator final : public Authenticator {
 public:
  TokenAuthenticator(const auth::SessionTokens& tokens, ClockMs now)
      : tokens_(tokens), now_(std::move(now)) {}
  bool Recognises(std::string_view credential) const override;
  Result<auth::Principal> Check(std::string_view credential) override;

 private:
  const auth::SessionTokens& tokens_;
  ClockMs now_;
};

// JSON Web Tokens of the issuers that the server was told of: three parts with dots between.
class JwtAuthenticator final : public Authenticator {
 public:
  JwtAuthenticator(auth::JwtVerifier verifier, ClockMs now)
      : verifier_(std::move(verifier)), now_(std::move(now)) {}
  bool Recognises(std::string_view credential) const override;
  Result<auth::Principal> Check(std::string_view credential) override;

 private:
  const auth::JwtVerifier verifier_;
  ClockMs now_;
};

// Which sandbox of its session a token or URL is for: a session has one, all its life.
inline constexpr int64_t kSandboxGeneration = 1;

}  // namespace caisson::api
