// Schemas of the server's own routes and of the original APIs.
#include "api/schemas.h"

namespace caisson::api {
namespace {

constexpr Schema
    kSchemas
        [] =
            {
                {"Health",
                 R"({"type": "object", "additionalProperties": false, "required": ["status", "version"], "properties": {"status": {"enum": ["ok"]}, "version": {"type": "string"}}})"},
                {"OpenApi",
                 R"({"type": "object", "required": ["openapi", "info", "paths", "components"]})"},
                {"Ready",
                 R"({"type": "object", "additionalProperties": false, "required": ["status", "checks"], "properties": {"status": {"enum": ["ready", "not_ready"]}, "checks": {"type": "object", "additionalProperties": {"type": "string"}}}})"},
                {"ClassicSession",
                 R"({"type": "object", "additionalProperties": false, "required": ["session_id"], "properties": {"session_id": {"type": "string"}}})"},
                {"ClassicExecute",
                 R"({"type": "object", "additionalProperties": false, "oneOf": [{"required": ["session_id", "command"]}, {"required": ["task"]}], "properties": {"session_id": {"type": "string"}, "command": {"type": "string", "minLength": 1}, "timeout": {"$ref": "#/components/schemas/Duration"}, "task": {"type": "string", "description": "Needs an agent layer; answered 501 without one"}}})"},
                {"ClassicOutput",
                 R"({"type": "object", "additionalProperties": false, "required": ["exit_code", "output"], "properties": {"exit_code": {"type": "integer"}, "output": {"type": "string"}}})"},
                {"ClassicCleanup",
                 R"({"type": "object", "additionalProperties": false, "required": ["session_id"], "properties": {"session_id": {"type": "string"}}})"},
                {"ClassicCleaned",
                 R"({"type": "object", "additionalProperties": false, "required": ["status", "session_id"], "properties": {"status": {"enum": ["cleaned"]}, "session_id": {"type": "string"}}})"},
                {"ClassicCode",
                 R"({"type": "object", "additionalProperties": false, "required": ["session_id", "code"], "properties": {"session_id": {"type": "string"}, "code": {"type": "string"}}})"},
                {"ClassicCodeResult",
                 R"({"type": "object", "additionalProperties": false, "required": ["stdout", "stderr", "results", "artifacts"], "properties": {"stdout": {"type": "string"}, "stderr": {"type": "string"}, "results": {"type": "array"}, "artifacts": {"type": "array"}}})"},
                {"ClassicFiles",
                 R"({"type": "object", "additionalProperties": false, "required": ["files"], "properties": {"files": {"type": "array", "items": {"type": "object", "additionalProperties": false, "required": ["name", "path", "type", "size"], "properties": {"name": {"type": "string"}, "path": {"type": "string"}, "type": {"enum": ["file", "directory", "symlink"]}, "size": {"type": "integer"}}}}}})"},
                {"ClassicFile",
                 R"({"type": "object", "additionalProperties": false, "required": ["session_id", "path"], "oneOf": [{"required": ["content"]}, {"required": ["content_base64"]}], "properties": {"session_id": {"type": "string"}, "path": {"type": "string", "minLength": 1, "maxLength": 4096}, "content": {"type": "string"}, "content_base64": {"type": "string"}}})"},
                {"ClassicFileWritten",
                 R"({"type": "object", "additionalProperties": false, "required": ["path", "size"], "properties": {"path": {"type": "string"}, "size": {"type": "integer"}}})"},
};

}  // namespace

std::span<const Schema> ServerSchemas() { return kSchemas; }

}  // namespace caisson::api
