#include "api/authenticator.h"

#include <algorithm>

namespace caisson::api {

bool KeyAuthenticator::Recognises(std::string_view credential) const {
  return credential.starts_with("csn_");
}

Result<auth::Principal> KeyAuthenticator::Check(std::string_view credential) {
  return keys_.Check(credential);
}

bool TokenAuthenticator::Recognises(std::string_view credential) const {
  return credential.starts_with("cst_");
}

Result<auth::Principal> TokenAuthenticator::Check(std::string_view credential) {
  CAISSON_ASSIGN(const auth::SessionGrant grant, tokens_.Check(credential, now_()));
  if (grant.generation != kSandboxGeneration)
    return Error(ErrorCode::kUnauthenticated, "the token is for another sandbox of its session")
        .WithRemedy("ask for a new one at /api/sessions/ID/tokens");
  return auth::PrincipalOf(grant);
}

bool JwtAuthenticator::Recognises(std::string_view credential) const {
  return std::ranges::count(credential, '.') == 2;
}

Result<auth::Principal> JwtAuthenticator::Check(std::string_view credential) {
  return verifier_.Check(credential, now_());
}

}  // namespace caisson::api
