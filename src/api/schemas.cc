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
