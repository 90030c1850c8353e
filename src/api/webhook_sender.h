// WebhookSender: tells the world outside what happens, as often as it takes.
//
// Theory of operation. One task turns events into deliveries, written to the store before anything
// is sent, so that they survive the server. Another takes those that are due and posts them: one
// after another for each target and session, so that a receiver sees a session's events in order,
// and side by side otherwise. A delivery that fails is tried again after a pause that doubles, with
// some jitter; after the last attempt, or when a target may not be called at all, it is dead: kept
// to be looked at and sent again by hand. A target with too many waiting gets new ones as dead
// letters at once. A receiver may see a delivery twice, and tells by its number.
//
// A delivery is the event as /api/events has it, signed:
//   X-Caisson-Signature: t=SECONDS,v1=HEX      HMAC-SHA256(secret, "SECONDS.BODY")
//   X-Caisson-Event: session.running           X-Caisson-Delivery: NUMBER
// Belongs to one Loop's thread; what it is given outlives it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "async/task_set.h"
#include "log/logger.h"
#include "net/fetch.h"
#include "sandbox/event_bus.h"
#include "store/store.h"
#include "store/webhook_records.h"

namespace caisson::api {

// How the bytes go out; net::Fetcher under an address policy, or a test's own.
using PostFunction = std::function<Task<Result<net::FetchResponse>>(net::FetchRequest)>;

class WebhookSender {
 public:
  struct Options {
    int max_attempts = 8;
    std::chrono::milliseconds first_pause = std::chrono::seconds(2);
    std::chrono::milliseconds last_pause = std::chrono::hours(1);
    std::chrono::milliseconds timeout = std::chrono::seconds(10);  // of one attempt
    int64_t max_pending = 1000;                                    // of one target
    size_t at_once = 8, at_once_per_target = 2;
    std::chrono::milliseconds keep_ended = std::chrono::hours(7 * 24);
  };
  struct Parts {
    async::Loop& loop;
    log::Logger log;
    sandbox::EventBus& events;
    store::Store& store;
    PostFunction post;
  };
  WebhookSender(Parts parts, Options options);

  // Reads the targets and begins: with what was left, and with events from now on.
  Task<Status> Start();

  // Changes are on the disk when these complete. kNotFound for an unknown id.
  Task<Status> Add(store::WebhookRecord webhook);
  Task<Status> Update(store::WebhookRecord webhook);
  Task<Status> Remove(std::string id);
  // Oldest first.
  std::vector<store::WebhookRecord> List() const;
  std::optional<store::WebhookRecord> Find(const std::string& id) const;

  // Puts an event of the caller's own into the queue of one target; gives the delivery's number.
  Task<Result<int64_t>> Enqueue(std::string webhook_id, sandbox::SessionEvent event);
  // Sends a delivery anew, from its first attempt. kNotFound; kConflict while it is pending.
  Task<Status> Redeliver(std::string webhook_id, int64_t delivery);

 private:
  using Webhooks = std::map<std::string, store::WebhookRecord>;

  Task<void> ListenTask();
  Task<void> Record(std::vector<sandbox::SessionEvent> events);
  std::vector<store::DeliveryRecord> DeliveriesOf(const sandbox::SessionEvent& event) const;
  Task<void> PurgeTask();
  Task<void> SendTask();
  Task<size_t> StartDue();
  Task<std::chrono::milliseconds> PauseUntilDue();
  Task<void> DeliverTask(store::DeliveryRecord delivery);
  Task<Status> Attempt(store::DeliveryRecord delivery);
  void Judge(store::DeliveryRecord* delivery, const Status& sent) const;
  bool MayStart(const store::DeliveryRecord& delivery) const;

  Parts parts_;
  const Options options_;
  std::unique_ptr<sandbox::EventBus::Subscription> events_;
  Webhooks webhooks_;
  std::map<int64_t, std::string> running_;  // delivery to its target
  async::Event changed_;                    // something may be due
  async::TaskSet tasks_;
};

// "t=1700000000,v1=…"
std::string WebhookSignature(std::string_view secret, int64_t seconds, std::string_view body);

}  // namespace caisson::api
