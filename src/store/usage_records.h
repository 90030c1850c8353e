// What each key used, added up per day.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace caisson::store {

struct UsageRecord {
  std::string tenant;
  std::string key_id;
  int64_t day = 0;  // since 1970-01-01 UTC
  int64_t requests = 0;
  int64_t creates = 0;
  int64_t execs = 0;
  int64_t cpu_us = 0;
  int64_t sandbox_ms = 0;  // how long sandboxes lived, added up
  int64_t bytes_in = 0;
  int64_t bytes_out = 0;
};

struct UsageFilter {
  std::optional<std::string> tenant;
  std::optional<std::string> key_id;
  int64_t first_day = 0;
  int64_t last_day = INT64_MAX;
};

int64_t DayOf(int64_t time_ms);

// Adds the counts to those of the same tenant, key and day.
Status AddUsage(Database& database, const UsageRecord& record);
// By day, tenant and key.
Result<std::vector<UsageRecord>> ListUsage(Database& database, const UsageFilter& filter);
// Forgets the days before `before_day`.
Status PurgeUsage(Database& database, int64_t before_day);

}  // namespace caisson::store
