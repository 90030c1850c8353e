#include "api/webhook_sender.h"

#include <gtest/gtest.h>

#include <deque>

#include "api/test_api.h"

namespace caisson::api {
namespace {

class WebhookSenderTest : public ApiTest {
 protected:
  WebhookSenderTest() { Begin({}); }

  // A sender whose posts end as `answers` says, one after the other; then with 200.
  void Begin(WebhookSender::Options options) {
    options.first_pause = std::chrono::milliseconds(1);
    sender = std::make_unique<WebhookSender>(
        WebhookSender::Parts{.loop = loop,
                             .log = log::Logger(sink, log::Level::kDebug),
                             .events = *events,
                             .store = *store,
                             .post =
                                 [this](net::FetchRequest request) {
                                   return Post(&loop, &posts, &answers, std::move(request));
                                 }},
        options);
    ASSERT_TRUE(Run(sender->Start()));
  }
  static Task<Result<net::FetchResponse>> Post(async::Loop* loop,
                                               std::vector<net::FetchRequest>* posts,
                                               std::deque<Result<int>>* answers,
                                               net::FetchRequest request) {
    posts->push_back(std::move(request));
    co_await loop->Yield();
    Result<int> answer = 200;
    if (!answers->empty()) {
      answer = answers->front();
      answers->pop_front();
    }
    if (!answer) co_return answer.error();
    co_return net::FetchResponse{.status = *answer};
  }

  store::WebhookRecord Hook(std::string types = "", std::string tenant = "acme") {
    store::WebhookRecord webhook{.id = "wh_" + std::to_string(++hooks),
                                 .tenant = std::move(tenant),
                                 .url = "https://hooks.example/" + std::to_string(hooks),
                                 .secret = "a secret of some length",
                                 .types = std::move(types),
                                 .created_ms = hooks};
    EXPECT_TRUE(Run(sender->Add(webhook)));
    return webhook;
  }
  void Publish(sandbox::EventKind kind, std::string session = "s1", std::string tenant = "acme") {
    events->Publish({.kind = kind, .session_id = std::move(session), .tenant = std::move(tenant)});
  }
  std::vector<store::DeliveryRecord> Deliveries(const std::string& webhook) {
    return Run(store->Read<std::vector<store::DeliveryRecord>>([webhook](store::Database& db) {
             return store::ListDeliveries(db, webhook, std::nullopt, 100);
           }))
        .value();
  }
  bool UntilAll(const std::string& webhook, size_t count, store::DeliveryState state) {
    return Eventually([&] {
      const auto list = Deliveries(webhook);
      return list.size() == count &&
             std::ranges::all_of(list, [&](const auto& d) { return d.state == state; });
    });
  }

