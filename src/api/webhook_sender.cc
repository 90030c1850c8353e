#include "api/webhook_sender.h"

#include <algorithm>
#include <utility>

#include "api/event_json.h"
#include "api/time_text.h"
#include "async/race.h"
#include "auth/crypto.h"
#include "base/encoding.h"
#include "base/random.h"
#include "base/text.h"

namespace caisson::api {
namespace {

using std::chrono::milliseconds;
using store::DeliveryRecord;
using store::DeliveryState;
using store::WebhookRecord;

constexpr int kScan = 64;            // deliveries looked at at a time
constexpr size_t kEventBatch = 256;  // events written at a time
constexpr milliseconds kPoll{500};   // while something waits for another delivery's end

bool Wants(const WebhookRecord& webhook, const sandbox::SessionEvent& event) {
  if (webhook.status != WebhookRecord::Status::kActive) return false;
  if (webhook.tenant != "*" && webhook.tenant != event.tenant) return false;
  if (webhook.types.empty()) return true;
  const std::string padded = Concat({" ", webhook.types, " "});
  return padded.contains(Concat({" ", NameOf(event.kind), " "}));
}

DeliveryRecord DeliveryOf(const WebhookRecord& webhook, const sandbox::SessionEvent& event) {
  const int64_t now = NowMs();
  return {.webhook_id = webhook.id,
          .event_seq = static_cast<int64_t>(event.sequence),
          .ordering_key = event.session_id,
          .body = json::Write(ToJson(event)),
          .next_ms = now,
          .created_ms = now};
}

// Between 0.8 and 1.2 times as long, so that those who failed together do not come together.
milliseconds Jittered(milliseconds pause) {
  const std::string bytes = RandomBytes(1);
  const double part = static_cast<unsigned char>(bytes[0]) / 255.0;
  return milliseconds(
      static_cast<int64_t>(static_cast<double>(pause.count()) * (0.8 + 0.4 * part)));
}

std::string TypeOf(const std::string& body) {
  const auto event = json::Parse(body);
  if (!event || !event->is_object()) return "";
  const json::Value* type = event->as_object().if_contains("type");
  return type != nullptr && type->is_string() ? std::string(type->as_string()) : "";
}

}  // namespace

std::string WebhookSignature(std::string_view secret, int64_t seconds, std::string_view body) {
  const std::string time = std::to_string(seconds);
  const std::string mac = auth::HmacSha256(secret, Concat({time, ".", body}));
  return Concat({"t=", time, ",v1=", ToHex(mac)});
}

WebhookSender::WebhookSender(Parts parts, Options options)
    : parts_(std::move(parts)), options_(options), changed_(parts_.loop), tasks_(parts_.loop) {}

Task<Status> WebhookSender::Start() {
  CAISSON_CO_ASSIGN(auto webhooks,
                    co_await parts_.store.Read<std::vector<WebhookRecord>>(
                        [](store::Database& db) { return store::ListWebhooks(db, std::nullopt); }));
  for (WebhookRecord& webhook : webhooks) webhooks_[webhook.id] = std::move(webhook);
  events_ = parts_.events.Subscribe({});
  tasks_.Spawn(ListenTask());
  tasks_.Spawn(SendTask());
  tasks_.Spawn(PurgeTask());
  co_return Status();
}

// --- targets ---------------------------------------------------------------------------------

Task<Status> WebhookSender::Add(WebhookRecord webhook) {
  CAISSON_CO_TRY(co_await parts_.store.Write(
      store::Durability::kDurable,
      [webhook](store::Database& db) { return store::InsertWebhook(db, webhook); }));
  webhooks_[webhook.id] = std::move(webhook);
  co_return Status();
}

Task<Status> WebhookSender::Update(WebhookRecord webhook) {
  CAISSON_CO_TRY(co_await parts_.store.Write(
      store::Durability::kDurable,
      [webhook](store::Database& db) { return store::UpdateWebhook(db, webhook); }));
  webhooks_[webhook.id] = std::move(webhook);
  changed_.Set();
  co_return Status();
}

// It leaves the table first: no delivery may be written for what the store no longer has.
Task<Status> WebhookSender::Remove(std::string id) {
  auto removed = webhooks_.extract(id);
  auto written = co_await parts_.store.Write(
      store::Durability::kDurable,
      [id](store::Database& db) { return store::RemoveWebhook(db, id); }, store::Purpose::kShrink);
  if (!written && !removed.empty()) webhooks_.insert(std::move(removed));
  co_return written;
}

std::vector<WebhookRecord> WebhookSender::List() const {
  std::vector<WebhookRecord> list;
  for (const auto& [id, webhook] : webhooks_) list.push_back(webhook);
  std::ranges::sort(list, {}, [](const WebhookRecord& webhook) {
    return std::pair(webhook.created_ms, webhook.id);
  });
  return list;
}

std::optional<WebhookRecord> WebhookSender::Find(const std::string& id) const {
  const auto found = webhooks_.find(id);
  if (found == webhooks_.end()) return std::nullopt;
  return found->second;
}

// --- from events to deliveries ---------------------------------------------------------------

Task<void> WebhookSender::ListenTask() {
  for (;;) {
    std::optional<sandbox::EventItem> item = co_await events_->Next();
    std::vector<sandbox::SessionEvent> events;
    for (; item; item = events_->Poll()) {
      if (const auto* missed = std::get_if<sandbox::EventsMissed>(&*item))
        parts_.log.Error("events came too fast for the webhooks",
                         {{"from", missed->from}, {"to", missed->to}});
      else
        events.push_back(std::get<sandbox::SessionEvent>(*std::move(item)));
      if (events.size() == kEventBatch) break;
    }
    co_await Record(std::move(events));
  }
}

std::vector<DeliveryRecord> WebhookSender::DeliveriesOf(const sandbox::SessionEvent& event) const {
  std::vector<DeliveryRecord> deliveries;
  for (const auto& [id, webhook] : webhooks_)
    if (Wants(webhook, event)) deliveries.push_back(DeliveryOf(webhook, event));
  return deliveries;
}

Task<void> WebhookSender::Record(std::vector<sandbox::SessionEvent> events) {
  std::vector<DeliveryRecord> deliveries;
  for (const auto& event : events)
    for (DeliveryRecord& delivery : DeliveriesOf(event)) deliveries.push_back(std::move(delivery));
  if (deliveries.empty()) co_return;
  const auto written = co_await parts_.store.Write(
      store::Durability::kSoon,
      [deliveries, most = options_.max_pending](store::Database& db) -> Status {
        for (DeliveryRecord delivery : deliveries) {
          CAISSON_TRY(db.Nested([&]() -> Status {
            CAISSON_ASSIGN(const int64_t pending, store::CountPending(db, delivery.webhook_id));
            if (pending >= most) {
              delivery.state = DeliveryState::kDead;
              delivery.ended_ms = delivery.created_ms;
              delivery.last_error = "too many deliveries to this target are waiting";
            }
            CAISSON_TRY(store::InsertDelivery(db, delivery));
            return {};
          }));
        }
        return {};
      });
  if (!written)
    parts_.log.Error("webhook deliveries were lost", written.error(),
                     {{"deliveries", deliveries.size()}});
  changed_.Set();
}

Task<Result<int64_t>> WebhookSender::Enqueue(std::string webhook_id, sandbox::SessionEvent event) {
  const auto webhook = Find(webhook_id);
  if (!webhook) co_return Error(ErrorCode::kNotFound, "no webhook " + Quoted(webhook_id));
  const DeliveryRecord delivery = DeliveryOf(*webhook, event);
  const auto number = std::make_shared<int64_t>(0);
  CAISSON_CO_TRY(co_await parts_.store.Write(
      store::Durability::kSoon, [delivery, number](store::Database& db) -> Status {
        CAISSON_ASSIGN(*number, store::InsertDelivery(db, delivery));
        return {};
      }));
  changed_.Set();
  co_return *number;
}

Task<Status> WebhookSender::Redeliver(std::string webhook_id, int64_t delivery) {
  auto done = co_await parts_.store.Write(
      store::Durability::kSoon, [webhook_id, delivery](store::Database& db) -> Status {
        CAISSON_ASSIGN(auto found, store::FindDelivery(db, delivery));
        if (!found || found->webhook_id != webhook_id)
          return Error(ErrorCode::kNotFound, "there is no delivery " + std::to_string(delivery));
        if (found->state == DeliveryState::kPending)
          return Error(ErrorCode::kConflict,
                       Concat({"delivery ", std::to_string(delivery), " is still pending"}))
              .WithRemedy("wait until it is delivered or dead");
        found->state = DeliveryState::kPending;
        found->attempts = 0;
        found->next_ms = NowMs();
        found->ended_ms.reset();
        return store::UpdateDelivery(db, *found);
      });
  changed_.Set();
  co_return done;
}

Task<void> WebhookSender::PurgeTask() {
  for (;;) {
    const int64_t before = NowMs() - options_.keep_ended.count();
    const auto purged = co_await parts_.store.Write(
        store::Durability::kSoon,
        [before](store::Database& db) { return store::PurgeDeliveries(db, before); },
        store::Purpose::kShrink);
    if (!purged) parts_.log.Warn("old webhook deliveries were not forgotten", purged.error());
    co_await parts_.loop.Sleep(std::chrono::hours(1));
  }
}

// --- from deliveries to the world ------------------------------------------------------------

Task<void> WebhookSender::SendTask() {
  for (;;) {
    changed_.Clear();
    if (co_await StartDue() > 0) continue;
    const milliseconds pause = co_await PauseUntilDue();
    (void)co_await async::FirstOf(&parts_.loop, async::WaitFor(&changed_),
                                  async::SleepFor(&parts_.loop, pause));
  }
}

bool WebhookSender::MayStart(const DeliveryRecord& delivery) const {
  if (running_.size() >= options_.at_once || running_.contains(delivery.id)) return false;
  if (!webhooks_.contains(delivery.webhook_id)) return false;
  const auto same = std::ranges::count_if(
      running_, [&](const auto& running) { return running.second == delivery.webhook_id; });
  return static_cast<size_t>(same) < options_.at_once_per_target;
}

// Gives how many were started.
Task<size_t> WebhookSender::StartDue() {
  const int64_t now = NowMs();
  const auto due = co_await parts_.store.Read<std::vector<DeliveryRecord>>(
      [now](store::Database& db) { return store::DueDeliveries(db, now, kScan); });
  if (!due) {
    parts_.log.Error("webhook deliveries could not be read", due.error());
    co_return 0;
  }
  size_t started = 0;
  for (const DeliveryRecord& delivery : *due) {
    if (!MayStart(delivery)) continue;
    ++started;
    running_[delivery.id] = delivery.webhook_id;
    tasks_.Spawn(DeliverTask(delivery));
  }
  co_return started;
}

Task<milliseconds> WebhookSender::PauseUntilDue() {
  const auto next = co_await parts_.store.Read<std::optional<int64_t>>(
      [](store::Database& db) { return store::NextDeliveryTime(db); });
  if (!next) co_return kPoll;
  if (!*next) co_return std::chrono::hours(1);
  const milliseconds wait(**next - NowMs());
  co_return wait > milliseconds(0) ? wait : kPoll;
}

Task<void> WebhookSender::DeliverTask(DeliveryRecord delivery) {
  // An attempt may have ended between the reading of what is due and now.
  const auto current = co_await parts_.store.Read<std::optional<DeliveryRecord>>(
      [id = delivery.id](store::Database& db) { return store::FindDelivery(db, id); });
  if (!current || !*current || (*current)->state != DeliveryState::kPending ||
      (*current)->attempts != delivery.attempts) {
    running_.erase(delivery.id);
    changed_.Set();
    co_return;
  }
  const Status sent = co_await Attempt(delivery);
  Judge(&delivery, sent);
  if (!sent)
    parts_.log.Warn("webhook delivery failed", sent.error(),
                    {{"webhook", delivery.webhook_id},
                     {"delivery", delivery.id},
                     {"attempts", delivery.attempts},
                     {"state", NameOf(delivery.state)}});
  const auto written = co_await parts_.store.Write(
      store::Durability::kSoon,
      [delivery](store::Database& db) { return store::UpdateDelivery(db, delivery); },
      store::Purpose::kShrink);
  if (!written && written.error().code() != ErrorCode::kNotFound)
    parts_.log.Error("a webhook delivery's state was not written", written.error());
  running_.erase(delivery.id);
  changed_.Set();
}

Task<Status> WebhookSender::Attempt(DeliveryRecord delivery) {
  const auto webhook = Find(delivery.webhook_id);
  if (!webhook) co_return Error(ErrorCode::kCancelled, "the webhook was removed");
  net::FetchRequest request{.method = "POST",
                            .url = webhook->url,
                            .headers = {},
                            .body = delivery.body,
                            .timeout = options_.timeout,
                            .max_body = 64 << 10};
  request.headers.Set("Content-Type", "application/json");
  request.headers.Set("User-Agent", "caisson");
  request.headers.Set("X-Caisson-Event", TypeOf(delivery.body));
  request.headers.Set("X-Caisson-Delivery", std::to_string(delivery.id));
  request.headers.Set("X-Caisson-Signature",
                      WebhookSignature(webhook->secret, NowMs() / 1000, delivery.body));
  CAISSON_CO_ASSIGN(const auto response, co_await parts_.post(std::move(request)));
  if (response.status >= 200 && response.status < 300) co_return Status();
  co_return Error(ErrorCode::kUnavailable,
                  Concat({"the target answered ", std::to_string(response.status)}));
}

void WebhookSender::Judge(DeliveryRecord* delivery, const Status& sent) const {
  ++delivery->attempts;
  const int64_t now = NowMs();
  if (sent) {
    delivery->state = DeliveryState::kDelivered;
    delivery->last_error.clear();
    delivery->ended_ms = now;
    return;
  }
  delivery->last_error = sent.error().message();
  const ErrorCode code = sent.error().code();
  const bool hopeless = code == ErrorCode::kPermissionDenied || code == ErrorCode::kInvalidArgument;
  if (hopeless || delivery->attempts >= options_.max_attempts) {
    delivery->state = DeliveryState::kDead;
    delivery->ended_ms = now;
    return;
  }
  const auto doublings = std::min<int64_t>(delivery->attempts - 1, 20);
  const milliseconds pause =
      std::min<milliseconds>(options_.first_pause * (int64_t{1} << doublings), options_.last_pause);
  delivery->next_ms = now + Jittered(pause).count();
}

}  // namespace caisson::api
