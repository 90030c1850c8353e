// Schemas of sessions and commands.
#include "api/schemas.h"

namespace caisson::api {
namespace {

constexpr Schema kSchemas[] = {
    {"Size",
     R"({"description": "Bytes, or a text such as \"512M\"", "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9.]+ *[KMGTkmgt]?i?[Bb]?$"}]})"},
    {"Duration",
     R"({"description": "Seconds, or a text such as \"1h30m\" or \"500ms\"", "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": "^[0-9.a-z ]+$"}]})"},
    {"Cpus",
     R"({"description": "Cores, or a text such as \"0.5\" or \"500m\"", "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": "^[0-9.]+m?$"}]})"},
    {"StringMap", R"({"type": "object", "additionalProperties": {"type": "string"}})"},
    {"LabelFilters", R"({"type": "array", "items": {"type": "string", "pattern": "^[^=]+="}})"},
    {"SessionState",
     R"({"enum": ["creating", "running", "paused", "stopping", "destroyed", "failed", "lost"]})"},
    {"SessionStates",
     R"({"type": "array", "items": {"$ref": "#/components/schemas/SessionState"}})"},
    {"ProcessState", R"({"enum": ["running", "ended"]})"},
    {"ArchiveFormat", R"({"enum": ["tar", "tar.gz"]})"},
    {"WaitSeconds", R"({"type": "integer", "minimum": 0, "maximum": 3600})"},
    {"Limits",
     R"({"type": "object", "additionalProperties": false, "description": "What is left out is the profile's default. A limit that this host cannot enforce is refused.", "properties": {
      "memory": {"$ref": "#/components/schemas/Size"}, "swap": {"$ref": "#/components/schemas/Size"}, "cpus": {"$ref": "#/components/schemas/Cpus"},
      "pids": {"type": "integer", "minimum": 1, "maximum": 4294967295}, "disk": {"$ref": "#/components/schemas/Size"}, "inodes": {"type": "integer", "minimum": 1},
      "open_files": {"type": "integer", "minimum": 1, "maximum": 4294967295}, "io_read": {"$ref": "#/components/schemas/Size"}, "io_write": {"$ref": "#/components/schemas/Size"},
      "io_read_ops": {"type": "integer", "minimum": 1}, "io_write_ops": {"type": "integer", "minimum": 1}, "memory_bandwidth": {"type": "integer", "minimum": 1, "maximum": 100},
      "wall_time": {"$ref": "#/components/schemas/Duration"}, "output": {"$ref": "#/components/schemas/Size"}}})"},
    {"LimitState",
     R"({"type": "object", "additionalProperties": false, "required": ["name", "enforced"], "properties": {
      "name": {"type": "string"}, "enforced": {"type": "boolean"}, "value": {"type": "integer"}, "by": {"type": "string"}, "reason": {"type": "string"}}})"},
    {"SessionCreate", R"({"type": "object", "additionalProperties": false, "properties": {
      "environment": {"type": "string", "minLength": 1, "maxLength": 256, "default": "host"}, "provider": {"type": "string", "maxLength": 64},
      "profile": {"enum": ["default", "strict"]}, "user": {"type": "string", "maxLength": 64},
      "min_isolation": {"enum": ["any", "namespaces-rootless", "namespaces"], "description": "The session is refused when it would be isolated less than this"},
      "limits": {"$ref": "#/components/schemas/Limits"},
      "network": {"enum": ["none"]}, "env": {"$ref": "#/components/schemas/StringMap"}, "metadata": {"$ref": "#/components/schemas/StringMap"},
      "labels": {"$ref": "#/components/schemas/StringMap"}, "name": {"type": "string"}, "timeout": {"$ref": "#/components/schemas/Duration"},
      "artifacts": {"type": "array", "maxItems": 64, "items": {"type": "string"}, "description": "Globs of files that are kept after the session's end"},
      "scaling": {"type": "object", "additionalProperties": false, "properties": {
        "memory": {"type": "object", "additionalProperties": false, "properties": {"floor": {"$ref": "#/components/schemas/Size"}, "ceiling": {"$ref": "#/components/schemas/Size"}}},
        "cpus": {"type": "object", "additionalProperties": false, "properties": {"floor": {"$ref": "#/components/schemas/Cpus"}, "ceiling": {"$ref": "#/components/schemas/Cpus"}}}}},
      "warm": {"type": "boolean", "default": true, "description": "Whether a sandbox made ahead may be used"},
      "queue": {"$ref": "#/components/schemas/Duration", "description": "How long to wait when the host is full"}}})"},
    {"SessionPatch", R"({"type": "object", "additionalProperties": false, "properties": {
      "timeout": {"$ref": "#/components/schemas/Duration"}, "limits": {"$ref": "#/components/schemas/Limits"},
      "metadata": {"$ref": "#/components/schemas/StringMap"}, "labels": {"$ref": "#/components/schemas/StringMap"}}})"},
    {"SandboxStats", R"({"type": "object", "additionalProperties": false,
      "required": ["memory_bytes", "memory_peak_bytes", "oom_kills", "cpu_seconds", "cpu_throttled_seconds", "processes", "refused_forks", "io_read_bytes", "io_write_bytes", "disk_bytes", "disk_used_bytes", "disk_inodes", "disk_used_inodes"],
      "properties": {"memory_bytes": {"type": "integer"}, "memory_peak_bytes": {"type": "integer"}, "oom_kills": {"type": "integer"}, "cpu_seconds": {"type": "number"},
      "cpu_throttled_seconds": {"type": "number"}, "processes": {"type": "integer"}, "refused_forks": {"type": "integer"}, "io_read_bytes": {"type": "integer"}, "io_write_bytes": {"type": "integer"},
      "disk_bytes": {"type": "integer"}, "disk_used_bytes": {"type": "integer"}, "disk_inodes": {"type": "integer"}, "disk_used_inodes": {"type": "integer"}}})"},
    {"Session", R"({"type": "object", "additionalProperties": false,
      "required": ["session_id", "sandbox_id", "state", "provider", "environment", "profile", "network", "url", "created_at", "updated_at", "expires_at", "timeout", "metadata", "labels", "name", "reason", "ended_at"],
      "properties": {"session_id": {"type": "string"}, "sandbox_id": {"type": "string"},
      "state": {"$ref": "#/components/schemas/SessionState"}, "provider": {"type": "string"}, "environment": {"type": "string"},
      "profile": {"enum": ["default", "strict"]}, "network": {"type": "string"}, "url": {"type": "string"}, "created_at": {"type": "string", "format": "date-time"},
      "updated_at": {"type": "string", "format": "date-time"}, "expires_at": {"type": "string", "format": "date-time"}, "timeout": {"type": "number"},
      "metadata": {"$ref": "#/components/schemas/StringMap"}, "labels": {"$ref": "#/components/schemas/StringMap"}, "name": {"type": ["string", "null"]},
      "reason": {"type": ["string", "null"]}, "ended_at": {"type": ["string", "null"], "format": "date-time"}, "stats": {"$ref": "#/components/schemas/SandboxStats"},
      "isolation": {"type": "object", "additionalProperties": {"type": "string"}, "description": "What isolates it, read back from the kernel"},
      "limits": {"type": "array", "items": {"$ref": "#/components/schemas/LimitState"}}}})"},
    {"SessionList",
     R"({"type": "object", "additionalProperties": false, "required": ["sessions", "next_cursor"], "properties": {
      "sessions": {"type": "array", "items": {"$ref": "#/components/schemas/Session"}}, "next_cursor": {"type": ["string", "null"]}}})"},
    {"Exec",
     R"({"type": "object", "additionalProperties": false, "description": "One of command and argv", "oneOf": [{"required": ["command"]}, {"required": ["argv"]}], "properties": {
      "command": {"type": "string", "minLength": 1, "description": "For /bin/sh -c"}, "argv": {"type": "array", "minItems": 1, "items": {"type": "string"}},
      "stdin": {"type": "string"}, "stdin_base64": {"type": "string"}, "stdin_open": {"type": "boolean"}, "pty": {"type": "boolean"},
      "rows": {"type": "integer", "minimum": 1, "maximum": 1000}, "cols": {"type": "integer", "minimum": 1, "maximum": 1000},
      "env": {"$ref": "#/components/schemas/StringMap"}, "cwd": {"type": "string", "maxLength": 4096}, "user": {"type": "string", "maxLength": 64}, "label": {"type": "string", "maxLength": 256},
      "timeout": {"$ref": "#/components/schemas/Duration"}, "output_limit": {"$ref": "#/components/schemas/Size"}, "on_overflow": {"enum": ["block", "drop_oldest"]},
      "artifacts": {"type": "array", "maxItems": 64, "items": {"type": "string"}}, "background": {"type": "boolean"}}})"},
    {"Outcome",
     R"({"type": "object", "additionalProperties": false, "required": ["status", "reason"], "properties": {
      "status": {"enum": ["exited", "signaled", "timeout", "out_of_memory", "process_limit", "disk_full", "output_limit", "policy", "cancelled", "lost", "unknown"]}, "reason": {"type": "string"}}})"},
    {"ExecUsage",
     R"({"type": "object", "additionalProperties": false, "required": ["cpu_user_seconds", "cpu_system_seconds", "max_rss_bytes", "memory_peak_bytes", "stdout_bytes", "stderr_bytes", "dropped_bytes"], "properties": {
      "cpu_user_seconds": {"type": "number"}, "cpu_system_seconds": {"type": "number"}, "max_rss_bytes": {"type": "integer"}, "memory_peak_bytes": {"type": "integer"},
      "stdout_bytes": {"type": "integer"}, "stderr_bytes": {"type": "integer"}, "dropped_bytes": {"type": "integer"}}})"},
    {"KeptArtifact",
     R"({"type": "object", "additionalProperties": false, "required": ["path", "name", "size"], "properties": {"path": {"type": "string"}, "name": {"type": "string"}, "size": {"type": "integer"}}})"},
    {"ExecResult", R"({"type": "object", "additionalProperties": false,
      "required": ["process_id", "exit_code", "outcome", "usage", "duration_ms", "stdout", "stderr", "stdout_omitted", "stderr_omitted", "started_at", "artifacts"],
      "properties": {"process_id": {"type": "integer"}, "exit_code": {"type": "integer", "description": "As a shell reports it: 128 + signal, 124 for a timeout"}, "signal": {"type": "integer"},
      "outcome": {"$ref": "#/components/schemas/Outcome"}, "usage": {"$ref": "#/components/schemas/ExecUsage"}, "duration_ms": {"type": "number"},
      "stdout": {"type": "string"}, "stderr": {"type": "string"}, "stdout_base64": {"type": "string", "description": "There when stdout is not UTF-8"}, "stderr_base64": {"type": "string"},
      "stdout_omitted": {"type": "integer"}, "stderr_omitted": {"type": "integer"}, "started_at": {"type": "string", "format": "date-time"},
      "artifacts": {"type": "array", "items": {"$ref": "#/components/schemas/KeptArtifact"}}}})"},
    {"OutputRange",
     R"({"type": "object", "additionalProperties": false, "required": ["stdout_begin", "stdout_end", "stderr_begin", "stderr_end"], "properties": {
      "stdout_begin": {"type": "integer"}, "stdout_end": {"type": "integer"}, "stderr_begin": {"type": "integer"}, "stderr_end": {"type": "integer"}}})"},
    {"Process",
     R"({"type": "object", "additionalProperties": false, "required": ["process_id", "command", "label", "pty", "started_at", "state"], "properties": {
      "process_id": {"type": "integer"}, "pid": {"type": "integer", "description": "There while the command is at hand, like output"}, "command": {"type": "string"},
      "argv": {"type": "array", "items": {"type": "string"}}, "cwd": {"type": "string"}, "user": {"type": "string"}, "ended_at": {"type": "string", "format": "date-time"}, "label": {"type": "string"}, "pty": {"type": "boolean"},
      "started_at": {"type": "string", "format": "date-time"}, "state": {"enum": ["running", "ended"]}, "output": {"$ref": "#/components/schemas/OutputRange"},
      "exit_code": {"type": "integer"}, "signal": {"type": "integer"}, "outcome": {"$ref": "#/components/schemas/Outcome"}, "usage": {"$ref": "#/components/schemas/ExecUsage"}, "duration_ms": {"type": "number"}}})"},
    {"ProcessList",
     R"({"type": "object", "additionalProperties": false, "required": ["processes", "next_cursor"], "properties": {"processes": {"type": "array", "items": {"$ref": "#/components/schemas/Process"}}, "next_cursor": {"type": ["string", "null"]}}})"},
    {"ProcessOutput",
     R"({"type": "object", "additionalProperties": false, "required": ["process_id", "pid", "command", "label", "pty", "started_at", "state", "output", "stdout", "stderr", "gaps"], "properties": {
      "process_id": {"type": "integer"}, "pid": {"type": "integer"}, "command": {"type": "string"}, "label": {"type": "string"}, "pty": {"type": "boolean"},
      "started_at": {"type": "string", "format": "date-time"}, "state": {"enum": ["running", "ended"]}, "output": {"$ref": "#/components/schemas/OutputRange"},
      "exit_code": {"type": "integer"}, "signal": {"type": "integer"}, "outcome": {"$ref": "#/components/schemas/Outcome"}, "usage": {"$ref": "#/components/schemas/ExecUsage"}, "duration_ms": {"type": "number"},
      "stdout": {"type": "string"}, "stderr": {"type": "string"}, "stdout_base64": {"type": "string"}, "stderr_base64": {"type": "string"},
      "gaps": {"type": "array", "items": {"type": "object", "additionalProperties": false, "required": ["stream", "from", "to"], "properties": {"stream": {"enum": ["stdout", "stderr"]}, "from": {"type": "integer"}, "to": {"type": "integer"}}}}}})"},
    {"Signal", R"({"type": "object", "additionalProperties": false, "properties": {"signal": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 64}, {"type": "string"}], "default": "SIGTERM"}, "scope": {"enum": ["process", "group", "tree"]}}})"},
    {"Input",
     R"({"type": "object", "additionalProperties": false, "properties": {"data": {"type": "string"}, "data_base64": {"type": "string"}, "eof": {"type": "boolean"}}})"},
    {"Resize",
     R"({"type": "object", "additionalProperties": false, "required": ["rows", "cols"], "properties": {"rows": {"type": "integer", "minimum": 1, "maximum": 1000}, "cols": {"type": "integer", "minimum": 1, "maximum": 1000}}})"},
};

}  // namespace

std::span<const Schema> SessionSchemas() { return kSchemas; }

}  // namespace caisson::api
