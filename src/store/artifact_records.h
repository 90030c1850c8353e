// Files that sessions left behind. Their bytes are in store/blobs.h under the artifact's id; they
// outlive the session's own record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace caisson::store {

struct ArtifactRecord {
  std::string id;
  std::string session_id;
  std::string tenant;
  std::string path;  // inside the sandbox it came from
  int64_t size = 0;
  std::string sha256;  // hex
  std::string media_type;
  int64_t created_ms = 0;
};

// kConflict when the id is taken.
Status InsertArtifact(Database& database, const ArtifactRecord& record);
Result<std::optional<ArtifactRecord>> FindArtifact(Database& database, std::string_view id);
// Oldest first.
Result<std::vector<ArtifactRecord>> ListArtifacts(Database& database, std::string_view session_id);
// kNotFound when there is no such artifact.
Status RemoveArtifact(Database& database, std::string_view id);
// How many bytes the tenant's artifacts have together.
Result<int64_t> ArtifactBytes(Database& database, std::string_view tenant);
// Forgets artifacts made before `before_ms`, at most `limit`. Gives the ids whose blobs can go.
Result<std::vector<std::string>> PurgeArtifacts(Database& database, int64_t before_ms, int limit);

}  // namespace caisson::store
