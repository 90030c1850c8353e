// The whole API on a data directory of its own, with sandboxes made of memory and no network.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "api/administration.h"
#include "api/dispatcher.h"
#include "api/fake_exchange.h"
#include "api/routes.h"
#include "api/services.h"
#include "async/race.h"
#include "log/fake_sink.h"
#include "net/url.h"
#include "sandbox/test_manager.h"
#include "store/test_directory.h"

namespace caisson::api {

class ApiTest : public sandbox::ManagerTest {
 protected:
  ApiTest() {
    store = store::Store::Open(loop, directory.path()).value();
    Administration::Parts parts{.loop = loop,
                                .log = log::Logger(sink, log::Level::kDebug),
                                .events = *events,
                                .store = *store,
                                .metrics = metrics};
    admin = Run(Administration::Create(std::move(parts), {})).value();
    EXPECT_TRUE(Run(admin->Begin(manager.get(), {})));
    services.reset(new Services{.loop = loop,
                                .log = log::Logger(sink, log::Level::kDebug),
                                .info = info,
                                .metrics = server_metrics,
                                .sessions = *manager,
                                .events = *events,
                                .store = *store,
                                .keys = admin->keys(),
                                .tokens = admin->tokens(),
                                .allowances = admin->allowances(),
                                .streams = admin->streams(),
                                .usage = admin->usage(),
                                .webhooks = admin->webhooks(),
                                .alerts = admin->alerts(),
                                .tracer = tracer});
    dispatcher = Dispatcher::Create(*services, admin->gate(), AllRoutes()).value();
    root = MakeKey({.name = "root", .tenant = "acme", .role = auth::Role::kAdmin});
  }

  // Lets everything go on until `condition` holds, which may call the API; gives up after long.
  template <typename Condition>
  bool Eventually(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      (void)Run(async::SleepFor(&loop, std::chrono::microseconds(200)));
    }
    return true;
  }

  std::string MakeKey(auth::NewKey key) {
    auto issued = Run(admin->keys().Create(std::move(key)));
    EXPECT_TRUE(issued) << issued.error().message();
    EXPECT_TRUE(admin->allowances().Apply(issued->record));
    return issued->key;
  }
  static std::string IdOf(const std::string& key) { return key.substr(4, 8); }

  // A request from another machine, with a key unless it is empty.
  static net::Request Ask(std::string method, std::string_view target, std::string_view key) {
    net::Request request;
    request.method = std::move(method);
    request.target = target;
    const size_t mark = std::min(target.find('?'), target.size());
    auto path = net::ParsePath(target.substr(0, mark)).value();
    request.path = path.text;
    request.segments = path.segments;
    if (mark < target.size()) request.query = net::ParseQuery(target.substr(mark + 1)).value();
    request.headers.Set("Host", "localhost");
    if (!key.empty()) request.headers.Set("Authorization", "Bearer " + std::string(key));
    request.peer.address = "203.0.113.7";
    return request;
  }
  net::Response Send(net::Request request, std::string body = "") {
    FakeExchange exchange(loop, std::move(request), std::move(body));
    Run(dispatcher->Handle(&exchange));
    EXPECT_TRUE(exchange.answer);
    return *exchange.answer;
  }
  net::Response Call(std::string method, std::string_view target, std::string_view key,
                     std::string body = "") {
    return Send(Ask(std::move(method), target, key), std::move(body));
  }
  static json::Value JsonOf(const net::Response& response) {
    auto value = json::Parse(response.body);
    EXPECT_TRUE(value) << response.body;
    return value ? *value : json::Value();
  }
  static std::string Text(const json::Value& object, std::string_view name) {
    return std::string(object.at(name).as_string());
  }

  store::TestDirectory directory;
  log::FakeSink sink;
  telemetry::Registry metrics;
  telemetry::Tracer tracer{{}};
  ServerInfo info;
  ServerMetrics server_metrics{metrics, *manager};
  std::unique_ptr<store::Store> store;
  std::unique_ptr<Administration> admin;
  std::unique_ptr<Services> services;
  std::unique_ptr<Dispatcher> dispatcher;
  std::string root;  // an admin's key, of the tenant acme
};

}  // namespace caisson::api
