// Route: one row of the table that dispatches requests and from which /openapi.json is made.
//
// A row says who may call it: Permission has no default, so a route without one does not compile.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "api/reply.h"
#include "async/task.h"
#include "auth/roles.h"
#include "base/result.h"

namespace caisson::api {

class Call;
using RouteHandler = Task<Result<Reply>> (*)(Call*);

// What the caller must be allowed to do. Ownership of the object named in the path is the
// handler's: it asks for it with Call::access, and what belongs to another tenant is not found.
class Permission {
 public:
  constexpr Permission(auth::Verb verb, auth::Resource resource)
      : verb_(verb), resource_(resource) {}
  // For what says nothing about anybody: health, the documentation.
  static constexpr Permission Everybody() { return Permission(); }

  constexpr bool everybody() const { return everybody_; }
  constexpr auth::Verb verb() const { return verb_; }
  constexpr auth::Resource resource() const { return resource_; }

 private:
  constexpr Permission() : everybody_(true) {}
  auth::Verb verb_{};
  auth::Resource resource_{};
  bool everybody_ = false;
};

// Which of the caller's buckets a call is taken from, beside that of requests.
enum class Cost { kRequest, kCreate, kExec };
// kAlways: who, what and how it ended goes to the audit log. kDenied: only when it was refused.
enum class Audited { kDenied, kAlways };
// How an error is told: kProblem is RFC 9457; kClassic is {"error": text} for the original APIs.
enum class ErrorShape { kProblem, kClassic };

// A parameter in the query or in a header. Those of the path come from the pattern.
struct Parameter {
  enum class In { kQuery, kHeader };
  enum class Need { kOptional, kRequired };
  std::string_view name;
  std::string_view type;  // "string", "integer", "boolean", or the name of a schema of schemas.h
  std::string_view meaning;
  In in = In::kQuery;
  Need need = Need::kOptional;
};

// One way in which a call can succeed.
struct Outcome {
  int status;
  std::string_view schema;  // of schemas.h; empty: no body, or not JSON
  std::string_view media = "application/json";
};

struct Route {
  std::string_view method;
  std::string_view pattern;
  Permission permission;
  RouteHandler handler;
  std::string_view id;                  // operationId: "createSession"
  std::string_view group;               // "sessions"
  std::string_view summary;             // one line
  std::string_view request = {};        // schema of the JSON body; empty: none
  std::string_view request_media = {};  // of a body that is not JSON
  std::vector<Outcome> outcomes = {};
  std::vector<Parameter> parameters = {};
  Cost cost = Cost::kRequest;
  Audited audited = Audited::kDenied;
  ErrorShape errors = ErrorShape::kProblem;
};

}  // namespace caisson::api
