// audit: who did what, on a server.
#include "base/text.h"
#include "cli/api_client.h"
#include "cli/output.h"
#include "cli/table.h"
#include "cli/verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kOwn[] = {
    {.name = "from",
     .placeholder = "TIME",
     .section = "For list",
     .help = "not before this time, such as 2026-01-31T12:00:00Z"},
    {.name = "to", .placeholder = "TIME", .section = "For list", .help = "before this time"},
    {.name = "tenant", .placeholder = "NAME", .section = "For list", .help = "of this tenant"},
    {.name = "actor", .placeholder = "NAME", .section = "For list", .help = "by this actor"},
    {.name = "verb",
     .kind = ValueKind::kEnum,
     .choices = "read|create|update|delete|execute",
     .section = "For list",
     .help = "what was done"},
    {.name = "object",
     .placeholder = "OBJECT",
     .section = "For list",
     .help = "on this object, as the list shows it"},
    {.name = "decision",
     .kind = ValueKind::kEnum,
     .choices = "allow|deny",
     .section = "For list",
     .help = "how it was decided"},
    {.name = "limit",
     .short_name = 'n',
     .kind = ValueKind::kInt,
     .default_text = "100",
     .min = 1,
     .max = 1'000'000,
     .section = "For list",
     .help = "at most so many, the newest"},
    {.name = "after",
     .kind = ValueKind::kInt,
     .placeholder = "NUMBER",
     .min = 0,
     .section = "For export",
     .help = "begin after the record of this number"},
};
constexpr auto kOptions = Joined(kOwn, kJsonOption, kConnectionOptions);
constexpr Positional kWords[] = {{.name = "action",
                                  .kind = ValueKind::kEnum,
                                  .choices = "list|export|verify",
                                  .help = "what to do"}};
constexpr Example kExamples[] = {
    {"caisson audit list --decision deny", "what was refused, newest first"},
    {"caisson audit export > audit.ndjson", "all of it, oldest first, one record a line"},
    {"caisson audit verify", "whether any record was changed or removed; exits 1 if so"},
};

Status CheckUse(const Parsed& parsed, const std::string& action) {
  for (const Option& option : kOwn) {
    const bool fits = option.section == Concat({"For ", action});
    if (!fits && parsed.Given(option.name))
      return Error(ErrorCode::kInvalidArgument, Concat({"--", option.name, " is not for ", action}))
          .WithRemedy("leave it out");
  }
  return {};
}

Task<Result<int>> List(ApiClient* api, const Parsed* parsed) {
  std::string base;
  for (const auto name : {"from", "to", "tenant", "actor", "verb", "object", "decision"})
    if (const auto value = parsed->Get<std::string>(name))
      base += Concat({"&", name, "=", net::PercentEncode(*value)});
  Table table({{"NUMBER", Align::kRight},
               {"TIME"},
               {"ACTOR", Align::kLeft, Fit::kCut},
               {"VERB"},
               {"OBJECT", Align::kLeft, Fit::kCut},
               {"DECISION"},
               {"REASON", Align::kLeft, Fit::kCut}});
  std::string cursor;
  for (int64_t left = *parsed->Get<int64_t>("limit"); left > 0;) {
    const int64_t page_size = std::min<int64_t>(left, 1000);
    std::string target = "/api/audit?limit=" + std::to_string(page_size) + base;
    if (!cursor.empty()) target += "&cursor=" + net::PercentEncode(cursor);
    CAISSON_CO_ASSIGN(const json::Value page, co_await api->Get(std::move(target)));
    const json::Value& records = At(page, "records");
    for (size_t i = 0; records.is_array() && i < records.as_array().size(); ++i) {
      const json::Value& record = records.as_array()[i];
      const std::string decision = TextAt(record, "decision");
      if (parsed->Flag("json")) CAISSON_CO_TRY(PrintJson(record));
      table.Add({std::to_string(CountAt(record, "seq")), TextAt(record, "time"),
                 TextAt(record, "actor"), TextAt(record, "verb"), TextAt(record, "object"),
                 Cell(decision, decision == "deny" ? Tint::kBad : Tint::kNone),
                 TextAt(record, "reason")});
    }
    left -= page_size;
    cursor = TextAt(page, "next_cursor");
    if (cursor.empty()) break;
  }
  if (!parsed->Flag("json")) CAISSON_CO_TRY(Print(table.Show(WidthOfOutput(), ColourOfOutput())));
  co_return 0;
}

// The server's lines as they are: their hashes are over the very bytes.
Task<Result<int>> Export(ApiClient* api, const Parsed* parsed) {
  net::ClientRequest request{.target = "/api/audit/export"};
  if (const auto after = parsed->Get<int64_t>("after"))
    request.target += "?after=" + std::to_string(*after);
  request.headers.Set("Accept", "application/x-ndjson");
  CAISSON_CO_ASSIGN(const auto exchange,
                    co_await api->Open(std::move(request), net::Client::BodyKind::kWhole));
  CAISSON_CO_TRY(co_await api->ReadAnswer(exchange.get()));
  for (;;) {
    CAISSON_CO_ASSIGN(const std::string piece, co_await exchange->body().Next());
    if (piece.empty()) co_return 0;
    CAISSON_CO_TRY(Print(piece));
  }
}

Task<Result<int>> Verify(ApiClient* api, const Parsed* parsed) {
  CAISSON_CO_ASSIGN(const json::Value verdict, co_await api->Get("/api/audit/verify"));
  const json::Value& sound = At(verdict, "sound");
  const bool fine = sound.is_bool() && sound.as_bool();
  const json::Value& finding = At(verdict, "finding");
  if (parsed->Flag("json")) {
    CAISSON_CO_TRY(PrintJson(verdict));
  } else if (fine) {
    CAISSON_CO_TRY(Print(Shown(At(verdict, "records")) + " records, each as it was written; head " +
                         Shown(At(verdict, "head")) + "\n"));
  } else {
    CAISSON_CO_TRY(Print("the audit log was changed: record " + Shown(At(finding, "seq")) + ": " +
                         Shown(At(finding, "what")) + "\n"));
  }
  co_return fine ? 0 : 1;
}

Task<Result<int>> Audit(ApiClient* api, const Parsed* parsed) {
  const std::string action = *parsed->Get<std::string>("action");
  CAISSON_CO_TRY(CheckUse(*parsed, action));
  if (action == "list") co_return co_await List(api, parsed);
  if (action == "export") co_return co_await Export(api, parsed);
  co_return co_await Verify(api, parsed);
}

Result<int> Run(const Parsed& parsed) { return RunWithServer(parsed, Audit); }

}  // namespace

Verb AuditVerb() {
  return {.name = "audit",
          .summary = "show, export or verify who did what on a server",
          .options = kOptions,
          .positionals = kWords,
          .examples = kExamples,
          .run = Run};
}

}  // namespace caisson::cli
