// Call: one request on its way through a route's handler: what was asked, by whom, and what the
// server has to answer it with. Valid until the handler ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "api/route.h"
#include "auth/roles.h"
#include "json/json.h"
#include "json/reader.h"
#include "net/exchange.h"
#include "net/router.h"
#include "sandbox/session_record.h"
#include "telemetry/trace.h"

namespace caisson::api {

struct Services;

class Call {
 public:
  static constexpr size_t kMaxJson = 1 << 20;

  Call(Services& services, net::Exchange& exchange, const Route& route, net::RouteMatch match,
       std::string request_id)
      : services_(services),
        exchange_(exchange),
        route_(route),
        match_(std::move(match)),
        request_id_(std::move(request_id)) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Services& services() { return services_; }
  net::Exchange& exchange() { return exchange_; }
  const net::Request& request() const { return exchange_.request(); }
  const Route& route() const { return route_; }
  const std::string& request_id() const { return request_id_; }

  const auth::Principal& principal() const { return principal_; }
  void set_principal(auth::Principal principal) { principal_ = std::move(principal); }
  // What of the sessions the caller may see, and who owns what it makes.
  sandbox::Access access() const;
  sandbox::Owner owner() const;

  // A parameter of the path; it is there, since the pattern has it.
  const std::string& Param(std::string_view name) const;
  // Of the query. Given twice, or not of the type: kInvalidArgument, naming it.
  Result<std::optional<std::string>> Query(std::string_view name) const;
  Result<std::optional<int64_t>> QueryInteger(std::string_view name, int64_t min,
                                              int64_t max) const;
  Result<bool> QueryFlag(std::string_view name) const;
  // Refuses every parameter of the query that the route does not declare, with a did-you-mean.
  Status CheckQuery() const;

  // The body as JSON. kInvalidArgument (not JSON, another content type), too large: see net/body.h.
  // An empty body is an empty object.
  Task<Result<json::Value>> ReadJson();

  // A span of work within the request's; it ends where it is destroyed.
  telemetry::Span Trace(std::string_view name) const;
  void set_trace(const telemetry::SpanContext& trace) { trace_ = trace; }

  // What the audit log calls the object of this call; the path's first parameter unless set.
  void set_object(std::string object) { object_ = std::move(object); }
  std::string object() const;

 private:
  Services& services_;
  net::Exchange& exchange_;
  const Route& route_;
  const net::RouteMatch match_;
  const std::string request_id_;
  auth::Principal principal_;
  std::string object_;
  std::optional<telemetry::SpanContext> trace_;
};

}  // namespace caisson::api
