// API keys as they are stored: never the secret, only what recognises it (auth/keys.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace caisson::store {

struct KeyRecord {
  std::string id;
  std::string name;
  std::string tenant;
  std::string role;
  std::string scopes;                    // separated by blanks; empty: all that the role allows
  std::string hash;                      // hex HMAC of the secret
  std::optional<std::string> next_hash;  // while a rotation is under way: of the new secret
  std::string limits = "{}";             // JSON: rate limits and quotas of this key
  std::string created_by;
  int64_t created_ms = 0;
  std::optional<int64_t> expires_ms;
  std::optional<int64_t> rotated_ms;
  std::optional<int64_t> last_used_ms;
  std::optional<int64_t> revoked_ms;
};

// kConflict when the id is taken.
Status InsertKey(Database& database, const KeyRecord& record);
// Writes every field but id, tenant, created_by, created_ms. kNotFound when there is no such key.
Status UpdateKey(Database& database, const KeyRecord& record);
// Moves last_used_ms forward; never back. An unknown id is no error: the key may be gone by now.
Status TouchKey(Database& database, std::string_view id, int64_t used_ms);
// All keys, revoked and expired ones too, oldest first.
Result<std::vector<KeyRecord>> AllKeys(Database& database);
// Forgets keys revoked before `before_ms`.
Status PurgeKeys(Database& database, int64_t before_ms);

}  // namespace caisson::store
