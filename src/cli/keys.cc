// keys: make, list, rotate and revoke API keys.
#include <unistd.h>

#include "base/text.h"
#include "base/units.h"
#include "cli/api_client.h"
#include "cli/output.h"
#include "cli/process_link.h"
#include "cli/table.h"
#include "cli/verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kOwn[] = {
    {.name = "role",
     .kind = ValueKind::kEnum,
     .choices = "admin|operator|developer|viewer|agent",
     .section = "For create",
     .help = "what its holder may do"},
    {.name = "tenant",
     .placeholder = "NAME",
     .section = "For create",
     .help = "whose sessions it is about (default: yours)"},
    {.name = "scope",
     .occurs = Occurs::kMany,
     .placeholder = "SCOPE",
     .section = "For create",
     .help = "less than the role allows, such as sessions:read"},
    {.name = "expires",
     .kind = ValueKind::kDuration,
     .section = "For create",
     .help = "end it after this long (default never)"},
};
constexpr auto kOptions = Joined(kOwn, kJsonOption, kConnectionOptions);
constexpr Positional kWords[] = {{.name = "action",
                                  .kind = ValueKind::kEnum,
                                  .choices = "create|list|revoke|rotate",
                                  .help = "what to do"},
                                 {.name = "which",
                                  .arity = Arity::kOptional,
                                  .help = "create: the key's name; revoke and rotate: its id"}};
constexpr Example kExamples[] = {
    {"caisson keys create --role developer --expires 720h ci", "a key for CI, for a month"},
    {"caisson keys list", "all of them, without their secrets"},
    {"caisson keys rotate KEY_ID", "a new secret; the old one goes on for a day"},
    {"caisson keys revoke KEY_ID", "end it now, and what runs under it"},
};

Status CheckUse(const Parsed& parsed, const std::string& action) {
  for (const Option& option : kOwn) {
    if (action != "create" && parsed.Given(option.name))
      return Error(ErrorCode::kInvalidArgument, Concat({"--", option.name, " is for create alone"}))
          .WithRemedy("leave it out");
  }
  const bool named = parsed.Given("which");
  if (action == "list" && named)
    return Error(ErrorCode::kInvalidArgument, "list takes no key").WithRemedy("leave it out");
  if (action != "list" && !named)
    return Error(ErrorCode::kInvalidArgument, action + " needs a key")
        .WithRemedy(action == "create" ? "give the new key a name" : "give the id of a key");
  if (action == "create" && !parsed.Given("role"))
    return Error(ErrorCode::kInvalidArgument, "--role is missing")
        .WithRemedy("give one of admin, operator, developer, viewer, agent");
  return {};
}

// The secret alone on stdout, for scripts; what it is on stderr.
Status ShowSecret(const json::Value& issued, const Parsed& parsed) {
  if (parsed.Flag("json")) return PrintJson(issued);
  WriteTo(STDERR_FILENO, "key " + OneLine(TextAt(issued, "id")) + " (" +
                             OneLine(TextAt(issued, "name")) + ", " +
                             OneLine(TextAt(issued, "role")) + "); it is not shown again:\n");
  return Print(OneLine(TextAt(issued, "key")) + "\n");
}

Task<Status> Create(ApiClient* api, const Parsed* parsed) {
  json::Object request{{"name", *parsed->Get<std::string>("which")},
                       {"role", *parsed->Get<std::string>("role")}};
  if (const auto tenant = parsed->Get<std::string>("tenant")) request["tenant"] = *tenant;
  if (const auto life = parsed->Get<std::chrono::nanoseconds>("expires"))
    request["expires_in"] = FormatDuration(*life);
  json::Array scopes;
  for (const auto& scope : parsed->All<std::string>("scope")) scopes.emplace_back(scope);
  if (!scopes.empty()) request["scopes"] = std::move(scopes);
  CAISSON_CO_ASSIGN(const json::Value issued,
                    co_await api->Send("POST", "/api/keys", std::move(request)));
  co_return ShowSecret(issued, *parsed);
}

Task<Status> List(ApiClient* api, const Parsed* parsed) {
  CAISSON_CO_ASSIGN(const json::Value answer, co_await api->Get("/api/keys"));
  const json::Value& keys = At(answer, "keys");
  Table table({{"ID"},
               {"NAME", Align::kLeft, Fit::kCut},
               {"ROLE"},
               {"TENANT", Align::kLeft, Fit::kCut},
               {"STATE"},
               {"CREATED"},
               {"EXPIRES"},
               {"LAST USED"}});
  for (size_t i = 0; keys.is_array() && i < keys.as_array().size(); ++i) {
    const json::Value& key = keys.as_array()[i];
    if (parsed->Flag("json")) {
      CAISSON_CO_TRY(PrintJson(key));
      continue;
    }
    const auto day = [&](std::string_view name) { return TextAt(key, name).substr(0, 10); };
    const std::string state = TextAt(key, "state");
    const Tint tint = state == "active" ? Tint::kGood : Tint::kFaint;
    table.Add({TextAt(key, "id"), TextAt(key, "name"), TextAt(key, "role"), TextAt(key, "tenant"),
               Cell(state, tint), day("created_at"), day("expires_at"), day("last_used_at")});
  }
  if (parsed->Flag("json")) co_return Status();
  co_return Print(table.Show(WidthOfOutput(), ColourOfOutput()));
}

Task<Status> Rotate(ApiClient* api, const Parsed* parsed) {
  const std::string id = net::PercentEncode(*parsed->Get<std::string>("which"));
  CAISSON_CO_ASSIGN(const json::Value issued,
                    co_await api->Send("POST", "/api/keys/" + id + "/rotate", json::Object()));
  co_return ShowSecret(issued, *parsed);
}

Task<Status> Revoke(ApiClient* api, const Parsed* parsed) {
  const std::string id = *parsed->Get<std::string>("which");
  CAISSON_CO_TRY(co_await api->Send("DELETE", "/api/keys/" + net::PercentEncode(id)));
  if (parsed->Flag("json")) co_return PrintJson(json::Object{{"id", id}, {"state", "revoked"}});
  co_return Print(OneLine(id) + "\n");
}

Task<Result<int>> Keys(ApiClient* api, const Parsed* parsed) {
  const std::string action = *parsed->Get<std::string>("action");
  CAISSON_CO_TRY(CheckUse(*parsed, action));
  CAISSON_CO_TRY(action == "create"   ? co_await Create(api, parsed)
                 : action == "list"   ? co_await List(api, parsed)
                 : action == "rotate" ? co_await Rotate(api, parsed)
                                      : co_await Revoke(api, parsed));
  co_return 0;
}

Result<int> Run(const Parsed& parsed) { return RunWithServer(parsed, Keys); }

}  // namespace

Verb KeysVerb() {
  return {.name = "keys",
          .summary = "make, list, rotate and revoke API keys",
          .options = kOptions,
          .positionals = kWords,
          .examples = kExamples,
          .run = Run};
}

}  // namespace caisson::cli
