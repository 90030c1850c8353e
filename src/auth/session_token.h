// Session tokens and signed URLs: capabilities for one session, checked without any lookup.
//
// Both are HMAC-SHA256 over length-prefixed fields, under keys derived from the server's secret for
// that purpose alone. A token carries its fields; a signed URL's fields are its own parts, so the
// signature covers method, path, user, session, generation and expiry. The generation counts the
// sandboxes behind a session: what was given out for one is void for the next, which the caller
// compares. Immutable after construction, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "auth/roles.h"
#include "base/result.h"

namespace caisson::auth {

struct SessionGrant {
  std::string session_id;
  std::string tenant;
  int64_t generation = 0;
  int64_t expires_ms = 0;
};

class SessionTokens {
 public:
  // `master` is the server's secret (auth/crypto.h).
  explicit SessionTokens(std::string_view master);

  // "cst_…"
  std::string Issue(const SessionGrant& grant) const;
  // kPermissionDenied when it is not ours, was changed, or has expired. The caller still compares
  // the generation.
  Result<SessionGrant> Check(std::string_view token, int64_t now_ms) const;

 private:
  std::string key_;
};

// Whoever shows the token: may do what a token may, in this session alone.
Principal PrincipalOf(const SessionGrant& grant);

struct UrlGrant {
  std::string method;  // "GET"
  std::string path;    // as requested, before the '?', percent-encoded as it stands
  std::string user;    // inside the sandbox
  std::string session_id;
  int64_t generation = 0;
  int64_t expires_ms = 0;
};

class SignedUrls {
 public:
  explicit SignedUrls(std::string_view master);

  // base64url; goes into the query beside the fields that the path does not hold.
  std::string Sign(const UrlGrant& grant) const;
  // `grant` is put together from the request. kPermissionDenied when any of its fields is another
  // than was signed, or it has expired.
  Status Check(const UrlGrant& grant, std::string_view signature, int64_t now_ms) const;

 private:
  std::string key_;
};

}  // namespace caisson::auth
