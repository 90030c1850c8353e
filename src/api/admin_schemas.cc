// Schemas of keys, tokens, events, the audit log, usage and alerts.
#include "api/schemas.h"

namespace caisson::api {
namespace {

constexpr Schema kSchemas[] = {
    {"Time", R"({"type": "string", "format": "date-time"})"},
    {"EventTypes", R"({"type": "array", "items": {"type": "string"}})"},
    {"AuditCursor", R"({"type": "integer", "minimum": 1})"},
    {"Role", R"({"enum": ["admin", "operator", "developer", "viewer", "agent"]})"},
    {"KeyLimits",
     R"({"type": "object", "additionalProperties": false, "description": "What is left out is the server's default", "properties": {
      "requests_per_second": {"type": "number", "minimum": 0.001}, "request_burst": {"type": "number", "minimum": 1},
      "creates_per_second": {"type": "number", "minimum": 0.001}, "create_burst": {"type": "number", "minimum": 1},
      "execs_per_second": {"type": "number", "minimum": 0.001}, "exec_burst": {"type": "number", "minimum": 1},
      "sandboxes": {"type": "integer", "minimum": 1}, "cpus": {"$ref": "#/components/schemas/Cpus"}, "memory": {"$ref": "#/components/schemas/Size"}}})"},
    {"KeyCreate",
     R"({"type": "object", "additionalProperties": false, "required": ["name", "role"], "properties": {
      "name": {"type": "string", "minLength": 1, "maxLength": 128}, "role": {"$ref": "#/components/schemas/Role"},
      "tenant": {"type": "string", "pattern": "^[-_.0-9A-Za-z]{1,64}$", "description": "Default: the caller's"},
      "scopes": {"type": "array", "minItems": 1, "maxItems": 64, "items": {"type": "string", "pattern": "^([a-z]+|\\*):([a-z]+|\\*)$"}, "description": "VERB:RESOURCE; narrow the role"},
      "expires_in": {"$ref": "#/components/schemas/Duration"}, "limits": {"$ref": "#/components/schemas/KeyLimits"}}})"},
    {"Key",
     R"({"type": "object", "additionalProperties": false, "required": ["id", "name", "tenant", "role", "scopes", "limits", "state", "created_by", "created_at", "expires_at", "rotated_at", "last_used_at", "revoked_at"], "properties": {
      "id": {"type": "string"}, "name": {"type": "string"}, "tenant": {"type": "string"}, "role": {"$ref": "#/components/schemas/Role"},
      "scopes": {"type": "array", "items": {"type": "string"}}, "limits": {"$ref": "#/components/schemas/KeyLimits"}, "state": {"enum": ["active", "expired", "revoked"]},
      "created_by": {"type": "string"}, "created_at": {"$ref": "#/components/schemas/Time"},
      "expires_at": {"anyOf": [{"$ref": "#/components/schemas/Time"}, {"type": "null"}]}, "rotated_at": {"anyOf": [{"$ref": "#/components/schemas/Time"}, {"type": "null"}]},
      "last_used_at": {"anyOf": [{"$ref": "#/components/schemas/Time"}, {"type": "null"}]}, "revoked_at": {"anyOf": [{"$ref": "#/components/schemas/Time"}, {"type": "null"}]}}})"},
    {"IssuedKey",
     R"({"type": "object", "additionalProperties": false, "required": ["id", "name", "tenant", "role", "scopes", "limits", "state", "created_by", "created_at", "expires_at", "rotated_at", "last_used_at", "revoked_at", "key"], "properties": {
      "key": {"type": "string", "description": "Shown now and never again"},
      "id": {"type": "string"}, "name": {"type": "string"}, "tenant": {"type": "string"}, "role": {"$ref": "#/components/schemas/Role"},
      "scopes": {"type": "array", "items": {"type": "string"}}, "limits": {"$ref": "#/components/schemas/KeyLimits"}, "state": {"enum": ["active", "expired", "revoked"]},
      "created_by": {"type": "string"}, "created_at": {"$ref": "#/components/schemas/Time"},
      "expires_at": {"anyOf": [{"$ref": "#/components/schemas/Time"}, {"type": "null"}]}, "rotated_at": {"anyOf": [{"$ref": "#/components/schemas/Time"}, {"type": "null"}]},
      "last_used_at": {"anyOf": [{"$ref": "#/components/schemas/Time"}, {"type": "null"}]}, "revoked_at": {"anyOf": [{"$ref": "#/components/schemas/Time"}, {"type": "null"}]}}})"},
    {"KeyList",
     R"({"type": "object", "additionalProperties": false, "required": ["keys"], "properties": {"keys": {"type": "array", "items": {"$ref": "#/components/schemas/Key"}}}})"},
    {"TokenCreate",
     R"({"type": "object", "additionalProperties": false, "properties": {"expires_in": {"$ref": "#/components/schemas/Duration", "description": "At most 24 hours; default one"}}})"},
    {"Token",
     R"({"type": "object", "additionalProperties": false, "required": ["token", "session_id", "expires_at"], "properties": {
      "token": {"type": "string"}, "session_id": {"type": "string"}, "expires_at": {"$ref": "#/components/schemas/Time"}}})"},
    {"Event",
     R"({"type": "object", "additionalProperties": false, "required": ["sequence", "time", "type", "session_id", "tenant", "details"], "properties": {
      "sequence": {"type": "integer", "minimum": 0}, "time": {"$ref": "#/components/schemas/Time"}, "type": {"type": "string"},
      "session_id": {"type": ["string", "null"]}, "tenant": {"type": ["string", "null"]}, "details": {"$ref": "#/components/schemas/StringMap"}}})"},
    {"EventPage",
     R"({"type": "object", "additionalProperties": false, "required": ["events", "missed", "next_after"], "properties": {
      "events": {"type": "array", "items": {"$ref": "#/components/schemas/Event"}}, "next_after": {"type": "integer", "minimum": 0},
      "missed": {"anyOf": [{"type": "null"}, {"type": "object", "additionalProperties": false, "required": ["from", "to"], "properties": {"from": {"type": "integer"}, "to": {"type": "integer"}}}]}}})"},
    {"AuditRecord",
     R"({"type": "object", "additionalProperties": false, "required": ["seq", "time", "tenant", "actor", "key_id", "source", "verb", "object", "decision", "reason", "request_id", "hash"], "properties": {
      "seq": {"type": "integer", "minimum": 1}, "time": {"$ref": "#/components/schemas/Time"}, "tenant": {"type": "string"}, "actor": {"type": "string"}, "key_id": {"type": "string"},
      "source": {"type": "string"}, "verb": {"type": "string"}, "object": {"type": "string"}, "decision": {"type": "string"}, "reason": {"type": "string"},
      "request_id": {"type": "string"}, "hash": {"type": "string"}}})"},
    {"AuditPage",
     R"({"type": "object", "additionalProperties": false, "required": ["records", "next_cursor"], "properties": {
      "records": {"type": "array", "items": {"$ref": "#/components/schemas/AuditRecord"}}, "next_cursor": {"type": ["string", "null"]}}})"},
    {"AuditVerdict",
     R"({"type": "object", "additionalProperties": false, "required": ["sound", "records", "head", "finding"], "properties": {
      "sound": {"type": "boolean"}, "records": {"type": "integer", "minimum": 0}, "head": {"type": "string"},
      "finding": {"anyOf": [{"type": "null"}, {"type": "object", "additionalProperties": false, "required": ["seq", "what"], "properties": {"seq": {"type": "integer"}, "what": {"type": "string"}}}]}}})"},
    {"UsageCounts",
     R"({"type": "object", "additionalProperties": false, "required": ["requests", "creates", "execs", "cpu_seconds", "sandbox_seconds"], "properties": {
      "requests": {"type": "integer"}, "creates": {"type": "integer"}, "execs": {"type": "integer"}, "cpu_seconds": {"type": "number"}, "sandbox_seconds": {"type": "number"}}})"},
    {"UsageReport",
     R"({"type": "object", "additionalProperties": false, "required": ["usage", "total"], "properties": {
      "total": {"$ref": "#/components/schemas/UsageCounts"},
      "usage": {"type": "array", "items": {"type": "object", "additionalProperties": false, "required": ["day", "tenant", "key_id", "requests", "creates", "execs", "cpu_seconds", "sandbox_seconds"], "properties": {
        "day": {"type": "string", "format": "date"}, "tenant": {"type": "string"}, "key_id": {"type": "string"},
        "requests": {"type": "integer"}, "creates": {"type": "integer"}, "execs": {"type": "integer"}, "cpu_seconds": {"type": "number"}, "sandbox_seconds": {"type": "number"}}}}}})"},
    {"AlertList",
     R"({"type": "object", "additionalProperties": false, "required": ["alerts"], "properties": {"alerts": {"type": "array", "items": {
      "type": "object", "additionalProperties": false, "required": ["name", "expr", "severity", "description", "state", "value", "since"], "properties": {
        "name": {"type": "string"}, "expr": {"type": "string"}, "severity": {"type": "string"}, "description": {"type": "string"}, "state": {"enum": ["inactive", "pending", "firing"]},
        "value": {"type": ["number", "null"]}, "since": {"anyOf": [{"$ref": "#/components/schemas/Time"}, {"type": "null"}]}}}}}})"},
};

}  // namespace

std::span<const Schema> AdminSchemas() { return kSchemas; }

}  // namespace caisson::api
