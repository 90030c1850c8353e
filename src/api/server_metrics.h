// ServerMetrics: what /metrics shows of the server. No label carries a session's id.
#pragma once

#include <string_view>

#include "sandbox/session_manager.h"
#include "telemetry/metrics.h"

namespace caisson::api {

class ServerMetrics {
 public:
  // Declares everything. The registry outlives it; `sessions` outlives whoever reads the registry.
  ServerMetrics(telemetry::Registry& registry, const sandbox::SessionManager& sessions);

  void CountRequest(std::string_view route, int status, std::chrono::nanoseconds took);
  // Times of one operation, by what made the sandbox and of which environment.
  void Created(const sandbox::SessionRecord& session, std::chrono::nanoseconds took);
  void Ran(const sandbox::SessionRecord& session, std::chrono::nanoseconds took);
  void Destroyed(const sandbox::SessionRecord& session, std::chrono::nanoseconds took);

  const telemetry::Registry& registry() const { return registry_; }

 private:
  telemetry::Registry& registry_;
  telemetry::Family<telemetry::Counter>& requests_;
  telemetry::Family<telemetry::Histogram>& request_seconds_;
  telemetry::Family<telemetry::Histogram>& create_seconds_;
  telemetry::Family<telemetry::Histogram>& exec_seconds_;
  telemetry::Family<telemetry::Histogram>& destroy_seconds_;
};

// Since its making.
class Stopwatch {
 public:
  std::chrono::nanoseconds elapsed() const { return std::chrono::steady_clock::now() - begin_; }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace caisson::api
