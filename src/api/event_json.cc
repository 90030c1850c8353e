#include "api/event_json.h"

#include "api/session_json.h"

namespace caisson::api {

json::Object ToJson(const sandbox::SessionEvent& event) {
  json::Object details;
  for (const auto& [name, value] : event.details) details[name] = value;
  return {{"sequence", event.sequence},
          {"time", ToText(event.time)},
          {"type", NameOf(event.kind)},
          {"session_id", event.session_id.empty() ? json::Value() : json::Value(event.session_id)},
          {"tenant", event.tenant.empty() ? json::Value() : json::Value(event.tenant)},
          {"details", std::move(details)}};
}

json::Object ToJson(const sandbox::EventsMissed& missed) {
  return {{"type", "events.missed"}, {"from", missed.from}, {"to", missed.to}};
}

sandbox::EventFilter VisibleTo(const auth::Principal& principal) {
  sandbox::EventFilter filter;
  const auth::Reach reach = auth::ReachOf(principal.role);
  if (reach != auth::Reach::kAll || principal.session) filter.tenant = principal.tenant;
  if (principal.session)
    filter.session_id = *principal.session;
  else if (reach == auth::Reach::kKey)
    filter.key_id = principal.key_id;
  return filter;
}

}  // namespace caisson::api
