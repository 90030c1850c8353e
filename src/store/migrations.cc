#include "store/migrations.h"

#include <string>

#include "base/text.h"

namespace caisson::store {
namespace {

constexpr int64_t kApplicationId = 0x43534e31;  // "CSN1"

Status RefuseForeign(Database& database) {
  CAISSON_ASSIGN(const int64_t id, database.Number("PRAGMA application_id"));
  if (id == kApplicationId) return {};
  CAISSON_ASSIGN(const int64_t tables, database.Number("SELECT count(*) FROM sqlite_schema"));
  if (id == 0 && tables == 0) return {};
  return Error(ErrorCode::kUnsupported,
               Concat({database.path(), " is a database of another program"}))
      .WithRemedy("choose another data directory");
}

}  // namespace

Status Migrate(Database& database) { return Migrate(database, SchemaSteps()); }

Status Migrate(Database& database, std::span<const char* const> steps) {
  CAISSON_TRY(RefuseForeign(database));
  CAISSON_ASSIGN(const int64_t version, database.Number("PRAGMA user_version"));
  if (version < 0 || version > static_cast<int64_t>(steps.size())) {
    return Error(ErrorCode::kUnsupported,
                 Concat({database.path(), " has schema ", std::to_string(version),
                         "; this program knows schemas up to ", std::to_string(steps.size())}))
        .WithRemedy("run the version of caisson that wrote it, or a newer one");
  }
  for (auto step = static_cast<size_t>(version); step < steps.size(); ++step) {
    Status done = database.Transact([&]() -> Status {
      CAISSON_TRY(database.Script(steps[step]));
      const std::string number = std::to_string(step + 1);
      CAISSON_TRY(database.Script(Concat({"PRAGMA user_version = ", number}).c_str()));
      return database.Script(
          Concat({"PRAGMA application_id = ", std::to_string(kApplicationId)}).c_str());
    });
    if (!done) {
      return std::move(done).error().Because(
          Concat({"bringing the schema to step ", std::to_string(step + 1)}));
    }
  }
  return {};
}

}  // namespace caisson::store
