// The files that `serve` is configured by, besides its options.
#pragma once

#include <string>
#include <vector>

#include "auth/jwt.h"
#include "base/result.h"
#include "telemetry/alerts.h"
#include "telemetry/metrics.h"

namespace caisson::cli {

// {"issuers": [{"issuer", "audience", "algorithm", "key"|"key_file"|"jwks_file", …}]}
// kInvalidArgument names the file and the field.
Result<std::vector<auth::JwtIssuer>> ReadJwtIssuers(const std::string& path);

// Rules on the registry's metrics, from a YAML file; none for an empty path. Errors say where.
Result<std::vector<telemetry::AlertRule>> ReadAlertRules(const std::string& path,
                                                         const telemetry::Registry& metrics);

}  // namespace caisson::cli
