#include "api/openapi.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "json/json.h"

namespace caisson::api {
namespace {

json::Object Reference(std::string_view schema) {
  return {{"$ref", "#/components/schemas/" + std::string(schema)}};
}

// {id} and {path...} of a pattern; OpenAPI writes both {name}.
std::vector<std::string> PathParameters(std::string_view pattern, std::string& plain) {
  std::vector<std::string> names;
  plain.clear();
  for (size_t at = 0; at < pattern.size();) {
    if (pattern[at] != '{') {
      plain += pattern[at++];
      continue;
    }
    const size_t end = pattern.find('}', at);
    std::string name(pattern.substr(at + 1, end - at - 1));
    if (name.ends_with("...")) name.resize(name.size() - 3);
    plain += "{" + name + "}";
    names.push_back(std::move(name));
    at = end + 1;
  }
  return names;
}

// A JSON type, or a schema's name, which begins with a capital letter.
bool IsSchemaName(std::string_view type) { return type.front() >= 'A' && type.front() <= 'Z'; }

json::Object SchemaOf(const Parameter& parameter) {
  if (IsSchemaName(parameter.type)) return Reference(parameter.type);
  return {{"type", parameter.type}};
}

json::Array ParametersOf(const Route& route, const std::vector<std::string>& in_path) {
  json::Array parameters;
  for (const std::string& name : in_path)
    parameters.push_back(json::Object{{"name", name},
                                      {"in", "path"},
                                      {"required", true},
                                      {"schema", json::Object{{"type", "string"}}}});
  for (const Parameter& parameter : route.parameters)
    parameters.push_back(
        json::Object{{"name", parameter.name},
                     {"in", parameter.in == Parameter::In::kQuery ? "query" : "header"},
                     {"required", parameter.need == Parameter::Need::kRequired},
                     {"description", parameter.meaning},
                     {"schema", SchemaOf(parameter)}});
  return parameters;
}

json::Object ResponsesOf(const Route& route) {
  json::Object responses;
  for (const Outcome& outcome : route.outcomes) {
    const std::string status = std::to_string(outcome.status);
    if (!responses.contains(status))
      responses[status] = json::Object{{"description", net::ReasonOf(outcome.status)}};
    const bool has_body = !outcome.schema.empty() || outcome.media != "application/json";
    if (!has_body) continue;
    json::Object& response = responses[status].as_object();
    if (!response.contains("content")) response["content"] = json::Object();
    response["content"].as_object()[outcome.media] =
        outcome.schema.empty() ? json::Object()
                               : json::Object{{"schema", Reference(outcome.schema)}};
  }
  const bool classic = route.errors == ErrorShape::kClassic;
  responses["default"] = json::Object{
      {"description", "What went wrong, and what to do about it"},
      {"content",
       json::Object{{classic ? "application/json" : "application/problem+json",
                     json::Object{{"schema", Reference(classic ? "ClassicError" : "Problem")}}}}}};
  return responses;
}

json::Object OperationOf(const Route& route, const std::vector<std::string>& in_path) {
  json::Object operation{{"operationId", route.id},
                         {"summary", route.summary},
                         {"tags", json::Array{json::Value(route.group)}},
                         {"parameters", ParametersOf(route, in_path)},
                         {"responses", ResponsesOf(route)}};
  if (!route.request.empty())
    operation["requestBody"] = json::Object{
        {"content",
         json::Object{{"application/json", json::Object{{"schema", Reference(route.request)}}}}}};
  else if (!route.request_media.empty())
    operation["requestBody"] =
        json::Object{{"content", json::Object{{route.request_media, json::Object()}}}};
  if (route.permission.everybody())
    operation["security"] = json::Array();
  else
    operation["x-permission"] = std::string(NameOf(route.permission.verb())) + ":" +
                                std::string(NameOf(route.permission.resource()));
  return operation;
}

Status CheckNames(const Route& route, const std::set<std::string_view>& known) {
  std::vector<std::string_view> named;
  if (!route.request.empty()) named.push_back(route.request);
  for (const Outcome& outcome : route.outcomes)
    if (!outcome.schema.empty()) named.push_back(outcome.schema);
  for (const Parameter& parameter : route.parameters)
    if (IsSchemaName(parameter.type)) named.push_back(parameter.type);
  for (const std::string_view name : named)
    if (!known.contains(name))
      return Error(ErrorCode::kInternal, "route " + std::string(route.id) + " names the schema " +
                                             std::string(name) + ", which does not exist");
  return {};
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

}  // namespace

Result<std::string> OpenApiDocument(std::span<const Route> routes, std::span<const Schema> schemas,
                                    std::string_view version) {
  json::Object components;
  std::set<std::string_view> known;
  for (const Schema& schema : schemas) {
    auto parsed = json::Parse(schema.json);
    if (!parsed)
      return std::move(parsed)
          .error()
          .WithCode(ErrorCode::kInternal)
          .Because("read the schema " + std::string(schema.name));
    if (!known.insert(schema.name).second)
      return Error(ErrorCode::kInternal,
                   "there are two schemas with the name " + std::string(schema.name));
    components[schema.name] = *std::move(parsed);
  }
  json::Object paths;
  for (const Route& route : routes) {
    CAISSON_TRY(CheckNames(route, known));
    std::string path;
    const auto in_path = PathParameters(route.pattern, path);
    if (!paths.contains(path)) paths[path] = json::Object();
    paths[path].as_object()[Lower(route.method)] = OperationOf(route, in_path);
  }
  json::Object document{
      {"openapi", "3.1.0"},
      {"info", json::Object{{"title", "Caisson"},
                            {"version", version},
                            {"description",
                             "Sandboxes for AI agents: sessions, commands, files. In a request, a "
                             "field that is null counts as left out."},
                            {"license",
                             json::Object{{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}}}},
      {"paths", std::move(paths)},
      {"components",
       json::Object{{"schemas", std::move(components)},
                    {"securitySchemes",
                     json::Object{{"key", json::Object{{"type", "http"}, {"scheme", "bearer"}}}}}}},
      {"security", json::Array{json::Object{{"key", json::Array()}}}}};
  return json::Write(document);
}

}  // namespace caisson::api
