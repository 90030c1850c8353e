// The schema, as a list of numbered steps.
//
// A database knows how many steps it has been through (user_version) and that it is ours
// (application_id). Steps are never edited once released; a change is a new step.
#pragma once

#include <span>

#include "base/result.h"
#include "store/database.h"

namespace caisson::store {

// Step n (counting from 1) is entry n-1.
std::span<const char* const> SchemaSteps();

// Brings the database to the newest schema, each step in a transaction of its own. kUnsupported
// when the file has been through more steps than this program knows, or belongs to another program;
// it is then untouched.
Status Migrate(Database& database);
// The same with other steps.
Status Migrate(Database& database, std::span<const char* const> steps);

}  // namespace caisson::store
