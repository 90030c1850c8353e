// /api/audit: who did what to which object: a page at a time, all of it, and whether it is sound.
#include "api/call.h"
#include "api/routes.h"
#include "api/services.h"
#include "api/time_text.h"
#include "base/text.h"
#include "net/ndjson.h"
#include "store/audit_log.h"

namespace caisson::api {
namespace {

using auth::Resource;
using auth::Verb;

constexpr size_t kExportPiece = 256 << 10;  // bytes taken from the log at a time

json::Object ToJson(const store::AuditRecord& record) {
  return {
      {"seq", record.seq},       {"time", TimeText(record.time_ms)}, {"tenant", record.tenant},
      {"actor", record.actor},   {"key_id", record.key_id},          {"source", record.source},
      {"verb", record.verb},     {"object", record.object},          {"decision", record.decision},
      {"reason", record.reason}, {"request_id", record.request_id},  {"hash", record.hash}};
}

Result<std::optional<int64_t>> TimeOf(const Call& call, std::string_view name) {
  CAISSON_ASSIGN(const auto text, call.Query(name));
  if (!text) return std::optional<int64_t>();
  CAISSON_ASSIGN(const int64_t time, ParseTime(name, *text));
  return std::optional<int64_t>(time);
}

Result<store::AuditFilter> FilterOf(const Call& call) {
  store::AuditFilter filter;
  CAISSON_ASSIGN(filter.from_ms, TimeOf(call, "from"));
  CAISSON_ASSIGN(filter.to_ms, TimeOf(call, "to"));
  CAISSON_ASSIGN(auto tenant, call.Query("tenant"));
  CAISSON_ASSIGN(auto actor, call.Query("actor"));
  CAISSON_ASSIGN(auto verb, call.Query("verb"));
  CAISSON_ASSIGN(auto object, call.Query("object"));
  CAISSON_ASSIGN(auto decision, call.Query("decision"));
  CAISSON_ASSIGN(const auto cursor, call.QueryInteger("cursor", 1, INT64_MAX));
  CAISSON_ASSIGN(const auto limit, call.QueryInteger("limit", 1, 1000));
  filter.tenant = std::move(tenant);
  if (auth::ReachOf(call.principal().role) != auth::Reach::kAll)
    filter.tenant = call.principal().tenant;
  filter.actor = std::move(actor).value_or("");
  filter.verb = std::move(verb).value_or("");
  filter.object = std::move(object).value_or("");
  filter.decision = std::move(decision).value_or("");
  filter.before_seq = cursor.value_or(INT64_MAX);
  filter.limit = static_cast<int>(limit.value_or(100));
  return filter;
}

Task<Result<Reply>> ListAudit(Call* call) {
  CAISSON_CO_ASSIGN(const store::AuditFilter filter, FilterOf(*call));
  CAISSON_CO_ASSIGN(const auto records,
                    co_await call->services().store.Read<std::vector<store::AuditRecord>>(
                        [filter](store::Database& db) { return store::QueryAudit(db, filter); }));
  json::Array list;
  for (const auto& record : records) list.push_back(ToJson(record));
  const bool more = static_cast<int>(records.size()) == filter.limit;
  json::Object answer{{"records", std::move(list)}};
  answer["next_cursor"] = more ? json::Value(std::to_string(records.back().seq)) : json::Value();
  co_return Reply::Json(200, answer);
}

// The whole log is everybody's, so it is for those alone who see everybody.
Status MustSeeAll(const Call& call) {
  if (auth::ReachOf(call.principal().role) == auth::Reach::kAll) return {};
  return Error(ErrorCode::kPermissionDenied, "the whole audit log is for admins and operators")
      .WithRemedy("use GET /api/audit for the records of your own tenant");
}

// Lines of the log after record `after`, about kExportPiece of them, and the last one's number.
struct Piece {
  std::string lines;
  int64_t last = 0;
  bool more = false;
};
Result<Piece> ReadPiece(store::Database& database, int64_t after) {
  Piece piece{.last = after};
  std::string last_line;
  const Status read = store::ExportAudit(database, after, [&](std::string_view line) -> Status {
    if (piece.lines.size() >= kExportPiece) {
      piece.more = true;
      return Error(ErrorCode::kCancelled, "enough");
    }
    while (line.ends_with('\n')) line.remove_suffix(1);
    last_line = line;
    piece.lines.append(line).append("\n");
    return {};
  });
  if (!read && !piece.more) return read.error();
  if (last_line.empty()) return piece;
  CAISSON_ASSIGN(const json::Value record, json::Parse(last_line));
  piece.last = record.at("seq").to_number<int64_t>();
  return piece;
}

Task<Result<Reply>> ExportAudit(Call* call) {
  CAISSON_CO_TRY(MustSeeAll(*call));
  CAISSON_CO_ASSIGN(const auto given, call->QueryInteger("after", 0, INT64_MAX));
  int64_t after = given.value_or(0);
  store::Store& store = call->services().store;
  const auto read = [&store](int64_t from) {
    return store.Read<Piece>([from](store::Database& db) { return ReadPiece(db, from); });
  };
  // What cannot be read at all is answered as an error; later, the stream is cut.
  CAISSON_CO_ASSIGN(Piece piece, co_await read(after));
  net::Exchange& exchange = call->exchange();
  CAISSON_CO_TRY(co_await exchange.Begin(
      {.status = 200,
       .headers = {{"Content-Type", "application/x-ndjson"}, {"Cache-Control", "no-store"}}}));
  for (;;) {
    if (!piece.lines.empty()) CAISSON_CO_TRY(co_await exchange.Write(std::move(piece.lines)));
    if (!piece.more) break;
    after = piece.last;
    CAISSON_CO_ASSIGN(piece, co_await read(after));
  }
  CAISSON_CO_TRY(co_await exchange.Finish());
  co_return Reply::Streamed();
}

struct Verdict {
  store::AuditHead head;
  std::optional<store::AuditFinding> finding;
};

Task<Result<Reply>> VerifyAudit(Call* call) {
  CAISSON_CO_TRY(MustSeeAll(*call));
  store::Store& store = call->services().store;
  CAISSON_CO_ASSIGN(const auto anchor, store.audit_anchor().Read());
  CAISSON_CO_ASSIGN(const auto verdict,
                    co_await store.Read<Verdict>([anchor](store::Database& db) -> Result<Verdict> {
                      Verdict verdict;
                      CAISSON_ASSIGN(verdict.finding, store::VerifyAudit(db, anchor));
                      CAISSON_ASSIGN(verdict.head, store::HeadOfAudit(db));
                      return verdict;
                    }));
  json::Value finding;
  if (verdict.finding)
    finding = json::Object{{"seq", verdict.finding->seq}, {"what", verdict.finding->what}};
  co_return Reply::Json(200, json::Object{{"sound", !verdict.finding},
                                          {"records", verdict.head.count},
                                          {"head", verdict.head.hash},
                                          {"finding", std::move(finding)}});
}

}  // namespace

void AddAuditRoutes(std::vector<Route>& routes) {
  const auto add = [&](Route route) { routes.push_back(std::move(route)); };
  add({.method = "GET",
       .pattern = "/api/audit",
       .permission = {Verb::kRead, Resource::kAudit},
       .handler = ListAudit,
       .id = "listAudit",
       .group = "audit",
       .summary = "Who did what to which object, newest first",
       .outcomes = {{200, "AuditPage"}},
       .parameters = {{"from", "TimeFilter", "Not before this time"},
                      {"to", "TimeFilter", "Before this time"},
                      {"tenant", "string", "Of this tenant"},
                      {"actor", "string", "By this actor"},
                      {"verb", "string", "read, create, update, delete or execute"},
                      {"object", "string", "On this object, such as sessions/ID"},
                      {"decision", "string", "allow or deny"},
                      {"cursor", "AuditCursor", "next_cursor of the page before"},
                      {"limit", "PageSize", "1 to 1000; default 100"}}});
  add({.method = "GET",
       .pattern = "/api/audit/export",
       .permission = {Verb::kRead, Resource::kAudit},
       .handler = ExportAudit,
       .id = "exportAudit",
       .group = "audit",
       .summary = "The whole log, oldest first, one record a line",
       .outcomes = {{200, "", "application/x-ndjson"}},
       .parameters = {{"after", "Offset", "Begin after this record"}},
       .audited = Audited::kAlways});
  add({.method = "GET",
       .pattern = "/api/audit/verify",
       .permission = {Verb::kRead, Resource::kAudit},
       .handler = VerifyAudit,
       .id = "verifyAudit",
       .group = "audit",
       .summary = "Whether every record is as it was written, and none is missing",
       .outcomes = {{200, "AuditVerdict"}}});
}

}  // namespace caisson::api
