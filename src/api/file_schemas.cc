// Schemas of files, archives and artifacts.
#include "api/schemas.h"

namespace caisson::api {
namespace {

constexpr Schema kSchemas[] = {
    {"WriteMode", R"({"enum": ["replace", "create"]})"},
    {"Specials", R"({"enum": ["refuse", "skip"]})"},
    {"Unreadable", R"({"enum": ["fail", "skip"]})"},
    {"TreeDepth", R"({"type": "integer", "minimum": 1, "maximum": 32})"},
    {"TreeSize", R"({"type": "integer", "minimum": 1, "maximum": 10000})"},
    {"File", R"({"type": "object", "additionalProperties": false,
      "required": ["name", "path", "type", "size", "permissions", "uid", "gid", "links", "modified_at", "changed_at", "accessed_at"],
      "properties": {"name": {"type": "string"}, "path": {"type": "string"},
      "type": {"enum": ["file", "directory", "symlink", "fifo", "socket", "character_device", "block_device", "other"]},
      "size": {"type": "integer"}, "permissions": {"type": "string", "pattern": "^[0-7]{4}$"}, "uid": {"type": "integer"}, "gid": {"type": "integer"}, "links": {"type": "integer"},
      "modified_at": {"type": "string", "format": "date-time"}, "changed_at": {"type": "string", "format": "date-time"}, "accessed_at": {"type": "string", "format": "date-time"},
      "etag": {"type": "string", "description": "Of a file; another one whenever its content is another"}, "target": {"type": "string", "description": "Of a symbolic link"}}})"},
    {"FileList",
     R"({"type": "object", "additionalProperties": false, "required": ["path", "entries", "next_cursor", "truncated"], "properties": {
      "path": {"type": "string"}, "entries": {"type": "array", "items": {"$ref": "#/components/schemas/File"}}, "next_cursor": {"type": ["string", "null"]},
      "truncated": {"type": "boolean", "description": "A list of several levels reached its limit"}}})"},
    {"FileMove",
     R"({"type": "object", "additionalProperties": false, "required": ["from", "to"], "properties": {
      "from": {"$ref": "#/components/schemas/FilePath"}, "to": {"$ref": "#/components/schemas/FilePath"}, "overwrite": {"type": "boolean", "default": false}, "user": {"type": "string", "maxLength": 64}}})"},
    {"DirectoryCreate",
     R"({"type": "object", "additionalProperties": false, "required": ["path"], "properties": {
      "path": {"$ref": "#/components/schemas/FilePath"}, "parents": {"type": "boolean", "default": false, "description": "Make what is missing above; fine if it exists"},
      "permissions": {"$ref": "#/components/schemas/Permissions", "default": "0755"}, "user": {"type": "string", "maxLength": 64}}})"},
    {"SymlinkCreate",
     R"({"type": "object", "additionalProperties": false, "required": ["path", "target"], "properties": {
      "path": {"$ref": "#/components/schemas/FilePath"}, "target": {"type": "string", "minLength": 1, "maxLength": 4095}, "user": {"type": "string", "maxLength": 64}}})"},
    {"FilePermissions",
     R"({"type": "object", "additionalProperties": false, "required": ["path", "permissions"], "properties": {
      "path": {"$ref": "#/components/schemas/FilePath"}, "permissions": {"$ref": "#/components/schemas/Permissions"}, "user": {"type": "string", "maxLength": 64}}})"},
    {"FileSign",
     R"({"type": "object", "additionalProperties": false, "required": ["path"], "properties": {
      "path": {"$ref": "#/components/schemas/FilePath"}, "method": {"enum": ["GET", "PUT"], "default": "GET"}, "user": {"type": "string", "maxLength": 64},
      "expires_in": {"$ref": "#/components/schemas/Duration", "description": "At most seven days; default an hour"}}})"},
    {"SignedUrl",
     R"({"type": "object", "additionalProperties": false, "required": ["url", "method", "expires_at"], "properties": {
      "url": {"type": "string", "description": "To be put after the server's address"}, "method": {"enum": ["GET", "PUT"]}, "expires_at": {"type": "string", "format": "date-time"}}})"},
    {"ArtifactKeep",
     R"({"type": "object", "additionalProperties": false, "required": ["patterns"], "properties": {
      "patterns": {"type": "array", "minItems": 1, "maxItems": 64, "items": {"type": "string"}, "description": "Globs; what does not begin with / is below /workspace"}}})"},
    {"ArtifactsKept",
     R"({"type": "object", "additionalProperties": false, "required": ["artifacts"], "properties": {
      "artifacts": {"type": "array", "items": {"$ref": "#/components/schemas/KeptArtifact"}}}})"},
    {"ArtifactList",
     R"({"type": "object", "additionalProperties": false, "required": ["artifacts"], "properties": {"artifacts": {"type": "array", "items":
      {"type": "object", "additionalProperties": false, "required": ["name", "path", "size", "sha256", "created_at", "url"], "properties": {
      "name": {"type": "string"}, "path": {"type": "string", "description": "Where it stood in the sandbox"}, "size": {"type": "integer"}, "sha256": {"type": "string"},
      "created_at": {"type": "string", "format": "date-time"}, "url": {"type": "string"}}}}}})"},
    {"TarResult",
     R"({"type": "object", "additionalProperties": false, "required": ["path", "entries", "skipped", "bytes"], "properties": {
      "path": {"type": "string"}, "entries": {"type": "integer"}, "skipped": {"type": "integer", "description": "Devices and FIFOs"}, "bytes": {"type": "integer"}}})"},
};

}  // namespace

std::span<const Schema> FileSchemas() { return kSchemas; }

}  // namespace caisson::api
