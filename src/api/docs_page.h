// /docs: the API for people, made from the route table. One page, no script, nothing from
// elsewhere.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "api/route.h"
#include "api/schemas.h"

namespace caisson::api {

std::string DocsPage(std::span<const Route> routes, std::span<const Schema> schemas,
                     std::string_view version);

}  // namespace caisson::api
