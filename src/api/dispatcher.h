// Dispatcher: every request from the wire to its route's handler and back.
//
// In this order: the gate looks at host and origin, the route is found, the caller identified and
// held to the route's permission and to its share, the audit log told, the handler run. Whatever
// fails becomes a typed answer. Belongs to the loop's thread and outlives the net::Server it
// serves.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/call.h"
#include "api/gate.h"
#include "api/headed_exchange.h"
#include "api/route.h"
#include "api/services.h"
#include "net/router.h"
#include "telemetry/trace.h"

namespace caisson::api {

class Dispatcher {
 public:
  // The routes must be well formed and distinct; the error says which is not.
  static Result<std::unique_ptr<Dispatcher>> Create(Services& services, Gate& gate,
                                                    std::vector<Route> routes);

  // For net::Server.
  Task<void> Handle(net::Exchange* exchange);

  std::span<const Route> routes() const { return routes_; }

 private:
  // How far a request came, for the log and the metrics.
  struct Progress {
    std::string request_id;
    std::string route = "none";  // the route's id
    std::string_view pattern;    // the route's; empty: none
    int status = 0;              // of the answer; 0: the client went before there was one
    std::string key_id;
    telemetry::SpanContext span;
  };

  Dispatcher(Services& services, Gate& gate, std::vector<Route> routes)
      : services_(services), gate_(gate), routes_(std::move(routes)) {}

  // What is still to be sent, if anything.
  Task<std::optional<net::Response>> Answer(HeadedExchange* exchange, Progress* progress);
  Task<net::Response> Refuse(net::Exchange* exchange, net::RouteMatch match, Progress* progress);
  Task<Result<Reply>> Run(Call* call, net::Headers* headers);
  Task<Status> Admit(Call* call, net::Headers* headers);
  Task<Status> Audit(Call* call, std::string decision, std::string reason);
  static void Describe(telemetry::Span& span, const net::Request& request,
                       const Progress& progress);
  void Note(const net::Request& request, const Progress& progress,
            std::chrono::steady_clock::duration took);

  Services& services_;
  Gate& gate_;
  std::vector<Route> routes_;
  net::Router router_;
};

// The error as the route's callers expect it.
// With the status of the error's code, or another.
net::Response ErrorResponse(ErrorShape shape, const Error& error, const std::string& request_id,
                            std::optional<int> other_status = std::nullopt);

}  // namespace caisson::api
