// Who may give out rights: only those one has, for no more objects than one sees.
#pragma once

#include "auth/roles.h"
#include "base/result.h"

namespace caisson::api {

// kPermissionDenied, naming the first right that `giver` lacks, when whoever is `taker` could do
// more than `giver` may.
Status CheckDelegation(const auth::Principal& giver, const auth::Principal& taker);

}  // namespace caisson::api
