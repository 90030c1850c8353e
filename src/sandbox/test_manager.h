// A SessionManager with everything below it made of memory.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sandbox/fake_journal.h"
#include "sandbox/fake_provider.h"
#include "sandbox/session_manager.h"

namespace caisson::sandbox {

class ManagerTest : public testing::Test {
 protected:
  ManagerTest() { Restart(); }

  // A new server on the same records and sandboxes.
  void Restart() {
    manager.reset();
    events = std::make_unique<EventBus>(loop, SystemTime);
    listener = events->Subscribe({});
    if (!admission)
      admission = std::make_unique<Admission>(
          loop, admission_options, [this] { return Result<Headroom>(headroom); }, nullptr);
    ManagerOptions options;
    options.default_provider = "fake";
    options.boot_id = boot_id;
    options.environments = {{"Python3", "host"}};
    options.create_time = create_time;
    options.call_time = std::chrono::seconds(5);
    options.audit_interval = std::chrono::hours(1);
    options.ender.first_retry = std::chrono::milliseconds(1);
    manager = std::make_unique<SessionManager>(ManagerParts{.loop = loop,
                                                            .events = *events,
                                                            .journal = journal,
                                                            .admission = *admission,
                                                            .providers = {&provider},
                                                            .warm = warm,
                                                            .keeper = keeper,
                                                            .commands = commands},
                                               options);
    auto started = loop.RunUntilDone(manager->Start());
    ASSERT_TRUE(started) << started.error().message();
    Settle();
  }

  template <typename T>
  T Run(Task<T> task) {
    return loop.RunUntilDone(std::move(task));
  }
  // Lets everything go on until `condition` holds; gives up after a long time.
  static Task<bool> UntilTask(async::Loop* loop, std::function<bool()> condition) {
    const auto end = async::Loop::Clock::now() + std::chrono::seconds(20);
    while (!condition()) {
      if (async::Loop::Clock::now() > end) co_return false;
      co_await loop->Sleep(std::chrono::microseconds(200));
    }
    co_return true;
  }
  bool Until(std::function<bool()> condition) {
    return Run(UntilTask(&loop, std::move(condition)));
  }
  void Settle() {
    Run([](async::Loop* l) -> Task<void> {
      for (int i = 0; i < 60; ++i) co_await l->Yield();
    }(&loop));
  }

  std::shared_ptr<Session> Create(SessionSpec spec = {}, std::string tenant = "acme") {
    auto made = Run(manager->Create({std::move(tenant), "key"}, std::move(spec)));
    EXPECT_TRUE(made) << (made ? "" : made.error().message());
    return made ? *made : nullptr;
  }
  // The kinds of events since the last call.
  std::vector<std::string> Heard() {
    std::vector<std::string> kinds;
    while (auto item = listener->Poll())
      kinds.emplace_back(NameOf(std::get<SessionEvent>(*item).kind));
    return kinds;
  }
  SessionState Recorded(const std::string& id) { return journal.records.at(id).state; }

  async::Loop loop;
  FakeProvider provider{loop};
  FakeJournal journal{loop};
  AdmissionOptions admission_options;
  Headroom headroom{uint64_t{1} << 40, uint64_t{1} << 40, 1 << 20};
  std::string boot_id = "boot-1";
  std::chrono::milliseconds create_time = std::chrono::seconds(20);
  WarmSource* warm = nullptr;
  SessionKeeper* keeper = nullptr;
  CommandRecords* commands = nullptr;
  const Access mine{.tenant = "acme", .home = "acme"}, theirs{.tenant = "other", .home = "other"};
  std::unique_ptr<EventBus> events;
  std::unique_ptr<EventBus::Subscription> listener;
  std::unique_ptr<Admission> admission;
  std::unique_ptr<SessionManager> manager;
};

}  // namespace caisson::sandbox
