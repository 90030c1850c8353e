#include "api/allowances.h"

#include <utility>

#include "base/text.h"

namespace caisson::api {
namespace {

constexpr size_t kRequests = static_cast<size_t>(auth::Limited::kRequests);
constexpr size_t kCreates = static_cast<size_t>(auth::Limited::kCreates);
constexpr size_t kExecs = static_cast<size_t>(auth::Limited::kExecs);

class Lease final : public sandbox::QuotaLease {
 public:
  explicit Lease(auth::QuotaLedger::Lease lease) : lease_(std::move(lease)) {}

 private:
  auth::QuotaLedger::Lease lease_;
};

net::Headers HeadersOf(const auth::RateDecision& decision) {
  net::Headers headers;
  if (!decision.limited) return headers;
  headers.Set("RateLimit-Limit", std::to_string(decision.limit));
  headers.Set("RateLimit-Remaining", std::to_string(decision.remaining));
  headers.Set("RateLimit-Reset", std::to_string(decision.reset_seconds));
  if (!decision.allowed) headers.Set("Retry-After", std::to_string(decision.retry_after));
  return headers;
}

Error TooOften(auth::Limited kind, const auth::RateDecision& decision) {
  return Error(ErrorCode::kRateLimited,
               Concat({"this key has used up its share of ", auth::NameOf(kind)}))
      .WithRemedy(Concat({"try again in ", std::to_string(decision.retry_after), " s"}));
}

}  // namespace

Status Allowances::Apply(const store::KeyRecord& record) {
  auth::Rates rates = defaults_.rates;
  auth::Holding quota = defaults_.quota;
  auto limits = ParseKeyLimits(record.limits);
  if (limits) {
    rates[kRequests] = limits->requests.value_or(rates[kRequests]);
    rates[kCreates] = limits->creates.value_or(rates[kCreates]);
    rates[kExecs] = limits->execs.value_or(rates[kExecs]);
    quota.sandboxes = limits->sandboxes.value_or(quota.sandboxes);
    quota.cpu_millis = limits->cpu_millis.value_or(quota.cpu_millis);
    quota.memory_bytes = limits->memory_bytes.value_or(quota.memory_bytes);
  } else {
    rates.fill({1e-9, 1});
    quota = {1, 1, 1};
  }
  rates_.SetRates(record.id, rates);
  quotas_[record.id] = quota;
  if (!limits) return std::move(limits).error().Because(Concat({"limits of key ", record.id}));
  return {};
}

void Allowances::Forget(const std::string& key_id) {
  rates_.Forget(key_id);
  quotas_.erase(key_id);
}

Allowances::Taken Allowances::Take(const std::string& key_id, Cost cost,
                                   auth::RateLimiter::Time now) {
  const auth::RateDecision request = rates_.Take(key_id, auth::Limited::kRequests, now);
  if (!request.allowed) return {TooOften(auth::Limited::kRequests, request), HeadersOf(request)};
  if (cost == Cost::kRequest) return {{}, HeadersOf(request)};
  const auth::Limited kind =
      cost == Cost::kCreate ? auth::Limited::kCreates : auth::Limited::kExecs;
  const auth::RateDecision work = rates_.Take(key_id, kind, now);
  if (!work.allowed) return {TooOften(kind, work), HeadersOf(work)};
  return {{}, HeadersOf(work.limited ? work : request)};
}

auth::Holding Allowances::QuotaOf(const std::string& key_id) const {
  const auto own = quotas_.find(key_id);
  return own == quotas_.end() ? defaults_.quota : own->second;
}

Result<std::unique_ptr<sandbox::QuotaLease>> Allowances::Take(const sandbox::Owner& owner,
                                                              const sandbox::Demand& demand) {
  const auth::Holding size{1, demand.cpu_millis, static_cast<int64_t>(demand.memory_bytes)};
  CAISSON_ASSIGN(auto lease, ledger_.Acquire(owner.key_id, size, QuotaOf(owner.key_id)));
  return std::unique_ptr<sandbox::QuotaLease>(std::make_unique<Lease>(std::move(lease)));
}

}  // namespace caisson::api
