#include "api/delegation.h"

#include <string>

#include "base/text.h"

namespace caisson::api {
namespace {

using auth::Resource;
using auth::Verb;

Error More(std::string_view what) {
  return Error(ErrorCode::kPermissionDenied,
               Concat({"this would give out more than the caller's own key allows: ", what}))
      .WithRemedy("narrow it with scopes, or use a key that has these rights");
}

}  // namespace

Status CheckDelegation(const auth::Principal& giver, const auth::Principal& taker) {
  for (int v = 0; v <= static_cast<int>(Verb::kExecute); ++v) {
    for (int r = 0; r <= static_cast<int>(Resource::kSystem); ++r) {
      const auto verb = static_cast<Verb>(v);
      const auto resource = static_cast<Resource>(r);
      if (taker.Allows(verb, resource) && !giver.Allows(verb, resource))
        return More(Concat({NameOf(verb), ":", NameOf(resource)}));
    }
  }
  // Reach widens from kKey over kTenant to kAll; a token's is its session.
  if (taker.session) return {};
  if (giver.session || auth::ReachOf(taker.role) < auth::ReachOf(giver.role))
    return More("the objects of others");
  if (auth::ReachOf(giver.role) != auth::Reach::kAll && taker.tenant != giver.tenant)
    return More(Concat({"the tenant ", Quoted(taker.tenant)}));
  return {};
}

}  // namespace caisson::api
