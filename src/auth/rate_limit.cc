#include "auth/rate_limit.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "base/units.h"

namespace caisson::auth {
namespace {

constexpr std::array<std::string_view, kLimitedKinds> kNames = {"requests", "creates", "execs",
                                                                "bytes"};

Holding Sum(const Holding& a, const Holding& b) {
  return {a.sandboxes + b.sandboxes, a.cpu_millis + b.cpu_millis, a.memory_bytes + b.memory_bytes};
}
Holding Difference(const Holding& a, const Holding& b) {
  return {a.sandboxes - b.sandboxes, a.cpu_millis - b.cpu_millis, a.memory_bytes - b.memory_bytes};
}

Status CheckQuota(const Holding& more, const Holding& total, const Holding& quota) {
  const auto over = [](int64_t added, int64_t sum, int64_t limit) {
    return limit > 0 && added > 0 && sum > limit;
  };
  const auto refuse = [](std::string_view what, const std::string& limit) {
    return Error(ErrorCode::kResourceExhausted,
                 Concat({"the key's quota of ", limit, " ", what, " is used up"}))
        .WithRemedy("destroy sessions of this key, or ask for a greater quota");
  };
  if (over(more.sandboxes, total.sandboxes, quota.sandboxes)) {
    return refuse("sandboxes", std::to_string(quota.sandboxes));
  }
  if (over(more.cpu_millis, total.cpu_millis, quota.cpu_millis)) {
    return refuse("CPUs", FormatCpus(static_cast<uint32_t>(quota.cpu_millis)));
  }
  if (over(more.memory_bytes, total.memory_bytes, quota.memory_bytes)) {
    return refuse("memory", FormatSize(static_cast<uint64_t>(quota.memory_bytes)));
  }
  return {};
}

}  // namespace

std::string_view NameOf(Limited kind) { return kNames[static_cast<size_t>(kind)]; }

RateLimiter::RateLimiter(Rates defaults, size_t max_keys)
    : defaults_(defaults), max_keys_(max_keys) {}

void RateLimiter::SetRates(const std::string& key, const Rates& rates) {
  own_.insert_or_assign(key, rates);
}

void RateLimiter::Forget(const std::string& key) {
  own_.erase(key);
  entries_.erase(key);
}

const Rates& RateLimiter::RatesOf(const std::string& key) const {
  const auto found = own_.find(key);
  return found == own_.end() ? defaults_ : found->second;
}

RateDecision RateLimiter::Take(const std::string& key, Limited kind, Time now, double cost) {
  const Rate rate = RatesOf(key)[static_cast<size_t>(kind)];
  if (rate.per_second <= 0) return {};
  const double burst = std::max(rate.burst, 1.0);
  if (entries_.size() >= max_keys_ && !entries_.contains(key)) Trim();
  Entry& entry = entries_[key];
  entry.last_used = now;
  Bucket& bucket = entry.buckets[static_cast<size_t>(kind)];
  const double passed = std::max(0.0, std::chrono::duration<double>(now - bucket.at).count());
  bucket.level =
      bucket.at == Time() ? burst : std::min(burst, bucket.level + passed * rate.per_second);
  bucket.at = now;

  RateDecision decision{.limited = true, .limit = static_cast<int64_t>(burst)};
  const double needed = std::min(cost, burst);
  decision.allowed = bucket.level >= needed;
  if (decision.allowed) {
    bucket.level -= cost;
  } else {
    const double wait = (needed - bucket.level) / rate.per_second;
    decision.retry_after = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(wait)));
  }
  decision.remaining = static_cast<int64_t>(std::max(0.0, std::floor(bucket.level)));
  decision.reset_seconds =
      static_cast<int64_t>(std::ceil((burst - bucket.level) / rate.per_second));
  return decision;
}

// Forgets the half that rested longest, so that the cost is spread over many calls.
void RateLimiter::Trim() {
  std::vector<std::pair<Time, std::string>> ages;
  ages.reserve(entries_.size());
  for (const auto& [key, entry] : entries_) ages.emplace_back(entry.last_used, key);
  const auto middle = ages.begin() + static_cast<ptrdiff_t>((ages.size() + 1) / 2);
  std::nth_element(ages.begin(), middle, ages.end());
  for (auto it = ages.begin(); it != middle; ++it) entries_.erase(it->second);
}

struct QuotaLedger::State {
  std::unordered_map<std::string, Holding> held;

  void Set(const std::string& key, const Holding& total) {
    if (total.sandboxes == 0 && total.cpu_millis == 0 && total.memory_bytes == 0) {
      held.erase(key);
    } else {
      held[key] = total;
    }
  }
  Holding Of(const std::string& key) const {
    const auto found = held.find(key);
    return found == held.end() ? Holding() : found->second;
  }
};

QuotaLedger::QuotaLedger() : state_(std::make_shared<State>()) {}

Holding QuotaLedger::HeldBy(const std::string& key) const { return state_->Of(key); }

Result<QuotaLedger::Lease> QuotaLedger::Acquire(const std::string& key, const Holding& size,
                                                const Holding& quota) {
  CAISSON_TRY(CheckQuota(size, Sum(state_->Of(key), size), quota));
  return Adopt(key, size);
}

QuotaLedger::Lease QuotaLedger::Adopt(const std::string& key, const Holding& size) {
  state_->Set(key, Sum(state_->Of(key), size));
  Lease lease;
  lease.state_ = state_;
  lease.key_ = key;
  lease.size_ = size;
  return lease;
}

QuotaLedger::Lease::Lease(Lease&& other) noexcept
    : state_(std::exchange(other.state_, nullptr)),
      key_(std::move(other.key_)),
      size_(std::exchange(other.size_, {})) {}

QuotaLedger::Lease& QuotaLedger::Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    Release();
    state_ = std::exchange(other.state_, nullptr);
    key_ = std::move(other.key_);
    size_ = std::exchange(other.size_, {});
  }
  return *this;
}

void QuotaLedger::Lease::Release() {
  if (!state_) return;
  state_->Set(key_, Difference(state_->Of(key_), size_));
  state_.reset();
}

Status QuotaLedger::Lease::Resize(const Holding& size, const Holding& quota) {
  if (!state_) return Error(ErrorCode::kInternal, "a lease that was given back has no size");
  const Holding more = Difference(size, size_);
  const Holding total = Sum(state_->Of(key_), more);
  CAISSON_TRY(CheckQuota(more, total, quota));
  state_->Set(key_, total);
  size_ = size;
  return {};
}

}  // namespace caisson::auth
