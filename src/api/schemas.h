// The JSON Schemas of requests and answers, as /openapi.json carries them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace caisson::api {

// `json` is a JSON Schema 2020-12; others are referred to as "#/components/schemas/NAME".
struct Schema {
  std::string_view name;
  std::string_view json;
};

std::span<const Schema> CommonSchemas();   // Problem, parameters
std::span<const Schema> SessionSchemas();  // sessions, limits, commands
std::span<const Schema> FileSchemas();     // files, archives

std::span<const Schema> ServerSchemas();  // health, the original APIs

std::span<const Schema> AdminSchemas();    // keys, tokens, events, audit, usage, alerts
std::span<const Schema> WebhookSchemas();  // webhooks and deliveries

std::vector<Schema> AllSchemas();

}  // namespace caisson::api
