// /openapi.json, made from the same table that dispatches.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/route.h"
#include "api/schemas.h"

namespace caisson::api {

// OpenAPI 3.1. kInternal when a route names a schema that does not exist, or a schema is no JSON.
Result<std::string> OpenApiDocument(std::span<const Route> routes, std::span<const Schema> schemas,
                                    std::string_view version);

}  // namespace caisson::api
