#include "auth/roles.h"

#include <algorithm>
#include <array>
#include <utility>

namespace caisson::auth {
namespace {

using enum Verb;
using enum Resource;

constexpr std::array<std::pair<Verb, std::string_view>, 5> kVerbs = {{{kRead, "read"},
                                                                      {kCreate, "create"},
                                                                      {kUpdate, "update"},
                                                                      {kDelete, "delete"},
                                                                      {kExecute, "execute"}}};
constexpr std::array<std::pair<Resource, std::string_view>, 12> kResources = {
    {{kSessions, "sessions"},
     {kProcesses, "processes"},
     {kFiles, "files"},
     {kArtifacts, "artifacts"},
     {kLogs, "logs"},
     {kEvents, "events"},
     {kWebhooks, "webhooks"},
     {kUsage, "usage"},
     {kKeys, "keys"},
     {kAudit, "audit"},
     {kMetrics, "metrics"},
     {kSystem, "system"}}};
constexpr std::array<std::pair<Role, std::string_view>, 5> kRoles = {
    {{Role::kAdmin, "admin"},
     {Role::kOperator, "operator"},
     {Role::kDeveloper, "developer"},
     {Role::kViewer, "viewer"},
     {Role::kAgent, "agent"}}};

template <typename T, size_t N>
constexpr std::string_view NameIn(const std::array<std::pair<T, std::string_view>, N>& table,
                                  T value) {
  for (const auto& [key, name] : table)
    if (key == value) return name;
  return "";
}
template <typename T, size_t N>
std::optional<T> ValueIn(const std::array<std::pair<T, std::string_view>, N>& table,
                         std::string_view name) {
  for (const auto& [key, known] : table)
    if (known == name) return key;
  return std::nullopt;
}

// Verbs as bits.
constexpr uint8_t Bit(Verb verb) { return static_cast<uint8_t>(1u << static_cast<unsigned>(verb)); }
constexpr uint8_t kNone = 0;
constexpr uint8_t kLook = Bit(kRead);
constexpr uint8_t kChange = Bit(kRead) | Bit(kCreate) | Bit(kUpdate) | Bit(kDelete);
constexpr uint8_t kAll = kChange | Bit(kExecute);

// What each role may do with each resource, in the order of the enumerations.
using Row = std::array<uint8_t, kResources.size()>;
// sessions, processes, files, artifacts, logs, events, webhooks, usage, keys, audit, metrics,
// system
constexpr Row kAdminRow = {kAll, kAll, kAll, kAll, kAll, kAll, kAll, kAll, kAll, kAll, kAll, kAll};
constexpr Row kOperatorRow = {Bit(kRead) | Bit(kUpdate) | Bit(kDelete),
                              Bit(kRead) | Bit(kDelete),
                              kNone,
                              kLook,
                              kLook,
                              kLook,
                              kChange,
                              kLook,
                              kLook,
                              kLook,
                              kLook,
                              kLook};
constexpr Row kDeveloperRow = {kAll,    kAll,  kAll,  kAll,  kLook, kLook,
                               kChange, kLook, kNone, kNone, kNone, kLook};
constexpr Row kViewerRow = {kLook, kLook, kNone, kLook, kLook, kLook,
                            kNone, kLook, kNone, kNone, kNone, kLook};
constexpr Row kAgentRow = {kChange, kAll,  kAll,  kLook, kLook, kLook,
                           kNone,   kNone, kNone, kNone, kNone, kNone};

constexpr const Row& RowOf(Role role) {
  switch (role) {
    case Role::kAdmin:
      return kAdminRow;
    case Role::kOperator:
      return kOperatorRow;
    case Role::kDeveloper:
      return kDeveloperRow;
    case Role::kAgent:
      return kAgentRow;
    case Role::kViewer:
      break;
  }
  return kViewerRow;
}

// What a session token may do, in its own session: all that an agent may, but end others or make
// new ones.
constexpr bool TokenAllows(Verb verb, Resource resource) {
  if (resource == kSessions) return verb == kRead || verb == kUpdate || verb == kDelete;
  return resource == kProcesses || resource == kFiles || resource == kArtifacts ||
         resource == kLogs || resource == kEvents;
}

Result<Scope> ParseScope(std::string_view text) {
  const size_t colon = text.find(':');
  const auto bad = [&] {
    return Error(ErrorCode::kInvalidArgument, "\"" + std::string(text) + "\" is no scope")
        .WithRemedy("write VERB:RESOURCE, e.g. read:sessions, *:files or execute:*");
  };
  if (colon == std::string_view::npos) return bad();
  const std::string_view verb = text.substr(0, colon), resource = text.substr(colon + 1);
  Scope scope;
  if (verb != "*" && !(scope.verb = ValueIn(kVerbs, verb))) return bad();
  if (resource != "*" && !(scope.resource = ValueIn(kResources, resource))) return bad();
  return scope;
}

}  // namespace

std::string_view NameOf(Verb verb) { return NameIn(kVerbs, verb); }
std::string_view NameOf(Resource resource) { return NameIn(kResources, resource); }
std::string_view NameOf(Role role) { return NameIn(kRoles, role); }

Result<Role> RoleFrom(std::string_view name) {
  if (const auto role = ValueIn(kRoles, name)) return *role;
  return Error(ErrorCode::kInvalidArgument, "there is no role \"" + std::string(name) + "\"")
      .WithRemedy("use one of admin, operator, developer, viewer, agent");
}

bool RoleAllows(Role role, Verb verb, Resource resource) {
  return (RowOf(role)[static_cast<size_t>(resource)] & Bit(verb)) != 0;
}

Result<std::vector<Scope>> ParseScopes(std::string_view text) {
  std::vector<Scope> scopes;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) {
      CAISSON_ASSIGN(const Scope scope, ParseScope(text.substr(0, end)));
      scopes.push_back(scope);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return scopes;
}

std::string ToText(const std::vector<Scope>& scopes) {
  std::string text;
  for (const Scope& scope : scopes) {
    if (!text.empty()) text += ' ';
    text += scope.verb ? NameOf(*scope.verb) : "*";
    text += ':';
    text += scope.resource ? NameOf(*scope.resource) : "*";
  }
  return text;
}

Reach ReachOf(Role role) {
  switch (role) {
    case Role::kAdmin:
    case Role::kOperator:
      return Reach::kAll;
    case Role::kAgent:
      return Reach::kKey;
    case Role::kDeveloper:
    case Role::kViewer:
      break;
  }
  return Reach::kTenant;
}

bool Principal::Allows(Verb verb, Resource resource) const {
  if (session && !TokenAllows(verb, resource)) return false;
  if (!RoleAllows(role, verb, resource)) return false;
  return scopes.empty() || std::any_of(scopes.begin(), scopes.end(), [&](const Scope& scope) {
           return scope.Covers(verb, resource);
         });
}

}  // namespace caisson::auth
