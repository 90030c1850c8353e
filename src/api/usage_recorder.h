// UsageRecorder: adds up what each key uses, from the events of sessions and the calls let in.
//
// Counts gather in memory and are written every second, so that a busy server writes few rows; a
// server that is killed loses at most that second. Belongs to one Loop's thread; what it is given
// outlives it.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "async/task_set.h"
#include "auth/roles.h"
#include "log/logger.h"
#include "sandbox/event_bus.h"
#include "sandbox/session_manager.h"
#include "store/store.h"
#include "store/usage_records.h"

namespace caisson::api {

class UsageRecorder {
 public:
  struct Parts {
    async::Loop& loop;
    log::Logger log;
    sandbox::EventBus& events;
    sandbox::SessionManager& sessions;
    store::Store& store;
    std::chrono::milliseconds interval = std::chrono::seconds(1);
  };
  // Listens from here on.
  explicit UsageRecorder(Parts parts);

  // A call of this principal's was let in.
  void CountRequest(const auth::Principal& principal);
  // Listens no more. Not to be called by what a task of its own calls.
  void Stop() { tasks_.Cancel(); }
  // Writes what has gathered. What could not be written is kept for the next time.
  Task<Status> Flush();

 private:
  using Row = std::tuple<std::string, std::string, int64_t>;  // tenant, key, day

  store::UsageRecord& Today(const std::string& tenant, const std::string& key_id);
  Task<void> ListenTask();
  Task<void> Take(sandbox::EventItem item);
  Task<void> TakeEnd(std::string session_id);
  Task<void> FlushTask();

  Parts parts_;
  std::unique_ptr<sandbox::EventBus::Subscription> events_;
  std::map<Row, store::UsageRecord> rows_;
  async::TaskSet tasks_;
};

}  // namespace caisson::api
