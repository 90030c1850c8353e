// Webhook targets and what is still to be delivered to them.
//
// A delivery is pending until it is delivered or dead (given up, kept as a dead letter until
// purged). Deliveries of one target with the same ordering key go out one after another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/database.h"

namespace caisson::store {

struct WebhookRecord {
  std::string id;
  std::string tenant;
  std::string url;
  std::string secret;  // signs the deliveries, so it is kept as it is
  std::string types;   // of events, separated by blanks; empty: all
  enum class Status { kPaused, kActive };
  Status status = Status::kActive;
  int64_t created_ms = 0;
};

enum class DeliveryState { kPending, kDelivered, kDead };
std::string_view NameOf(DeliveryState state);

struct DeliveryRecord {
  int64_t id = 0;  // given by the store
  std::string webhook_id;
  int64_t event_seq = 0;
  std::string ordering_key;  // usually the session's id
  std::string body;
  DeliveryState state = DeliveryState::kPending;
  int64_t attempts = 0;
  int64_t next_ms = 0;  // not before then
  std::string last_error;
  int64_t created_ms = 0;
  std::optional<int64_t> ended_ms;
};

// kConflict when the id is taken.
Status InsertWebhook(Database& database, const WebhookRecord& record);
// kNotFound when there is no such webhook.
Status UpdateWebhook(Database& database, const WebhookRecord& record);
// With its deliveries. kNotFound when there is no such webhook.
Status RemoveWebhook(Database& database, std::string_view id);
// Oldest first; of every tenant when none is given.
Result<std::vector<WebhookRecord>> ListWebhooks(Database& database,
                                                const std::optional<std::string>& tenant);

// Gives the delivery's id.
Result<int64_t> InsertDelivery(Database& database, const DeliveryRecord& record);
Result<std::optional<DeliveryRecord>> FindDelivery(Database& database, int64_t id);
// How many deliveries of this webhook are pending.
Result<int64_t> CountPending(Database& database, std::string_view webhook_id);
// The pending deliveries that are due and first in their order, of active targets, at most `limit`.
Result<std::vector<DeliveryRecord>> DueDeliveries(Database& database, int64_t now_ms, int limit);
// When the next delivery will be due, if any is pending.
Result<std::optional<int64_t>> NextDeliveryTime(Database& database);
// Writes state, attempts, next_ms, last_error, ended_ms. kNotFound when it is gone.
Status UpdateDelivery(Database& database, const DeliveryRecord& record);
// Newest first.
Result<std::vector<DeliveryRecord>> ListDeliveries(Database& database, std::string_view webhook_id,
                                                   std::optional<DeliveryState> state, int limit);
// Forgets deliveries that ended before `before_ms`.
Status PurgeDeliveries(Database& database, int64_t before_ms);

}  // namespace caisson::store
