// What a request shows to say who sends it.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "net/message.h"

namespace caisson::api {

inline constexpr size_t kMaxCredential = 8192;

// From "Authorization: Bearer CREDENTIAL" or "X-API-Key: CREDENTIAL"; nothing when there is
// neither. kUnauthenticated for two at once, another scheme, and what has not the form of one: a
// request that says two things about its sender is from nobody.
Result<std::optional<std::string>> CredentialOf(const net::Request& request);

}  // namespace caisson::api
