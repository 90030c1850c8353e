// Who a user string means, by the sandbox's own /etc/passwd and /etc/group.
//
// The files belong to the sandbox and may hold anything, so this is a parser of its own with
// limits on everything instead of NSS. The grammar of a user string is strict: a name
// [a-z_][a-z0-9_-]*[$]? of at most 32 bytes, or a decimal uid 0…65534 without sign, leading zero
// or space. "0:0", "+0", "00", "-1" and 4294967296 are refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace caisson::init {

inline constexpr uint32_t kMaxId = 65534;  // the id beyond means "no change" to some calls
inline constexpr size_t kMaxDatabaseSize = 1024 * 1024;  // of passwd or group
inline constexpr size_t kMaxGroups = 256;                // further memberships are left out

struct User {
  std::string name;  // empty: a uid that passwd does not know
  uint32_t uid = 0;
  uint32_t gid = 0;
  std::vector<uint32_t> groups;  // supplementary
  std::string home;              // absolute; empty: unknown
};

bool IsUserName(std::string_view text);
// A decimal id 0…kMaxId in canonical form.
std::optional<uint32_t> ParseId(std::string_view text);

// The user that `spec` means, given the contents of the two files. Errors carry EINVAL (grammar,
// or a passwd line whose ids are out of range) or ENOENT (no such name).
Result<User> FindUser(std::string_view spec, std::string_view passwd, std::string_view group);

// Reads `etc`/passwd and `etc`/group (regular files of at most kMaxDatabaseSize; anything else
// counts as empty) and finds the user.
Result<User> ResolveUser(std::string_view spec, const char* etc = "/etc");

}  // namespace caisson::init