  std::vector<net::FetchRequest> posts;
  std::deque<Result<int>> answers;
  int hooks = 0;
  std::unique_ptr<WebhookSender> sender;
};

using sandbox::EventKind;
using store::DeliveryState;

TEST_F(WebhookSenderTest, AnEventIsPostedSigned) {
  const auto webhook = Hook();
  Publish(EventKind::kSessionRunning);
  ASSERT_TRUE(UntilAll(webhook.id, 1, DeliveryState::kDelivered));
  ASSERT_EQ(posts.size(), 1u);
  const net::FetchRequest& post = posts[0];
  EXPECT_EQ(post.method, "POST");
  EXPECT_EQ(post.url, webhook.url);
  EXPECT_EQ(post.max_redirects, 0);
  EXPECT_EQ(post.headers.Get("X-Caisson-Event"), "session.running");
  EXPECT_EQ(json::Parse(post.body)->at("session_id").as_string(), "s1");
  const std::string signature(post.headers.Get("X-Caisson-Signature"));
  const int64_t seconds = std::stoll(signature.substr(2));
  EXPECT_EQ(signature, WebhookSignature(webhook.secret, seconds, post.body));
  EXPECT_NE(signature, WebhookSignature("another", seconds, post.body));
  EXPECT_EQ(post.body.find(webhook.secret), std::string::npos);
}

// printf %s '1.{}' | openssl dgst -sha256 -hmac key
TEST_F(WebhookSenderTest, TheSignatureIsWhatOthersCompute) {
  EXPECT_EQ(WebhookSignature("key", 1, "{}"),
            "t=1,v1=1ba6b8171186efc613e8bcc0cbdab2748f24984d7c5a84faa2637afa0e40d224");
}

TEST_F(WebhookSenderTest, OnlyWhatIsWantedIsPosted) {
  const auto some = Hook("exec.ended session.lost");
  const auto foreign = Hook("", "other");
  const auto every = Hook("", "*");
  Publish(EventKind::kSessionRunning);
  Publish(EventKind::kExecEnded);
  ASSERT_TRUE(UntilAll(every.id, 2, DeliveryState::kDelivered));
  ASSERT_TRUE(UntilAll(some.id, 1, DeliveryState::kDelivered));
  EXPECT_TRUE(Deliveries(foreign.id).empty());
}

TEST_F(WebhookSenderTest, AFailureIsTriedAgainAndThenGivenUp) {
  Begin({.max_attempts = 3});
  const auto webhook = Hook();
  answers = {Error(ErrorCode::kUnavailable, "no connection"), 500, 200};
  Publish(EventKind::kSessionRunning);
  ASSERT_TRUE(UntilAll(webhook.id, 1, DeliveryState::kDelivered));
  EXPECT_EQ(Deliveries(webhook.id)[0].attempts, 3);
  answers = {500, 302, 404};
  Publish(EventKind::kSessionPaused);
  ASSERT_TRUE(Eventually([&] { return Deliveries(webhook.id)[0].state == DeliveryState::kDead; }));
  EXPECT_EQ(Deliveries(webhook.id)[0].last_error, "the target answered 404");
}

TEST_F(WebhookSenderTest, AnAddressThatIsNotAllowedIsNotTriedAgain) {
  const auto webhook = Hook();
  answers = {Error(ErrorCode::kPermissionDenied, "10.0.0.1 is a private address")};
  Publish(EventKind::kSessionRunning);
  ASSERT_TRUE(UntilAll(webhook.id, 1, DeliveryState::kDead));
  EXPECT_EQ(posts.size(), 1u);
}

TEST_F(WebhookSenderTest, OneSessionsEventsArriveInOrderThoughOneFails) {
  const auto webhook = Hook();
  answers = {500, 500};
  Publish(EventKind::kSessionCreated);
  Publish(EventKind::kSessionRunning);
  Publish(EventKind::kSessionDestroyed);
  ASSERT_TRUE(UntilAll(webhook.id, 3, DeliveryState::kDelivered));
  std::vector<std::string> order;
  for (const auto& post : posts) order.emplace_back(post.headers.Get("X-Caisson-Event"));
  EXPECT_EQ(order,
            (std::vector<std::string>{"session.created", "session.created", "session.created",
                                      "session.running", "session.destroyed"}));
}

TEST_F(WebhookSenderTest, AFullQueueMakesDeadLetters) {
  Begin({.max_pending = 0});
  const auto webhook = Hook();
  Publish(EventKind::kSessionRunning, "a");
  ASSERT_TRUE(UntilAll(webhook.id, 1, DeliveryState::kDead));
  EXPECT_TRUE(posts.empty());
  EXPECT_NE(Deliveries(webhook.id)[0].last_error.find("waiting"), std::string::npos);
}

TEST_F(WebhookSenderTest, WhatWaitsSurvivesARestart) {
  const auto webhook = Hook();
  ASSERT_TRUE(Run(sender->Enqueue(webhook.id, {.kind = EventKind::kAlert, .session_id = "x"})));
  sender.reset();  // whether or not it was sent, the record is there
  Begin({});
  EXPECT_TRUE(UntilAll(webhook.id, 1, DeliveryState::kDelivered));
  EXPECT_EQ(sender->Find(webhook.id)->url, webhook.url);
}

TEST_F(WebhookSenderTest, ADeadLetterIsSentAgainByHand) {
  Begin({.max_attempts = 1});
  const auto webhook = Hook();
  answers = {500};
  Publish(EventKind::kSessionRunning);
  ASSERT_TRUE(UntilAll(webhook.id, 1, DeliveryState::kDead));
  const int64_t id = Deliveries(webhook.id)[0].id;
  EXPECT_EQ(Run(sender->Redeliver("another", id)).error().code(), ErrorCode::kNotFound);
  ASSERT_TRUE(Run(sender->Redeliver(webhook.id, id)));
  ASSERT_TRUE(UntilAll(webhook.id, 1, DeliveryState::kDelivered));
}

TEST_F(WebhookSenderTest, ARemovedTargetIsToldNothingMore) {
  const auto webhook = Hook();
  ASSERT_TRUE(Run(sender->Remove(webhook.id)));
  Publish(EventKind::kSessionRunning);
  const auto witness = Hook();
  Publish(EventKind::kSessionPaused);
  ASSERT_TRUE(UntilAll(witness.id, 1, DeliveryState::kDelivered));
  EXPECT_TRUE(Deliveries(webhook.id).empty());
  EXPECT_EQ(Run(sender->Remove(webhook.id)).error().code(), ErrorCode::kNotFound);
}

// --- over the API; the sender there is the server's own, whose posts must stay on this machine

using WebhookRoutesTest = ApiTest;

TEST_F(WebhookRoutesTest, AWebhookIsMadeChangedAndRemoved) {
  const net::Response made =
      Call("POST", "/api/webhooks", root,
           R"({"url":"https://hooks.example/a","types":["exec.ended"],"active":false})");
  ASSERT_EQ(made.status, 201) << made.body;
  const std::string path = "/api/webhooks/" + Text(JsonOf(made), "id");
  const std::string secret = Text(JsonOf(made), "secret");
  EXPECT_EQ(Call("GET", path, root).body.find(secret), std::string::npos);
  EXPECT_EQ(Call("GET", "/api/webhooks", root).body.find(secret), std::string::npos);
  EXPECT_EQ(Call("POST", path + "/test", root).status, 409) << "it is not active";
  const net::Response patched =
      Call("PATCH", path, root, R"({"url":"https://hooks.example/b","types":[]})");
  EXPECT_EQ(Text(JsonOf(patched), "url"), "https://hooks.example/b");
  EXPECT_TRUE(JsonOf(patched).at("types").as_array().empty());
  EXPECT_EQ(Call("GET", path + "/deliveries", root).status, 200);
  EXPECT_EQ(Call("GET", path + "/deliveries?state=odd", root).status, 400);
  EXPECT_EQ(Call("POST", path + "/deliveries/7/redeliver", root).status, 404);
  EXPECT_EQ(Call("DELETE", path, root).status, 204);
  EXPECT_EQ(Call("GET", path, root).status, 404);
}

TEST_F(WebhookRoutesTest, AddressesWithinAreRefusedAndForeignWebhooksNotFound) {
  const net::Response made =
      Call("POST", "/api/webhooks", root, R"({"url":"http://127.0.0.1:9/hook"})");
  ASSERT_EQ(made.status, 201) << made.body;
  const std::string path = "/api/webhooks/" + Text(JsonOf(made), "id");
  EXPECT_EQ(Call("POST", path + "/test", root).status, 202);
  ASSERT_TRUE(Eventually([&] {
    const json::Value list = JsonOf(Call("GET", path + "/deliveries?state=dead", root));
    return list.at("deliveries").as_array().size() == 1;
  }));
  const std::string other =
      MakeKey({.name = "o", .tenant = "other", .role = auth::Role::kDeveloper});
  EXPECT_EQ(Call("GET", path, other).status, 404);
  EXPECT_EQ(Call("DELETE", path, other).status, 404);
  EXPECT_EQ(
      Call("POST", "/api/webhooks", other, R"({"url":"https://hooks.example","every_tenant":true})")
          .status,
      403);
}

TEST_F(WebhookRoutesTest, BadTargetsAreRefused) {
  for (const char* body :
       {"{}", R"({"url":"ftp://x"})", R"({"url":"unix:/run/x"})", R"({"url":"https://u:p@x/"})",
        R"({"url":"https://x","types":["nonsense"]})", R"({"url":"https://x","secret":"short"})"})
    EXPECT_EQ(Call("POST", "/api/webhooks", root, body).status, 400) << body;
}

}  // namespace
}  // namespace caisson::api
