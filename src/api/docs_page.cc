#include "api/docs_page.h"

#include <map>
#include <vector>

#include "json/json.h"

namespace caisson::api {
namespace {

constexpr std::string_view kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Caisson API</title>
<style>
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --accent: #1f7a8c; }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif; }
header { padding: 1.2rem 2rem; border-bottom: 1px solid var(--line); }
header h1 { margin: 0; font-size: 1.4rem; } header p { margin: .2rem 0 0; opacity: .75; }
.page { display: grid; grid-template-columns: 15rem minmax(0, 1fr); max-width: 80rem; margin: 0 auto; }
nav { padding: 1rem; position: sticky; top: 0; height: 100vh; overflow: auto; font-size: .85rem; }
nav h2 { font-size: .75rem; text-transform: uppercase; letter-spacing: .06em; margin: 1rem 0 .2rem; opacity: .7; }
nav a { display: block; padding: .1rem 0; color: inherit; text-decoration: none; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
nav a:hover { color: var(--accent); }
main { padding: 1rem 2rem 4rem; min-width: 0; }
section > h2 { text-transform: capitalize; border-bottom: 1px solid var(--line); padding-bottom: .3rem; margin-top: 2rem; }
article { border: 1px solid var(--line); border-radius: 8px; margin: 1rem 0; padding: .8rem 1rem; overflow-x: auto; }
article h3 { margin: 0; font: 600 .95rem/1.6 ui-monospace, monospace; overflow-wrap: anywhere; }
.verb { display: inline-block; min-width: 4.2rem; padding: 0 .4rem; margin-right: .5rem; border-radius: 4px; text-align: center; color: #fff; font-size: .8rem; }
.GET { background: #1f7a8c; } .POST { background: #3a7d44; } .PUT { background: #8a6d1d; } .PATCH { background: #7b5ea7; } .DELETE { background: #a63d40; } .HEAD { background: #666; }
article p { margin: .3rem 0; } .need { font-size: .8rem; opacity: .75; }
table { border-collapse: collapse; margin: .4rem 0; } th, td { text-align: left; padding: .15rem .8rem .15rem 0; vertical-align: top; } th { font-weight: 600; font-size: .8rem; opacity: .7; }
pre { background: var(--soft); padding: .6rem .8rem; border-radius: 6px; overflow: auto; font-size: .8rem; margin: .3rem 0; }
summary { cursor: pointer; } code { font-family: ui-monospace, monospace; }
@media (max-width: 60rem) { .page { display: block; } nav { position: static; height: auto; } main { padding: 1rem; } }
</style></head><body>
)";

std::string Escape(std::string_view text) {
  std::string out;
  for (const char c : text) switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  return out;
}

using SchemaTexts = std::map<std::string_view, std::string>;

// Schemas are checked when /openapi.json is made; one that is none is shown as it stands.
SchemaTexts TextsOf(std::span<const Schema> schemas) {
  SchemaTexts texts;
  for (const Schema& schema : schemas) {
    auto parsed = json::Parse(schema.json);
    texts[schema.name] = parsed ? json::WriteIndented(*parsed) : std::string(schema.json);
  }
  return texts;
}

void AddSchema(std::string& page, std::string_view title, std::string_view name,
               const SchemaTexts& texts) {
  page += "<details><summary>" + Escape(title) + " <code>" + Escape(name) +
          "</code></summary><pre>" + Escape(texts.at(name)) + "</pre></details>\n";
}

void AddRoute(std::string& page, const Route& route, const SchemaTexts& texts) {
  const std::string method(route.method);
  page += "<article id=\"" + std::string(route.id) + "\"><h3><span class=\"verb " + method + "\">" +
          method + "</span>" + Escape(route.pattern) + "</h3>\n<p>" + Escape(route.summary) +
          "</p>\n";
  page += route.permission.everybody()
              ? "<p class=\"need\">open to everybody</p>\n"
              : "<p class=\"need\">needs " + std::string(NameOf(route.permission.verb())) + ":" +
                    std::string(NameOf(route.permission.resource())) + "</p>\n";
  if (!route.parameters.empty()) {
    page += "<table><tr><th>parameter</th><th>type</th><th></th></tr>\n";
    for (const Parameter& parameter : route.parameters)
      page += "<tr><td><code>" + Escape(parameter.name) + "</code></td><td>" +
              Escape(parameter.type) + "</td><td>" + Escape(parameter.meaning) + "</td></tr>\n";
    page += "</table>\n";
  }
  if (!route.request.empty()) AddSchema(page, "request", route.request, texts);
  for (const Outcome& outcome : route.outcomes) {
    const std::string status = std::to_string(outcome.status);
    if (!outcome.schema.empty())
      AddSchema(page, status, outcome.schema, texts);
    else
      page += "<p><code>" + status + "</code> " +
              Escape(outcome.media == "application/json" ? net::ReasonOf(outcome.status)
                                                         : outcome.media) +
              "</p>\n";
  }
  page += "</article>\n";
}

}  // namespace

std::string DocsPage(std::span<const Route> routes, std::span<const Schema> schemas,
                     std::string_view version) {
  const SchemaTexts texts = TextsOf(schemas);
  std::vector<std::string_view> groups;
  std::map<std::string_view, std::vector<const Route*>> by_group;
  for (const Route& route : routes) {
    auto& list = by_group[route.group];
    if (list.empty()) groups.push_back(route.group);
    list.push_back(&route);
  }
  std::string page(kHead);
  page += "<header><h1>Caisson API</h1><p>version " + Escape(version) +
          " · machine-readable: <a href=\"/openapi.json\">/openapi.json</a></p></header>\n"
          "<div class=\"page\"><nav>\n";
  for (const auto group : groups) {
    page += "<h2>" + Escape(group) + "</h2>\n";
    for (const Route* route : by_group[group])
      page += "<a href=\"#" + std::string(route->id) + "\" title=\"" + Escape(route->summary) +
              "\">" + std::string(route->method) + " " + Escape(route->pattern) + "</a>\n";
  }
  page += "</nav><main>\n";
  for (const auto group : groups) {
    page += "<section><h2>" + Escape(group) + "</h2>\n";
    for (const Route* route : by_group[group]) AddRoute(page, *route, texts);
    page += "</section>\n";
  }
  page += "</main></div></body></html>\n";
  return page;
}

}  // namespace caisson::api
