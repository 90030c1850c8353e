// Arbitrary bytes as what callers show to be let in, and as the headers and cursors around it:
// nothing that was not signed passes, and every parser ends in a verdict.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "auth/address_policy.h"
#include "auth/browser_guard.h"
#include "auth/jwt.h"
#include "auth/keys.h"
#include "auth/session_token.h"
#include "store/blobs.h"
#include "store/cursor.h"

namespace {

using namespace caisson;

const auth::JwtVerifier& Verifier() {
  static const auto verifier = auth::JwtVerifier::Create(
      {{.issuer = "i",
        .audience = "a",
        .algorithm = auth::JwsAlgorithm::kEdDsa,
        .jwks = R"({"keys":[{"kty":"OKP","crv":"Ed25519",)"
                R"("x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]})"}});
  return *verifier;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const auth::SessionTokens tokens("secret");
  static const auth::SignedUrls urls("secret");
  static const auto guard = auth::BrowserGuard::Create({.hosts = {"*.example.com"}});
  if (Verifier().Check(text, 0)) std::abort();
  if (tokens.Check(text, 0)) std::abort();
  if (urls.Check({.method = "GET"}, text, -1)) std::abort();
  if (const auto key = auth::ParseKey(text); key && key->secret.size() != 43) std::abort();
  if (const auto cursor = store::DecodeCursor(text)) {
    const auto again = store::DecodeCursor(store::EncodeCursor(*cursor));
    if (!again || again->id != cursor->id || again->time_ms != cursor->time_ms) std::abort();
  }
  const bool escapes = text.starts_with('/') || text == ".." || text.starts_with("../") ||
                       text.find("/../") != std::string_view::npos || text.ends_with("/..");
  if (escapes && store::CheckBlobName(text)) std::abort();
  if (const auto address = auth::IpAddress::Parse(text)) {
    if (!auth::IpAddress::Parse(address->ToText())) std::abort();
    if (address->IsLoopback() && auth::AddressPolicy().Check(*address)) std::abort();
  }
  if (const auto scopes = auth::ParseScopes(text)) {
    if (!auth::ParseScopes(auth::ToText(*scopes))) std::abort();
  }
  guard->Judge({.host = text, .origin = text, .sec_fetch_site = text});
  return 0;
}
