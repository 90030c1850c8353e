#include "api/credential.h"

#include <algorithm>

namespace caisson::api {
namespace {

constexpr std::string_view kRemedy =
    "send one key or token as \"Authorization: Bearer KEY\" or \"X-API-Key: KEY\"";

Error Unusable(std::string why) {
  return Error(ErrorCode::kUnauthenticated, std::move(why)).WithRemedy(std::string(kRemedy));
}

// token68 of RFC 9110 §11.2 and the underscore of our keys.
bool IsCredential(std::string_view text) {
  return !text.empty() && text.size() <= kMaxCredential && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("-._~+/=").contains(c);
  });
}

// What follows the scheme.
Result<std::string> FromAuthorization(std::string_view field) {
  constexpr std::string_view kScheme = "bearer";
  const size_t end = std::min(field.find(' '), field.size());
  if (!net::EqualsIgnoringCase(field.substr(0, end), kScheme))
    return Unusable("the Authorization header is not of the scheme Bearer");
  return std::string(net::TrimBlanks(field.substr(end)));
}

}  // namespace

Result<std::optional<std::string>> CredentialOf(const net::Request& request) {
  const auto authorizations = request.headers.All("authorization");
  const auto keys = request.headers.All("x-api-key");
  if (authorizations.empty() && keys.empty()) return std::optional<std::string>();
  if (authorizations.size() + keys.size() > 1)
    return Unusable("the request shows more than one credential");
  std::string credential;
  if (!keys.empty()) {
    credential = net::TrimBlanks(keys.front());
  } else {
    CAISSON_ASSIGN(credential, FromAuthorization(authorizations.front()));
  }
  if (!IsCredential(credential)) return Unusable("the credential is empty or malformed");
  return std::optional<std::string>(std::move(credential));
}

}  // namespace caisson::api
