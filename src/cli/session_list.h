// All sessions that a server lists, page by page.
#pragma once

#include <string>
#include <vector>

#include "cli/api_client.h"

namespace caisson::cli {

struct ListFilter {
  std::vector<std::string> states, labels;  // no state: those that have not ended
};
Task<Result<std::vector<json::Value>>> ListSessions(ApiClient* api, ListFilter filter);

}  // namespace caisson::cli
