// Schemas of webhooks and their deliveries.
#include "api/schemas.h"

namespace caisson::api {
namespace {

constexpr Schema kSchemas[] = {
    {"DeliveryState", R"({"enum": ["pending", "delivered", "dead"]})"},
    {"WebhookCreate",
     R"({"type": "object", "additionalProperties": false, "required": ["url"], "properties": {
      "url": {"type": "string", "pattern": "^(https?|unix):", "maxLength": 2048}, "types": {"type": "array", "maxItems": 32, "items": {"type": "string"}, "description": "Of events; default: all"},
      "secret": {"type": "string", "minLength": 16, "maxLength": 256, "description": "Signs the deliveries; made when left out"},
      "active": {"type": "boolean", "default": true}, "every_tenant": {"type": "boolean", "default": false, "description": "Admins: the events of all tenants, and alerts"}}})"},
    {"WebhookPatch",
     R"({"type": "object", "additionalProperties": false, "properties": {
      "url": {"type": "string", "pattern": "^(https?|unix):", "maxLength": 2048}, "types": {"type": "array", "maxItems": 32, "items": {"type": "string"}}, "active": {"type": "boolean"}}})"},
    {"Webhook",
     R"({"type": "object", "additionalProperties": false, "required": ["id", "tenant", "url", "types", "active", "created_at"], "properties": {
      "id": {"type": "string"}, "tenant": {"type": ["string", "null"], "description": "null: every tenant"}, "url": {"type": "string"}, "types": {"type": "array", "items": {"type": "string"}},
      "active": {"type": "boolean"}, "created_at": {"$ref": "#/components/schemas/Time"}}})"},
    {"NewWebhook",
     R"({"type": "object", "additionalProperties": false, "required": ["id", "tenant", "url", "types", "active", "created_at", "secret"], "properties": {
      "secret": {"type": "string", "description": "Shown now and never again"},
      "id": {"type": "string"}, "tenant": {"type": ["string", "null"], "description": "null: every tenant"}, "url": {"type": "string"}, "types": {"type": "array", "items": {"type": "string"}},
      "active": {"type": "boolean"}, "created_at": {"$ref": "#/components/schemas/Time"}}})"},
    {"WebhookList",
     R"({"type": "object", "additionalProperties": false, "required": ["webhooks"], "properties": {"webhooks": {"type": "array", "items": {"$ref": "#/components/schemas/Webhook"}}}})"},
    {"DeliveryQueued",
     R"({"type": "object", "additionalProperties": false, "required": ["delivery_id"], "properties": {"delivery_id": {"type": "integer", "minimum": 1}}})"},
    {"Delivery",
     R"({"type": "object", "additionalProperties": false, "required": ["id", "webhook_id", "state", "attempts", "next_attempt_at", "last_error", "created_at", "ended_at", "event"], "properties": {
      "id": {"type": "integer"}, "webhook_id": {"type": "string"}, "state": {"$ref": "#/components/schemas/DeliveryState"}, "attempts": {"type": "integer", "minimum": 0},
      "next_attempt_at": {"anyOf": [{"$ref": "#/components/schemas/Time"}, {"type": "null"}]}, "last_error": {"type": ["string", "null"]},
      "created_at": {"$ref": "#/components/schemas/Time"}, "ended_at": {"anyOf": [{"$ref": "#/components/schemas/Time"}, {"type": "null"}]},
      "event": {"anyOf": [{"$ref": "#/components/schemas/Event"}, {"type": "null"}]}}})"},
    {"DeliveryList",
     R"({"type": "object", "additionalProperties": false, "required": ["deliveries"], "properties": {"deliveries": {"type": "array", "items": {"$ref": "#/components/schemas/Delivery"}}}})"},
};

}  // namespace

std::span<const Schema> WebhookSchemas() { return kSchemas; }

}  // namespace caisson::api
