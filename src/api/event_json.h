// Events as JSON, and what a caller may see of them.
#pragma once

#include "api/call.h"
#include "json/json.h"
#include "sandbox/event_bus.h"

namespace caisson::api {

// {"sequence", "time", "type", "session_id", "tenant", "details"}
json::Object ToJson(const sandbox::SessionEvent& event);
// {"type": "events.missed", "from", "to"}
json::Object ToJson(const sandbox::EventsMissed& missed);

// The widest filter that the caller is entitled to.
sandbox::EventFilter VisibleTo(const auth::Principal& principal);

}  // namespace caisson::api
