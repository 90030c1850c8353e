#include "api/server_metrics.h"

#include <stdio.h>
#include <unistd.h>

namespace caisson::api {
namespace {

// Resident bytes of this process.
double ResidentBytes() {
  FILE* statm = fopen("/proc/self/statm", "re");
  if (statm == nullptr) return 0;
  unsigned long size = 0, resident = 0;
  const int got = fscanf(statm, "%lu %lu", &size, &resident);
  fclose(statm);
  return got == 2 ? static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) : 0;
}

}  // namespace

ServerMetrics::ServerMetrics(telemetry::Registry& registry, const sandbox::SessionManager& sessions)
    : registry_(registry),
      requests_(registry.AddCounters("caisson_http_requests_total", "Requests answered",
                                     {"route", "status"})),
      request_seconds_(registry.AddHistograms("caisson_http_request_seconds",
                                              "Time from a request's head to the end of its answer",
                                              {"route"}, telemetry::kLatencyBounds)),
      create_seconds_(registry.AddHistograms(
          "caisson_session_create_seconds", "Time to create a session, in the server",
          {"provider", "environment"}, telemetry::kLatencyBounds)),
      exec_seconds_(registry.AddHistograms("caisson_exec_seconds",
                                           "Time of commands that were waited for",
                                           {"provider", "environment"}, telemetry::kLatencyBounds)),
      destroy_seconds_(registry.AddHistograms(
          "caisson_session_destroy_seconds", "Time until a destroy was acknowledged",
          {"provider", "environment"}, telemetry::kLatencyBounds)) {
  const auto* manager = &sessions;
  registry.AddComputedGauge("caisson_sessions", "Sessions that live",
                            [manager] { return static_cast<double>(manager->sessions().size()); });
  registry.AddComputedGauge("caisson_sessions_creating", "Creates that wait or run",
                            [manager] { return static_cast<double>(manager->creating()); });
  registry.AddComputedGauge("caisson_sessions_ending", "Ends that are under way",
                            [manager] { return static_cast<double>(manager->ending()); });
  registry.AddComputedGauge("caisson_server_resident_bytes", "Memory of the server itself",
                            ResidentBytes);
}

void ServerMetrics::CountRequest(std::string_view route, int status,
                                 std::chrono::nanoseconds took) {
  const std::string text = status == 0 ? "streamed" : std::to_string(status);
  requests_.With({route, text}).Add();
  request_seconds_.With({route}).Observe(took);
}

void ServerMetrics::Created(const sandbox::SessionRecord& session, std::chrono::nanoseconds took) {
  create_seconds_.With({session.provider, session.spec.environment}).Observe(took);
}
void ServerMetrics::Ran(const sandbox::SessionRecord& session, std::chrono::nanoseconds took) {
  exec_seconds_.With({session.provider, session.spec.environment}).Observe(took);
}
void ServerMetrics::Destroyed(const sandbox::SessionRecord& session,
                              std::chrono::nanoseconds took) {
  destroy_seconds_.With({session.provider, session.spec.environment}).Observe(took);
}

}  // namespace caisson::api
