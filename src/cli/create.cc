// create: a session on a server.
#include <vector>

#include "base/units.h"
#include "cli/api_client.h"
#include "cli/output.h"
#include "cli/session_exec.h"
#include "cli/verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kOwn[] = {
    {.name = "name",
     .short_name = 'n',
     .placeholder = "NAME",
     .section = "Session",
     .help = "a name to call it by, instead of its id"},
    {.name = "timeout",
     .short_name = 't',
     .kind = ValueKind::kDuration,
     .section = "Session",
     .help = "destroy it after this long (default: the server's)"},
    {.name = "label",
     .short_name = 'l',
     .occurs = Occurs::kMany,
     .placeholder = "NAME=VALUE",
     .section = "Session",
     .help = "a label to find it by"},
    {.name = "metadata",
     .occurs = Occurs::kMany,
     .placeholder = "NAME=VALUE",
     .section = "Session",
     .help = "a note that is kept with it"},
    {.name = "artifact",
     .occurs = Occurs::kMany,
     .placeholder = "GLOB",
     .section = "Session",
     .help = "files to keep when it ends"},
    {.name = "queue",
     .kind = ValueKind::kDuration,
     .section = "Session",
     .help = "wait this long for room, when the host is full"},
    {.name = "idempotency-key",
     .placeholder = "KEY",
     .section = "Session",
     .help = "the same key gives the same session, however often it is asked for"},
    {.name = "provider",
     .placeholder = "NAME",
     .section = "Sandbox",
     .help = "what makes the sandbox (default: the server's)"},
    {.name = "profile",
     .short_name = 'p',
     .kind = ValueKind::kEnum,
     .choices = "default|strict",
     .section = "Sandbox",
     .help = "strict: no capability, read-only root except /tmp and /workspace"},
    {.name = "min-isolation",
     .kind = ValueKind::kEnum,
     .choices = "any|namespaces-rootless|namespaces",
     .section = "Sandbox",
     .help = "refuse when the server isolates less than this"},
    {.name = "user",
     .short_name = 'u',
     .placeholder = "USER",
     .section = "Sandbox",
     .help = "run everything as this user of the sandbox"},
    {.name = "env",
     .short_name = 'e',
     .occurs = Occurs::kMany,
     .placeholder = "NAME=VALUE",
     .section = "Sandbox",
     .help = "set an environment variable for all of its commands"},
    {.name = "network",
     .placeholder = "MODE",
     .section = "Sandbox",
     .help = "none (the default), or what the server offers"},
    {.name = "cold",
     .kind = ValueKind::kFlag,
     .section = "Sandbox",
     .help = "make a new sandbox, even where a warm one waits"},
};
constexpr Positional kWords[] = {
    {.name = "environment",
     .arity = Arity::kOptional,
     .help = "what it has inside: host (the default), or an environment of the server's"}};
constexpr Example kExamples[] = {
    {"caisson create --name web --timeout 2h", "a session called web"},
    {"caisson create --memory 1G --cpus 2 --label team=search", "with limits and a label"},
    {"id=$(caisson create) && caisson exec \"$id\" -- uname -a", "in a script"},
};

// The options of `exec` that are a session's limits, and the names that the API has for them.
struct LimitName {
  std::string_view option, field;
};
constexpr LimitName kLimits[] = {
    {"memory", "memory"},     {"swap", "swap"},
    {"cpus", "cpus"},         {"pids", "pids"},
    {"disk", "disk"},         {"inodes", "inodes"},
    {"files", "open_files"},  {"io-read", "io_read"},
    {"io-write", "io_write"}, {"memory-bandwidth", "memory_bandwidth"},
};

const std::vector<Option>& Options() {
  static const std::vector<Option> kAll = [] {
    std::vector<Option> all(std::begin(kOwn), std::end(kOwn));
    for (const Option& option : ExecOptions())
      for (const LimitName& limit : kLimits)
        if (limit.option == option.name) all.push_back(option);
    for (const Option& option : Joined(kJsonOption, kConnectionOptions)) all.push_back(option);
    return all;
  }();
  return kAll;
}

json::Object LimitsOf(const Parsed& parsed) {
  json::Object limits;
  for (const auto& [option, field] : kLimits) {
    if (!parsed.Given(option)) continue;
    if (option == "cpus")
      limits[field] = FormatCpus(*parsed.Get<uint32_t>(option));
    else if (option == "memory-bandwidth")
      limits[field] = *parsed.Get<uint32_t>(option) / 100;
    else if (option == "pids" || option == "inodes" || option == "files")
      limits[field] = *parsed.Get<int64_t>(option);
    else
      limits[field] = *parsed.Get<uint64_t>(option);
  }
  return limits;
}

Result<json::Object> MapOf(const Parsed& parsed, std::string_view option) {
  CAISSON_ASSIGN(const auto pairs, PairsOf(parsed, option));
  json::Object map;
  for (const auto& [name, value] : pairs) map[name] = value;
  return map;
}

Result<json::Object> RequestOf(const Parsed& parsed) {
  json::Object request;
  for (const auto name : {"environment", "name", "provider", "profile", "user", "network"})
    if (const auto value = parsed.Get<std::string>(name)) request[name] = *value;
  if (const auto level = parsed.Get<std::string>("min-isolation"))
    request["min_isolation"] = *level;
  for (const auto name : {"timeout", "queue"})
    if (const auto value = parsed.Get<std::chrono::nanoseconds>(name))
      request[name] = FormatDuration(*value);
  const std::pair<std::string_view, std::string_view> maps[] = {
      {"label", "labels"}, {"metadata", "metadata"}, {"env", "env"}};
  for (const auto& [option, field] : maps) {
    CAISSON_ASSIGN(json::Object map, MapOf(parsed, option));
    if (!map.empty()) request[field] = std::move(map);
  }
  json::Array artifacts;
  for (const auto& glob : parsed.All<std::string>("artifact")) artifacts.emplace_back(glob);
  if (!artifacts.empty()) request["artifacts"] = std::move(artifacts);
  if (json::Object limits = LimitsOf(parsed); !limits.empty())
    request["limits"] = std::move(limits);
  if (parsed.Flag("cold")) request["warm"] = false;
  return request;
}

Task<Result<int>> Create(ApiClient* api, const Parsed* parsed) {
  CAISSON_CO_ASSIGN(json::Object request, RequestOf(*parsed));
  net::Headers headers;
  if (const auto key = parsed->Get<std::string>("idempotency-key"))
    headers.Set("Idempotency-Key", *key);
  CAISSON_CO_ASSIGN(const json::Value session,
                    co_await api->Send("POST", "/api/sessions", std::move(request), headers));
  if (parsed->Flag("json")) {
    CAISSON_CO_TRY(PrintJson(session));
  } else {
    CAISSON_CO_TRY(Print(OneLine(TextAt(session, "session_id")) + "\n"));
  }
  co_return 0;
}

Result<int> Run(const Parsed& parsed) { return RunWithServer(parsed, Create); }

}  // namespace

Verb CreateVerb() {
  return {.name = "create",
          .summary = "create a session on a server, and print its id",
          .options = Options(),
          .positionals = kWords,
          .examples = kExamples,
          .run = Run};
}

}  // namespace caisson::cli
