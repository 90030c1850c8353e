// Admission: whether the host has room for another sandbox, now or soon.
//
// Limits are ceilings and most sandboxes stay far below theirs, so their sum says little. What
// counts is what the host has left (memory, processes, disk), less what sandboxes that are just
// being made are expected to take. Belongs to one Loop's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "async/event.h"
#include "sandbox/session_record.h"

namespace caisson::sandbox {

// What a sandbox may use at most.
struct Demand {
  uint64_t memory_bytes = 0, disk_bytes = 0;
  uint32_t cpu_millis = 0, pids = 0;
};
Demand DemandOf(const SessionSpec& spec);

// What a tenant may have at a time, kept elsewhere. The lease gives it back when it goes.
class QuotaLease {
 public:
  virtual ~QuotaLease() = default;
};
class Quotas {
 public:
  virtual ~Quotas() = default;
  // kResourceExhausted when the tenant or key has its share already.
  virtual Result<std::unique_ptr<QuotaLease>> Take(const Owner& owner, const Demand& demand) = 0;
};

// What the host has left.
struct Headroom {
  uint64_t memory_bytes = 0, disk_bytes = 0, pids = 0;
};
// From /proc and the file system of `path`.
Result<Headroom> ReadHeadroom(const std::string& path);
using HeadroomReader = std::function<Result<Headroom>()>;

struct AdmissionOptions {
  uint64_t memory_reserve = 256 * kMiB;  // left to the host
  uint64_t disk_reserve = 64 * kMiB;
  uint64_t pids_reserve = 512;
  uint64_t expected_memory = 8 * kMiB;  // of one that is being made
  uint64_t expected_pids = 4;
  size_t max_sessions = 0;  // 0: as many as fit
  size_t max_waiting = 1024;
  std::chrono::milliseconds retry_after = std::chrono::seconds(1);
  std::chrono::milliseconds look_again = std::chrono::milliseconds(100);
};

class Admission {
 public:
  // `quotas` may be null and outlives it.
  Admission(async::Loop& loop, AdmissionOptions options, HeadroomReader headroom, Quotas* quotas);

  // The right to one sandbox. Gives its place back when it goes.
  class Lease {
   public:
    Lease() = default;
    Lease(Admission& admission, std::unique_ptr<QuotaLease> quota);
    Lease(Lease&& other) noexcept { *this = std::move(other); }
    Lease& operator=(Lease&& other) noexcept;
    ~Lease() { Drop(); }
    // The sandbox is there: the host's own figures show it from now on.
    void Made();

   private:
    void Drop();
    Admission* admission_ = nullptr;
    bool making_ = false;
    std::unique_ptr<QuotaLease> quota_;
  };

  // kResourceExhausted (retryable, see retry_after) when there is no room; with `wait`, first when
  // there is none for so long. Those who wait are served in order.
  Task<Result<Lease>> Admit(Owner owner, Demand demand,
                            std::optional<std::chrono::milliseconds> wait);
  // For a sandbox that exists already. Takes its place in the counts, whatever they are.
  Lease Count(const Owner& owner, const Demand& demand);

  // Whether one more would be admitted, quotas aside.
  bool HasRoom() { return !Missing().has_value(); }
  // When a refused one may come again.
  std::chrono::milliseconds retry_after() const { return options_.retry_after; }
  size_t admitted() const { return admitted_; }
  size_t waiting() const { return waiting_; }

 private:
  // What is missing, if anything.
  std::optional<std::string> Missing();
  Result<Lease> TryAdmit(const Owner& owner, const Demand& demand);
  Task<Result<Lease>> AdmitInOrder(Owner owner, Demand demand,
                                   async::Loop::Clock::time_point until);

  async::Loop& loop_;
  const AdmissionOptions options_;
  const HeadroomReader read_;
  Quotas* const quotas_;
  size_t admitted_ = 0, making_ = 0, waiting_ = 0;
  std::list<int> queue_;              // the places of those who wait, in order
  std::optional<Headroom> headroom_;  // as read last
  async::Loop::Clock::time_point read_at_;
  async::Event freed_;
};

}  // namespace caisson::sandbox
