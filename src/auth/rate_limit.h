// RateLimiter: how often each key may do something. QuotaLedger: how much it may hold at a time.
//
// Limits are token buckets: `burst` at once, refilled at `per_second`. What a decision says fits
// the headers RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset and Retry-After. Time is passed
// in (CLOCK_MONOTONIC). Used on the loop's thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/result.h"

namespace caisson::auth {

enum class Limited : uint8_t { kRequests, kCreates, kExecs, kBytes };
inline constexpr size_t kLimitedKinds = 4;
std::string_view NameOf(Limited kind);

struct Rate {
  double per_second = 0;  // 0: no limit
  double burst = 0;       // at least 1 where there is a limit
};
using Rates = std::array<Rate, kLimitedKinds>;  // by Limited

struct RateDecision {
  bool allowed = true;
  bool limited = false;       // whether there is a limit at all; without one the rest says nothing
  int64_t limit = 0;          // how many at once
  int64_t remaining = 0;      // how many are left now
  int64_t reset_seconds = 0;  // until all are there again
  int64_t retry_after = 0;    // seconds until this one would pass; 0 when allowed
};

class RateLimiter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `max_keys` bounds the memory: beyond it the keys that rested longest are forgotten, which only
  // refills their buckets.
  explicit RateLimiter(Rates defaults, size_t max_keys = 10'000);

  // Limits of one key that differ from the defaults.
  void SetRates(const std::string& key, const Rates& rates);
  // Forgets the key and its own limits.
  void Forget(const std::string& key);

  // Takes `cost` from the bucket when it is there; otherwise takes nothing. A cost greater than the
  // burst passes when the bucket is full and leaves it in debt, so that it is not refused for ever.
  RateDecision Take(const std::string& key, Limited kind, Time now, double cost = 1);

 private:
  struct Bucket {
    double level = 0;
    Time at;  // of `level`; the epoch: never used, so full
  };
  struct Entry {
    std::array<Bucket, kLimitedKinds> buckets;
    Time last_used;
  };

  const Rates& RatesOf(const std::string& key) const;
  void Trim();

  Rates defaults_;
  size_t max_keys_;
  std::unordered_map<std::string, Rates> own_;
  std::unordered_map<std::string, Entry> entries_;
};

struct Holding {
  int64_t sandboxes = 0;
  int64_t cpu_millis = 0;  // thousandths of a core
  int64_t memory_bytes = 0;
};

// How much each key holds. Give back what a lease took by destroying it.
class QuotaLedger {
  struct State;

 public:
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&& other) noexcept;
    ~Lease() { Release(); }
    void Release();
    // Another size for the same thing: what is more is checked, what is less is given back.
    // kResourceExhausted as for Acquire; the lease is then as before.
    Status Resize(const Holding& size, const Holding& quota);

   private:
    friend class QuotaLedger;
    std::shared_ptr<State> state_;
    std::string key_;
    Holding size_;
  };

  QuotaLedger();

  // kResourceExhausted, naming what is used up, when the key would hold more than `quota`. A quota
  // of 0 is none.
  Result<Lease> Acquire(const std::string& key, const Holding& size, const Holding& quota);
  // Without a check, for what is there already (adopted after a restart).
  Lease Adopt(const std::string& key, const Holding& size);
  Holding HeldBy(const std::string& key) const;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace caisson::auth
