#include "store/webhook_records.h"

#include <array>

#include "base/text.h"
#include "store/cursor.h"

namespace caisson::store {
namespace {

constexpr std::array<std::string_view, 3> kStateNames = {"pending", "delivered", "dead"};

#define DELIVERY_COLUMNS                                                                      \
  "d.id, d.webhook_id, d.event_seq, d.ordering_key, d.body, d.state, d.attempts, d.next_ms, " \
  "d.last_error, d.created_ms, d.ended_ms"

DeliveryRecord DeliveryOf(const Row& row) {
  DeliveryRecord record;
  record.id = row.Int(0);
  record.webhook_id = row.Text(1);
  record.event_seq = row.Int(2);
  record.ordering_key = row.Text(3);
  record.body = row.Text(4);
  const std::string state = row.Text(5);
  record.state = state == kStateNames[0]   ? DeliveryState::kPending
                 : state == kStateNames[1] ? DeliveryState::kDelivered
                                           : DeliveryState::kDead;
  record.attempts = row.Int(6);
  record.next_ms = row.Int(7);
  record.last_error = row.Text(8);
  record.created_ms = row.Int(9);
  record.ended_ms = row.OptionalInt(10);
  return record;
}

int64_t ActiveFlag(const WebhookRecord& record) {
  return record.status == WebhookRecord::Status::kActive ? 1 : 0;
}

Status OneChanged(Database& database, std::string_view what) {
  if (database.changes() == 1) return {};
  return Error(ErrorCode::kNotFound, Concat({"no ", what}));
}

}  // namespace

std::string_view NameOf(DeliveryState state) { return kStateNames[static_cast<size_t>(state)]; }

Status InsertWebhook(Database& database, const WebhookRecord& record) {
  return database.Run(
      "INSERT INTO webhooks (id, tenant, url, secret, types, active, created_ms) "
      "VALUES (?,?,?,?,?,?,?)",
      {record.id, record.tenant, record.url, record.secret, record.types, ActiveFlag(record),
       record.created_ms});
}

Status UpdateWebhook(Database& database, const WebhookRecord& record) {
  CAISSON_TRY(
      database.Run("UPDATE webhooks SET url = ?, secret = ?, types = ?, active = ? WHERE id = ?",
                   {record.url, record.secret, record.types, ActiveFlag(record), record.id}));
  return OneChanged(database, Concat({"webhook ", Quoted(record.id)}));
}

Status RemoveWebhook(Database& database, std::string_view id) {
  CAISSON_TRY(database.Run("DELETE FROM webhooks WHERE id = ?", {id}));
  return OneChanged(database, Concat({"webhook ", Quoted(id)}));
}

Result<std::vector<WebhookRecord>> ListWebhooks(Database& database,
                                                const std::optional<std::string>& tenant) {
  QueryBuilder query("SELECT id, tenant, url, secret, types, active, created_ms FROM webhooks");
  if (tenant) query.Add(" WHERE tenant = ?", {*tenant});
  query.Add(" ORDER BY created_ms, id");
  std::vector<WebhookRecord> webhooks;
  CAISSON_TRY(query.Each(database, [&webhooks](const Row& row) {
    WebhookRecord record;
    record.id = row.Text(0);
    record.tenant = row.Text(1);
    record.url = row.Text(2);
    record.secret = row.Text(3);
    record.types = row.Text(4);
    record.status =
        row.Int(5) == 1 ? WebhookRecord::Status::kActive : WebhookRecord::Status::kPaused;
    record.created_ms = row.Int(6);
    webhooks.push_back(std::move(record));
  }));
  return webhooks;
}

Result<int64_t> InsertDelivery(Database& database, const DeliveryRecord& record) {
  return database.Number(
      "INSERT INTO deliveries (webhook_id, event_seq, ordering_key, body, state, attempts, "
      "next_ms, last_error, created_ms, ended_ms) VALUES (?,?,?,?,?,?,?,?,?,?) RETURNING id",
      {record.webhook_id, record.event_seq, record.ordering_key, record.body, NameOf(record.state),
       record.attempts, record.next_ms, record.last_error, record.created_ms, record.ended_ms});
}

Result<std::optional<DeliveryRecord>> FindDelivery(Database& database, int64_t id) {
  std::optional<DeliveryRecord> found;
  CAISSON_TRY(database.Each("SELECT " DELIVERY_COLUMNS " FROM deliveries d WHERE d.id = ?", {id},
                            [&found](const Row& row) { found = DeliveryOf(row); }));
  return found;
}

Result<int64_t> CountPending(Database& database, std::string_view webhook_id) {
  return database.Number(
      "SELECT count(*) FROM deliveries WHERE webhook_id = ? AND state = 'pending'", {webhook_id});
}

Result<std::vector<DeliveryRecord>> DueDeliveries(Database& database, int64_t now_ms, int limit) {
  CAISSON_TRY(CheckPageLimit(limit));
  std::vector<DeliveryRecord> due;
  CAISSON_TRY(
      database.Each("SELECT " DELIVERY_COLUMNS
                    " FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id "
                    "WHERE d.state = 'pending' AND d.next_ms <= ? AND w.active = 1 AND NOT EXISTS ("
                    "SELECT 1 FROM deliveries e WHERE e.webhook_id = d.webhook_id "
                    "AND e.ordering_key = d.ordering_key AND e.state = 'pending' AND e.id < d.id) "
                    "ORDER BY d.next_ms, d.id LIMIT ?",
                    {now_ms, limit}, [&due](const Row& row) { due.push_back(DeliveryOf(row)); }));
  return due;
}

Result<std::optional<int64_t>> NextDeliveryTime(Database& database) {
  std::optional<int64_t> next;
  CAISSON_TRY(database.Each(
      "SELECT min(d.next_ms) FROM deliveries d JOIN webhooks w ON w.id = d.webhook_id "
      "WHERE d.state = 'pending' AND w.active = 1",
      {}, [&next](const Row& row) { next = row.OptionalInt(0); }));
  return next;
}

Status UpdateDelivery(Database& database, const DeliveryRecord& record) {
  CAISSON_TRY(database.Run(
      "UPDATE deliveries SET state = ?, attempts = ?, next_ms = ?, last_error = ?, ended_ms = ? "
      "WHERE id = ?",
      {NameOf(record.state), record.attempts, record.next_ms, record.last_error, record.ended_ms,
       record.id}));
  return OneChanged(database, Concat({"delivery ", std::to_string(record.id)}));
}

Result<std::vector<DeliveryRecord>> ListDeliveries(Database& database, std::string_view webhook_id,
                                                   std::optional<DeliveryState> state, int limit) {
  CAISSON_TRY(CheckPageLimit(limit));
  QueryBuilder query("SELECT " DELIVERY_COLUMNS " FROM deliveries d WHERE d.webhook_id = ?");
  query.Add("", {webhook_id});
  if (state) query.Add(" AND d.state = ?", {NameOf(*state)});
  query.Add(" ORDER BY d.id DESC LIMIT ?", {limit});
  std::vector<DeliveryRecord> deliveries;
  CAISSON_TRY(query.Each(database, [&](const Row& row) { deliveries.push_back(DeliveryOf(row)); }));
  return deliveries;
}

Status PurgeDeliveries(Database& database, int64_t before_ms) {
  return database.Run("DELETE FROM deliveries WHERE ended_ms < ?", {before_ms});
}

}  // namespace caisson::store
