// Allowances: how often each key may call, and how much it may have at a time: the server's
// defaults, and where a key has limits of its own, those.
//
// Belongs to one Loop's thread; outlives what it leases.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "api/key_limits.h"
#include "api/route.h"
#include "auth/rate_limit.h"
#include "net/headers.h"
#include "sandbox/admission.h"
#include "store/key_records.h"

namespace caisson::api {

class Allowances final : public sandbox::Quotas {
 public:
  struct Defaults {
    auth::Rates rates = {};  // 0: no limit
    auth::Holding quota;     // 0: no limit
  };

  explicit Allowances(Defaults defaults) : defaults_(defaults), rates_(defaults.rates) {}

  // Holds the key to the limits of its record from now on. kInvalidArgument when they cannot be
  // read: such a key is then allowed nothing that is limited.
  Status Apply(const store::KeyRecord& record);
  // For a key that is gone.
  void Forget(const std::string& key_id);

  // Takes one call. kRateLimited when the share is used up. The headers tell how much is left.
  struct Taken {
    Status allowed;
    net::Headers headers;
  };
  Taken Take(const std::string& key_id, Cost cost, auth::RateLimiter::Time now);

  Result<std::unique_ptr<sandbox::QuotaLease>> Take(const sandbox::Owner& owner,
                                                    const sandbox::Demand& demand) override;

 private:
  auth::Holding QuotaOf(const std::string& key_id) const;

  const Defaults defaults_;
  auth::RateLimiter rates_;
  auth::QuotaLedger ledger_;
  std::unordered_map<std::string, auth::Holding> quotas_;  // of keys with their own
};

}  // namespace caisson::api
