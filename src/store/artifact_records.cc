#include "store/artifact_records.h"

#include "base/text.h"

namespace caisson::store {
namespace {

#define ARTIFACT_COLUMNS "id, session_id, tenant, path, size, sha256, media_type, created_ms"

ArtifactRecord RecordOf(const Row& row) {
  return {row.Text(0), row.Text(1), row.Text(2), row.Text(3),
          row.Int(4),  row.Text(5), row.Text(6), row.Int(7)};
}

}  // namespace

Status InsertArtifact(Database& database, const ArtifactRecord& record) {
  return database.Run("INSERT INTO artifacts (" ARTIFACT_COLUMNS ") VALUES (?,?,?,?,?,?,?,?)",
                      {record.id, record.session_id, record.tenant, record.path, record.size,
                       record.sha256, record.media_type, record.created_ms});
}

Result<std::optional<ArtifactRecord>> FindArtifact(Database& database, std::string_view id) {
  std::optional<ArtifactRecord> found;
  CAISSON_TRY(database.Each("SELECT " ARTIFACT_COLUMNS " FROM artifacts WHERE id = ?", {id},
                            [&found](const Row& row) { found = RecordOf(row); }));
  return found;
}

Result<std::vector<ArtifactRecord>> ListArtifacts(Database& database, std::string_view session_id) {
  std::vector<ArtifactRecord> artifacts;
  CAISSON_TRY(database.Each(
      "SELECT " ARTIFACT_COLUMNS " FROM artifacts WHERE session_id = ? ORDER BY created_ms, id",
      {session_id}, [&](const Row& row) { artifacts.push_back(RecordOf(row)); }));
  return artifacts;
}

Status RemoveArtifact(Database& database, std::string_view id) {
  CAISSON_TRY(database.Run("DELETE FROM artifacts WHERE id = ?", {id}));
  if (database.changes() == 1) return {};
  return Error(ErrorCode::kNotFound, Concat({"no artifact ", Quoted(id)}));
}

Result<int64_t> ArtifactBytes(Database& database, std::string_view tenant) {
  return database.Number("SELECT coalesce(sum(size), 0) FROM artifacts WHERE tenant = ?", {tenant});
}

Result<std::vector<std::string>> PurgeArtifacts(Database& database, int64_t before_ms, int limit) {
  std::vector<std::string> ids;
  CAISSON_TRY(
      database.Each("SELECT id FROM artifacts WHERE created_ms < ? ORDER BY created_ms, id LIMIT ?",
                    {before_ms, limit}, [&ids](const Row& row) { ids.push_back(row.Text(0)); }));
  for (const std::string& id : ids) CAISSON_TRY(RemoveArtifact(database, id));
  return ids;
}

}  // namespace caisson::store
