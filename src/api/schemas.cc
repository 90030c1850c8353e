#include "api/schemas.h"

namespace caisson::api {
namespace {

constexpr Schema kCommon[] = {
    {"Problem",
     R"({"type": "object", "description": "RFC 9457", "required": ["type", "title", "status", "code", "detail", "retryable"], "properties": {
      "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"}, "code": {"type": "string", "description": "Stable; see docs/reference/errors.md"},
      "detail": {"type": "string"}, "remediation": {"type": "string"}, "request_id": {"type": "string"}, "retryable": {"type": "boolean"}}})"},
    {"ClassicError",
     R"({"type": "object", "required": ["error", "code", "request_id"], "additionalProperties": false, "properties": {
      "error": {"type": "string"}, "code": {"type": "string"}, "remediation": {"type": "string"}, "request_id": {"type": "string"}}})"},
    {"FilePath",
     R"({"type": "string", "description": "Absolute, inside the sandbox", "pattern": "^/", "maxLength": 4095})"},
    {"Permissions",
     R"({"type": "string", "description": "Octal, at most 1777", "pattern": "^0?[01]?[0-7]{1,3}$"})"},
    {"PageSize", R"({"type": "integer", "minimum": 1, "maximum": 1000})"},
    {"Offset", R"({"type": "integer", "minimum": 0})"},
    {"TimeFilter",
     R"({"type": "string", "description": "A day, or a time in UTC", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}(T[0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]{3})?Z)?$"})"},
};

}  // namespace

std::span<const Schema> CommonSchemas() { return kCommon; }

std::vector<Schema> AllSchemas() {
  std::vector<Schema> all;
  for (const auto schemas : {CommonSchemas(), SessionSchemas(), FileSchemas(), ServerSchemas(),
                             AdminSchemas(), WebhookSchemas()})
    all.insert(all.end(), schemas.begin(), schemas.end());
  return all;
}

}  // namespace caisson::api
