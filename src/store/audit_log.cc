#include "store/audit_log.h"

#include "base/bytes.h"
#include "base/sha256.h"
#include "base/text.h"
#include "base/utf8.h"
#include "json/json.h"
#include "store/cursor.h"

namespace caisson::store {
namespace {

constexpr size_t kMaxField = 512;
constexpr int kBatch = 500;

#define AUDIT_COLUMNS \
  "seq, time_ms, tenant, actor, key_id, source, verb, object, decision, reason, request_id, hash"

struct NamedField {
  std::string_view name;
  std::string AuditRecord::* field;
};
// The text fields in the order in which they are hashed and exported.
constexpr NamedField kFields[] = {{"tenant", &AuditRecord::tenant},
                                  {"actor", &AuditRecord::actor},
                                  {"key_id", &AuditRecord::key_id},
                                  {"source", &AuditRecord::source},
                                  {"verb", &AuditRecord::verb},
                                  {"object", &AuditRecord::object},
                                  {"decision", &AuditRecord::decision},
                                  {"reason", &AuditRecord::reason},
                                  {"request_id", &AuditRecord::request_id}};

std::string EmptyHash() { return std::string(64, '0'); }

std::string HashOf(std::string_view previous, const AuditRecord& record) {
  std::string canonical;
  ByteWriter out(canonical);
  out.Bytes(previous);
  out.Int(record.seq);
  out.Int(record.time_ms);
  for (const NamedField& field : kFields) out.Bytes(record.*field.field);
  Sha256 hash;
  hash.Update(canonical);
  return hash.HexDigest();
}

// Valid UTF-8 without control characters, at most kMaxField bytes.
std::string Plain(std::string_view text) {
  std::string plain = ToUtf8(text.substr(0, kMaxField));
  for (char& c : plain) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  if (text.size() > kMaxField) plain += "…";
  return plain;
}

AuditRecord RecordOf(const Row& row) {
  AuditRecord record;
  record.seq = row.Int(0);
  record.time_ms = row.Int(1);
  int column = 2;
  for (const NamedField& field : kFields) record.*field.field = row.Text(column++);
  record.hash = row.Text(column);
  return record;
}

Result<std::vector<AuditRecord>> RecordsAfter(Database& database, int64_t seq) {
  std::vector<AuditRecord> records;
  CAISSON_TRY(
      database.Each("SELECT " AUDIT_COLUMNS " FROM audit WHERE seq > ? ORDER BY seq LIMIT ?",
                    {seq, kBatch}, [&](const Row& row) { records.push_back(RecordOf(row)); }));
  return records;
}

std::string JsonLine(const AuditRecord& record) {
  std::string line = Concat(
      {"{\"seq\":", std::to_string(record.seq), ",\"time_ms\":", std::to_string(record.time_ms)});
  const auto add = [&line](std::string_view name, std::string_view value) {
    line += Concat({",\"", name, "\":"});
    json::AppendString(line, value);
  };
  for (const NamedField& field : kFields) add(field.name, record.*field.field);
  add("hash", record.hash);
  return line + "}\n";
}

// What is wrong with `record`, which should follow `head`; nothing when it is right.
std::optional<AuditFinding> Judge(const AuditRecord& record, const AuditHead& head) {
  const int64_t expected = head.count + 1;
  if (record.seq != expected) {
    return AuditFinding{expected, Concat({"record ", std::to_string(expected), " is missing"})};
  }
  if (record.hash != HashOf(head.hash, record)) {
    return AuditFinding{expected, Concat({"record ", std::to_string(expected),
                                          " is not what was written, or not in its place"})};
  }
  return std::nullopt;
}

}  // namespace

Result<AuditHead> HeadOfAudit(Database& database) {
  AuditHead head{0, EmptyHash()};
  CAISSON_TRY(database.Each("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1", {},
                            [&head](const Row& row) { head = {row.Int(0), row.Text(1)}; }));
  return head;
}

Status AppendAudit(Database& database, const AuditRecord& given) {
  CAISSON_ASSIGN(const AuditHead head, HeadOfAudit(database));
  AuditRecord record = given;
  record.seq = head.count + 1;
  for (const NamedField& field : kFields) record.*field.field = Plain(given.*field.field);
  return database.Run("INSERT INTO audit (" AUDIT_COLUMNS ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
                      {record.seq, record.time_ms, record.tenant, record.actor, record.key_id,
                       record.source, record.verb, record.object, record.decision, record.reason,
                       record.request_id, HashOf(head.hash, record)});
}

Result<std::vector<AuditRecord>> QueryAudit(Database& database, const AuditFilter& filter) {
  CAISSON_TRY(CheckPageLimit(filter.limit));
  QueryBuilder query("SELECT " AUDIT_COLUMNS " FROM audit WHERE seq < ?");
  query.Add("", {filter.before_seq});
  if (filter.tenant) query.Add(" AND tenant = ?", {*filter.tenant});
  if (filter.from_ms) query.Add(" AND time_ms >= ?", {*filter.from_ms});
  if (filter.to_ms) query.Add(" AND time_ms < ?", {*filter.to_ms});
  if (!filter.actor.empty()) query.Add(" AND actor = ?", {filter.actor});
  if (!filter.verb.empty()) query.Add(" AND verb = ?", {filter.verb});
  if (!filter.object.empty()) query.Add(" AND object = ?", {filter.object});
  if (!filter.decision.empty()) query.Add(" AND decision = ?", {filter.decision});
  query.Add(" ORDER BY seq DESC LIMIT ?", {filter.limit});
  std::vector<AuditRecord> records;
  CAISSON_TRY(query.Each(database, [&](const Row& row) { records.push_back(RecordOf(row)); }));
  return records;
}

Status ExportAudit(Database& database, int64_t after_seq,
                   const std::function<Status(std::string_view line)>& line) {
  while (true) {
    CAISSON_ASSIGN(const auto records, RecordsAfter(database, after_seq));
    if (records.empty()) return {};
    for (const AuditRecord& record : records) CAISSON_TRY(line(JsonLine(record)));
    after_seq = records.back().seq;
  }
}

Result<std::optional<AuditFinding>> VerifyAudit(Database& database,
                                                const std::optional<AuditHead>& anchor) {
  AuditHead head{0, EmptyHash()};
  const auto contradicts = [&] {
    return anchor && anchor->count == head.count && anchor->hash != head.hash;
  };
  int64_t after = INT64_MIN;
  while (true) {
    CAISSON_ASSIGN(const auto records, RecordsAfter(database, after));
    if (records.empty()) break;
    after = records.back().seq;
    for (const AuditRecord& record : records) {
      if (auto finding = Judge(record, head)) return finding;
      head = {record.seq, record.hash};
      if (contradicts()) {
        return std::optional(
            AuditFinding{head.count, Concat({"record ", std::to_string(head.count),
                                             " is another than the one that the anchor knows"})});
      }
    }
  }
  if (anchor && anchor->count > head.count) {
    return std::optional(AuditFinding{
        head.count + 1, Concat({"the log ends after record ", std::to_string(head.count),
                                ", but had ", std::to_string(anchor->count)})});
  }
  return std::optional<AuditFinding>();
}

}  // namespace caisson::store
