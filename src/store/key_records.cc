#include "store/key_records.h"

#include "base/text.h"

namespace caisson::store {
namespace {

#define KEY_COLUMNS                                                                   \
  "id, name, tenant, role, scopes, hash, next_hash, limits, created_by, created_ms, " \
  "expires_ms, rotated_ms, last_used_ms, revoked_ms"

KeyRecord RecordOf(const Row& row) {
  KeyRecord record;
  record.id = row.Text(0);
  record.name = row.Text(1);
  record.tenant = row.Text(2);
  record.role = row.Text(3);
  record.scopes = row.Text(4);
  record.hash = row.Text(5);
  record.next_hash = row.OptionalText(6);
  record.limits = row.Text(7);
  record.created_by = row.Text(8);
  record.created_ms = row.Int(9);
  record.expires_ms = row.OptionalInt(10);
  record.rotated_ms = row.OptionalInt(11);
  record.last_used_ms = row.OptionalInt(12);
  record.revoked_ms = row.OptionalInt(13);
  return record;
}

}  // namespace

Status InsertKey(Database& database, const KeyRecord& record) {
  return database.Run(
      "INSERT INTO keys (" KEY_COLUMNS ") VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
      {record.id, record.name, record.tenant, record.role, record.scopes, record.hash,
       record.next_hash, record.limits, record.created_by, record.created_ms, record.expires_ms,
       record.rotated_ms, record.last_used_ms, record.revoked_ms});
}

Status UpdateKey(Database& database, const KeyRecord& record) {
  CAISSON_TRY(database.Run(
      "UPDATE keys SET name = ?, role = ?, scopes = ?, hash = ?, next_hash = ?, limits = ?, "
      "expires_ms = ?, rotated_ms = ?, last_used_ms = ?, revoked_ms = ? WHERE id = ?",
      {record.name, record.role, record.scopes, record.hash, record.next_hash, record.limits,
       record.expires_ms, record.rotated_ms, record.last_used_ms, record.revoked_ms, record.id}));
  if (database.changes() == 1) return {};
  return Error(ErrorCode::kNotFound, Concat({"no key ", Quoted(record.id)}));
}

Status TouchKey(Database& database, std::string_view id, int64_t used_ms) {
  return database.Run(
      "UPDATE keys SET last_used_ms = max(coalesce(last_used_ms, 0), ?) WHERE id = ?",
      {used_ms, id});
}

Result<std::vector<KeyRecord>> AllKeys(Database& database) {
  std::vector<KeyRecord> keys;
  CAISSON_TRY(database.Each("SELECT " KEY_COLUMNS " FROM keys ORDER BY created_ms, id", {},
                            [&keys](const Row& row) { keys.push_back(RecordOf(row)); }));
  return keys;
}

Status PurgeKeys(Database& database, int64_t before_ms) {
  return database.Run("DELETE FROM keys WHERE revoked_ms < ?", {before_ms});
}

}  // namespace caisson::store
