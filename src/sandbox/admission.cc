#include "sandbox/admission.h"

#include <fmt/core.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "async/race.h"
#include "base/units.h"

namespace caisson::sandbox {
namespace {

using Clock = async::Loop::Clock;

Result<std::string> ReadWhole(const char* path) {
  std::ifstream file(path);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (text.empty()) return Error(ErrorCode::kIo, fmt::format("read {}", path));
  return text;
}

// The number after `name` in the text of /proc/meminfo, in bytes.
Result<uint64_t> MemoryField(const std::string& text, const char* name) {
  const size_t at = text.find(name);
  unsigned long long kib = 0;
  if (at == std::string::npos || std::sscanf(text.c_str() + at + strlen(name), "%llu", &kib) != 1)
    return Error(ErrorCode::kIo, fmt::format("/proc/meminfo has no {}", name));
  return kib * 1024;
}

}  // namespace

Demand DemandOf(const SessionSpec& spec) {
  const DefaultLimits limits = EffectiveLimits(spec);
  return {std::max(limits.memory_bytes, spec.scaling.memory_ceiling), limits.disk_bytes,
          std::max(limits.cpu_millis, spec.scaling.cpu_ceiling), limits.pids};
}

Result<Headroom> ReadHeadroom(const std::string& path) {
  Headroom headroom;
  CAISSON_ASSIGN(const std::string meminfo, ReadWhole("/proc/meminfo"));
  CAISSON_ASSIGN(headroom.memory_bytes, MemoryField(meminfo, "MemAvailable:"));
  CAISSON_ASSIGN(const std::string pid_max, ReadWhole("/proc/sys/kernel/pid_max"));
  CAISSON_ASSIGN(const std::string loadavg, ReadWhole("/proc/loadavg"));
  unsigned long long most = 0, there = 0;
  if (std::sscanf(pid_max.c_str(), "%llu", &most) != 1 ||
      std::sscanf(loadavg.c_str(), "%*f %*f %*f %*u/%llu", &there) != 1)
    return Error(ErrorCode::kIo, "/proc says nothing usable about processes");
  headroom.pids = most > there ? most - there : 0;
  struct statvfs disk{};
  if (statvfs(path.c_str(), &disk) != 0) return Error::FromErrno("look at the disk of " + path);
  headroom.disk_bytes = static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
  return headroom;
}

Admission::Admission(async::Loop& loop, AdmissionOptions options, HeadroomReader headroom,
                     Quotas* quotas)
    : loop_(loop), options_(options), read_(std::move(headroom)), quotas_(quotas), freed_(loop) {}

Admission::Lease::Lease(Admission& admission, std::unique_ptr<QuotaLease> quota)
    : admission_(&admission), making_(true), quota_(std::move(quota)) {
  ++admission.admitted_;
  ++admission.making_;
}

Admission::Lease& Admission::Lease::operator=(Lease&& other) noexcept {
  if (this == &other) return *this;
  Drop();
  admission_ = std::exchange(other.admission_, nullptr);
  making_ = std::exchange(other.making_, false);
  quota_ = std::move(other.quota_);
  return *this;
}

void Admission::Lease::Made() {
  if (std::exchange(making_, false)) --admission_->making_;
}

void Admission::Lease::Drop() {
  if (admission_ == nullptr) return;
  Made();
  quota_.reset();
  --admission_->admitted_;
  std::exchange(admission_, nullptr)->freed_.Wake();
}

std::optional<std::string> Admission::Missing() {
  if (options_.max_sessions != 0 && admitted_ >= options_.max_sessions)
    return fmt::format("the server has its {} sessions", options_.max_sessions);
  const auto now = Clock::now();
  if (!headroom_ || now - read_at_ > std::chrono::milliseconds(50)) {
    auto read = read_();
    if (!read) return read.error().message();
    headroom_ = *read;
    read_at_ = now;
  }
  const uint64_t more = making_ + 1;
  if (headroom_->memory_bytes < options_.memory_reserve + more * options_.expected_memory)
    return fmt::format("the host has {} of memory left and keeps {}",
                       FormatSize(headroom_->memory_bytes), FormatSize(options_.memory_reserve));
  if (headroom_->pids < options_.pids_reserve + more * options_.expected_pids)
    return fmt::format("the host can have {} more processes and keeps {}", headroom_->pids,
                       options_.pids_reserve);
  if (headroom_->disk_bytes < options_.disk_reserve)
    return fmt::format("the disk of the data directory has {} left and {} are kept",
                       FormatSize(headroom_->disk_bytes), FormatSize(options_.disk_reserve));
  return std::nullopt;
}

Result<Admission::Lease> Admission::TryAdmit(const Owner& owner, const Demand& demand) {
  if (const auto missing = Missing())
    return Error(ErrorCode::kResourceExhausted, "no room for another sandbox: " + *missing)
        .WithRemedy(fmt::format("try again after {}, let the create wait (queue), or destroy "
                                "sessions that are not needed",
                                FormatDuration(options_.retry_after)));
  std::unique_ptr<QuotaLease> quota;
  if (quotas_ != nullptr) {
    CAISSON_ASSIGN(quota, quotas_->Take(owner, demand));
  }
  return Lease(*this, std::move(quota));
}

Admission::Lease Admission::Count(const Owner& owner, const Demand& demand) {
  std::unique_ptr<QuotaLease> quota;
  // One beyond its quota lives on; nothing new comes beside it.
  if (quotas_ != nullptr)
    if (auto taken = quotas_->Take(owner, demand)) quota = *std::move(taken);
  return {*this, std::move(quota)};
}

Task<Result<Admission::Lease>> Admission::Admit(Owner owner, Demand demand,
                                                std::optional<std::chrono::milliseconds> wait) {
  // Nobody overtakes those who wait.
  if (waiting_ == 0 || !wait) {
    if (waiting_ != 0)
      co_return Error(ErrorCode::kResourceExhausted, "no room: others wait for it already")
          .WithRemedy("try again soon, or let the create wait (queue)");
    auto lease = TryAdmit(owner, demand);
    if (lease || !wait || lease.error().code() != ErrorCode::kResourceExhausted) co_return lease;
  }
  if (waiting_ >= options_.max_waiting)
    co_return Error(ErrorCode::kResourceExhausted, "too many creates wait for room already")
        .WithRemedy("try again soon");
  co_return co_await AdmitInOrder(std::move(owner), demand, Clock::now() + *wait);
}

Task<Result<Admission::Lease>> Admission::AdmitInOrder(Owner owner, Demand demand,
                                                       Clock::time_point until) {
  // Leaves the queue however this task ends.
  struct Place {
    explicit Place(Admission* admission)
        : admission(admission), at(admission->queue_.insert(admission->queue_.end(), 0)) {
      ++admission->waiting_;
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() {
      admission->queue_.erase(at);
      --admission->waiting_;
      admission->freed_.Wake();
    }
    bool First() const { return at == admission->queue_.begin(); }
    Admission* admission;
    std::list<int>::iterator at;
  };
  Place place(this);
  for (;;) {
    Error refused(ErrorCode::kResourceExhausted, "no room: others came before");
    if (place.First()) {
      auto lease = TryAdmit(owner, demand);
      if (lease) co_return lease;
      refused = std::move(lease).error();
    }
    const auto now = Clock::now();
    if (now >= until) co_return std::move(refused).Because("waited as long as was asked for");
    // What the host has changes without our doing: it is looked at again in any case.
    (void)co_await async::WithTimeout(&loop_,
                                      std::min<Clock::duration>(until - now, options_.look_again),
                                      async::WaitFor(&freed_));
  }
}

}  // namespace caisson::sandbox
