// AlertWatch: looks at the metrics now and then, and tells when an alert rule begins or ceases to
// hold: as an event, in the log, and to the rule's own webhook. Belongs to one Loop's thread; what
// it is given outlives it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "api/webhook_sender.h"
#include "async/task_set.h"
#include "log/logger.h"
#include "sandbox/event_bus.h"
#include "telemetry/alerts.h"

namespace caisson::api {

class AlertWatch {
 public:
  struct Parts {
    async::Loop& loop;
    log::Logger log;
    sandbox::EventBus& events;
    const telemetry::Registry& metrics;
    PostFunction post;
    std::chrono::milliseconds interval = std::chrono::seconds(5);
    std::chrono::milliseconds first_pause = std::chrono::seconds(2);  // before the second attempt
  };
  // Begins at once.
  AlertWatch(Parts parts, std::vector<telemetry::AlertRule> rules);

  // The rules as they stood at the last look.
  std::vector<telemetry::AlertStatus> List() const { return alerts_.List(); }

 private:
  void Tell(const telemetry::AlertStatus& status);
  Task<void> PostTask(std::string url, std::string body);

  Parts parts_;
  telemetry::Alerts alerts_;
  async::TaskSet tasks_;
};

}  // namespace caisson::api
