// Who a caller is, and what roles may do.
//
// A role is a set of verb:resource pairs in one table; what is not in it is refused. Scopes of a
// key narrow its role, never widen it. Whose objects a caller sees is Reach: everybody's, the
// tenant's, or what its own key made. Pure values and functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace caisson::auth {

enum class Verb : uint8_t { kRead, kCreate, kUpdate, kDelete, kExecute };
enum class Resource : uint8_t {
  kSessions,
  kProcesses,
  kFiles,
  kArtifacts,
  kLogs,
  kEvents,
  kWebhooks,
  kUsage,
  kKeys,
  kAudit,
  kMetrics,
  kSystem,
};
enum class Role : uint8_t { kAdmin, kOperator, kDeveloper, kViewer, kAgent };

std::string_view NameOf(Verb verb);          // "read"
std::string_view NameOf(Resource resource);  // "sessions"
std::string_view NameOf(Role role);          // "admin"
// kInvalidArgument, naming the roles there are.
Result<Role> RoleFrom(std::string_view name);
inline constexpr std::string_view kRoleChoices = "admin|operator|developer|viewer|agent";

bool RoleAllows(Role role, Verb verb, Resource resource);

// A part of what a role allows: "read:sessions", "*:files", "execute:*".
struct Scope {
  std::optional<Verb> verb;          // empty: every one
  std::optional<Resource> resource;  // empty: every one
  bool Covers(Verb v, Resource r) const {
    return (!verb || *verb == v) && (!resource || *resource == r);
  }
};
// Separated by blanks. kInvalidArgument for what is none.
Result<std::vector<Scope>> ParseScopes(std::string_view text);
std::string ToText(const std::vector<Scope>& scopes);

enum class Reach {
  kAll,     // every tenant's objects
  kTenant,  // those of the own tenant
  kKey,     // those that the own key made
};
Reach ReachOf(Role role);

struct Principal {
  std::string tenant;
  std::string key_id;  // of the key, or "jwt:SUBJECT", "token:SESSION", "unix:UID"
  std::string name;    // for people and the audit log
  Role role = Role::kViewer;
  std::vector<Scope> scopes;           // empty: all that the role allows
  std::optional<std::string> session;  // set: this session and nothing else
  std::optional<int64_t> expires_ms;   // when the credential ends; else: never

  bool Allows(Verb verb, Resource resource) const;
};

}  // namespace caisson::auth
