// Keys, tokens, events, the audit log and usage, through the dispatcher.
#include <gtest/gtest.h>

#include "api/openapi.h"
#include "api/schemas.h"
#include "api/test_api.h"
#include "async/race.h"

namespace caisson::api {
namespace {

using AdminRoutesTest = ApiTest;

constexpr const char* kDeveloper = R"({"name":"dev","role":"developer"})";

TEST_F(AdminRoutesTest, AKeyIsShownOnceAndWorksUntilItIsRevoked) {
  const net::Response made = Call("POST", "/api/keys", root, kDeveloper);
  ASSERT_EQ(made.status, 201) << made.body;
  const std::string key = Text(JsonOf(made), "key");
  const std::string id = Text(JsonOf(made), "id");
  EXPECT_EQ(Text(JsonOf(made), "tenant"), "acme");
  EXPECT_EQ(made.headers.Get("Cache-Control"), "no-store");
  EXPECT_EQ(Call("GET", "/api/sessions", key).status, 200);
  const net::Response shown = Call("GET", "/api/keys/" + id, root);
  EXPECT_EQ(Text(JsonOf(shown), "state"), "active");
  EXPECT_FALSE(JsonOf(shown).as_object().contains("key"));
  EXPECT_FALSE(JsonOf(shown).at("last_used_at").is_null());
  EXPECT_EQ(Call("DELETE", "/api/keys/" + id, root).status, 204);
  EXPECT_EQ(Call("DELETE", "/api/keys/" + id, root).status, 204) << "twice is no error";
  const net::Response refused = Call("GET", "/api/sessions", key);
  EXPECT_EQ(refused.status, 401);
  EXPECT_FALSE(refused.headers.Get("WWW-Authenticate").empty());
  EXPECT_EQ(Text(JsonOf(Call("GET", "/api/keys/" + id, root)), "state"), "revoked");
}

TEST_F(AdminRoutesTest, NoSecretIsInTheLogTheAuditOrTheDatabase) {
  const std::string key = Text(JsonOf(Call("POST", "/api/keys", root, kDeveloper)), "key");
  const std::string secret = key.substr(13, 43);
  EXPECT_EQ(Call("GET", "/api/sessions", key).status, 200);
  EXPECT_EQ(Call("POST", "/api/keys", key, kDeveloper).status, 403);
  EXPECT_EQ(Call("GET", "/api/sessions", key.substr(0, key.size() - 1)).status, 401);
  std::string seen = Call("GET", "/api/audit?limit=1000", root).body;
  seen += Call("GET", "/api/keys", root).body;
  for (const std::string& line : sink.lines()) seen += line;
  ASSERT_NE(seen.find("keys"), std::string::npos);
  EXPECT_EQ(seen.find(secret), std::string::npos);
  const auto hashed = Run(store->Read<std::vector<store::KeyRecord>>(
      [](store::Database& db) { return store::AllKeys(db); }));
  for (const auto& record : *hashed) EXPECT_EQ(record.hash.find(secret), std::string::npos);
}

TEST_F(AdminRoutesTest, BadKeyRequestsAreRefusedByField) {
  const auto refused = [&](const char* body, const char* word) {
    const net::Response response = Call("POST", "/api/keys", root, body);
    EXPECT_EQ(response.status, 400) << body;
    EXPECT_NE(response.body.find(word), std::string::npos) << response.body;
  };
  refused("{}", "name");
  refused(R"({"name":"x"})", "role");
  refused(R"({"name":"x","role":"king"})", "king");
  refused(R"({"name":"","role":"viewer"})", "name");
  refused(R"({"name":"x","role":"viewer","scopes":["read"]})", "scope");
  refused(R"({"name":"x","role":"viewer","scopes":[]})", "scopes");
  refused(R"({"name":"x","role":"viewer","tenant":"a b"})", "tenant");
  refused(R"({"name":"x","role":"viewer","expires_in":0})", "expires_in");
  refused(R"({"name":"x","role":"viewer","limits":{"bytes":5}})", "bytes");
  refused(R"({"name":"x","role":"viewer","limits":{"request_burst":5}})", "request_burst");
  refused(R"({"name":"x","role":"viewer","secret":"mine"})", "secret");
  EXPECT_EQ(admin->keys().List().size(), 1u);
}

TEST_F(AdminRoutesTest, AKeyGivesOutNoMoreThanItHas) {
  const std::string narrow = MakeKey({.name = "narrow",
                                      .tenant = "acme",
                                      .role = auth::Role::kAdmin,
                                      .scopes = auth::ParseScopes("*:keys read:sessions").value()});
  EXPECT_EQ(Call("POST", "/api/keys", narrow, R"({"name":"x","role":"admin"})").status, 403);
  EXPECT_EQ(Call("POST", "/api/keys", narrow, kDeveloper).status, 403);
  EXPECT_EQ(Call("POST", "/api/keys", narrow,
                 R"({"name":"x","role":"viewer","scopes":["read:sessions"]})")
                .status,
            201);
  EXPECT_EQ(Call("POST", "/api/keys/" + IdOf(root) + "/rotate", narrow).status, 403)
      << "a new secret of a wider key would be its rights";
  const std::string creator = MakeKey({.name = "creator",
                                       .tenant = "acme",
                                       .role = auth::Role::kDeveloper,
                                       .scopes = auth::ParseScopes("*:sessions").value()});
  const auto session = Create();
  EXPECT_EQ(Call("POST", "/api/sessions/" + session->id() + "/tokens", creator).status, 403)
      << "a token may execute, this key may not";
}

TEST_F(AdminRoutesTest, RotationHasTwoSecretsUntilItIsFinished) {
  const std::string old = MakeKey({.name = "d", .tenant = "acme", .role = auth::Role::kViewer});
  const std::string path = "/api/keys/" + IdOf(old);
  EXPECT_EQ(Call("POST", path + "/rotate/finish", root).status, 409);
  const net::Response rotated = Call("POST", path + "/rotate", root);
  ASSERT_EQ(rotated.status, 200) << rotated.body;
  const std::string fresh = Text(JsonOf(rotated), "key");
  EXPECT_EQ(Call("GET", "/api/sessions", old).status, 200);
  EXPECT_EQ(Call("GET", "/api/sessions", fresh).status, 200);
  EXPECT_EQ(Call("POST", path + "/rotate/finish", root).status, 204);
  EXPECT_EQ(Call("GET", "/api/sessions", old).status, 401);
  EXPECT_EQ(Call("GET", "/api/sessions", fresh).status, 200);
  EXPECT_EQ(Call("POST", "/api/keys/nosuchid/rotate", root).status, 404);
}

TEST_F(AdminRoutesTest, ARevokedKeysStreamsEndAndOthersGoOn) {
  const std::string key = MakeKey({.name = "v", .tenant = "acme", .role = auth::Role::kViewer});
  const auto ask = [](const std::string& with) {
    net::Request request = Ask("GET", "/api/events", with);
    request.headers.Set("Accept", "text/event-stream");
    return request;
  };
  FakeExchange stream(loop, ask(key), "");
  FakeExchange other(loop, ask(root), "");
  async::TaskSet running(loop);
  running.Spawn(dispatcher->Handle(&stream));
  running.Spawn(dispatcher->Handle(&other));
  ASSERT_TRUE(Eventually([&] { return stream.answered() && other.answered(); }));
  EXPECT_EQ(admin->streams().open(), 2u);
  EXPECT_EQ(Call("DELETE", "/api/keys/" + IdOf(key), root).status, 204);
  EXPECT_TRUE(Eventually([&] { return running.size() == 1; }));
  EXPECT_FALSE(stream.finished) << "the client must see that it was cut";
  EXPECT_EQ(admin->streams().open(), 1u);
}

TEST_F(AdminRoutesTest, ATokenIsForItsSessionAndNothingElse) {
  const auto session = Create();
  const auto other = Create();
  const std::string path = "/api/sessions/" + session->id();
  const net::Response made = Call("POST", path + "/tokens", root, R"({"expires_in":"10m"})");
  ASSERT_EQ(made.status, 201) << made.body;
  const std::string token = Text(JsonOf(made), "token");
  EXPECT_EQ(Call("GET", path, token).status, 200);
  EXPECT_EQ(Call("GET", "/api/sessions/" + other->id(), token).status, 404);
  EXPECT_EQ(Call("POST", "/api/sessions", token, "{}").status, 403);
  EXPECT_EQ(Call("POST", path + "/tokens", token).status, 403);
  EXPECT_EQ(Call("GET", "/api/keys", token).status, 403);
  EXPECT_EQ(Call("GET", "/api/audit", token).status, 403);
  EXPECT_EQ(JsonOf(Call("GET", "/api/sessions", token)).at("sessions").as_array().size(), 1u);
  const json::Value page = JsonOf(Call("GET", "/api/events?session=" + other->id(), token));
  for (const json::Value& event : page.at("events").as_array())
    EXPECT_EQ(Text(event, "session_id"), session->id());
  std::string changed = token;
  changed[changed.size() / 2] = changed[changed.size() / 2] == 'a' ? 'b' : 'a';
  EXPECT_EQ(Call("GET", path, changed).status, 401);
  EXPECT_EQ(Call("POST", path + "/tokens", root, R"({"expires_in":"25h"})").status, 400);
}

TEST_F(AdminRoutesTest, ForeignObjectsAreNotFoundAndForeignEventsNotSeen) {
  const std::string other =
      MakeKey({.name = "o", .tenant = "other", .role = auth::Role::kDeveloper});
  const auto session = Create();
  const std::string path = "/api/sessions/" + session->id();
  EXPECT_EQ(Call("GET", path, other).status, 404);
  EXPECT_EQ(Call("GET", path + "/events", other).status, 404);
  EXPECT_EQ(Call("POST", path + "/tokens", other).status, 404);
  EXPECT_TRUE(JsonOf(Call("GET", "/api/events", other)).at("events").as_array().empty());
  EXPECT_FALSE(JsonOf(Call("GET", "/api/events", root)).at("events").as_array().empty());
}

TEST_F(AdminRoutesTest, EventsArePagedFilteredAndReplayed) {
  const auto session = Create();
  const json::Value page = JsonOf(Call("GET", "/api/events?limit=1", root));
  ASSERT_EQ(page.at("events").as_array().size(), 1u);
  const json::Value& first = page.at("events").at(0);
  EXPECT_EQ(Text(first, "type"), "session.created");
  EXPECT_EQ(Text(first, "session_id"), session->id());
  const std::string after = std::to_string(page.at("next_after").to_number<int64_t>());
  const json::Value rest = JsonOf(Call("GET", "/api/events?after=" + after, root));
  EXPECT_EQ(Text(rest.at("events").at(0), "type"), "session.running");
  const json::Value running =
      JsonOf(Call("GET", "/api/sessions/" + session->id() + "/events?type=session.running", root));
  EXPECT_EQ(running.at("events").as_array().size(), 1u);
  EXPECT_EQ(Call("GET", "/api/events?type=nonsense", root).status, 400);
  EXPECT_EQ(Call("GET", "/api/events?after=-1", root).status, 400);
}

TEST_F(AdminRoutesTest, AStreamBeginsAfterTheLastEventSeen) {
  const auto session = Create();
  net::Request request = Ask("GET", "/api/events", root);
  request.headers.Set("Accept", "text/event-stream");
  request.headers.Set("Last-Event-ID", "1");
  FakeExchange stream(loop, request, "");
  async::TaskSet running(loop);
  running.Spawn(dispatcher->Handle(&stream));
  ASSERT_TRUE(Eventually([&] {
    return stream.answer && stream.answer->body.find("session.running") != std::string::npos;
  }));
  EXPECT_EQ(stream.answer->body.find("session.created"), std::string::npos);
  EXPECT_NE(stream.answer->body.find("id: 2"), std::string::npos);
  EXPECT_FALSE(stream.answer->headers.Get("X-Request-Id").empty());
  stream.closed().Set();
  EXPECT_TRUE(Eventually([&] { return running.size() == 0; }));
}

TEST_F(AdminRoutesTest, TheAuditLogTellsWhoDidWhatAndIsSound) {
  const std::string viewer =
      MakeKey({.name = "eve", .tenant = "acme", .role = auth::Role::kViewer});
  EXPECT_EQ(Call("POST", "/api/sessions", viewer, "{}").status, 403);
  EXPECT_EQ(Call("POST", "/api/keys", root, kDeveloper).status, 201);
  const json::Value denied = JsonOf(Call("GET", "/api/audit?decision=deny&actor=eve", root));
  ASSERT_EQ(denied.at("records").as_array().size(), 1u);
  EXPECT_EQ(Text(denied.at("records").at(0), "verb"), "create");
  const json::Value page = JsonOf(Call("GET", "/api/audit?limit=1", root));
  const std::string cursor = Text(page, "next_cursor");
  EXPECT_EQ(
      JsonOf(Call("GET", "/api/audit?cursor=" + cursor, root)).at("records").as_array().size(), 1u);
  EXPECT_TRUE(JsonOf(Call("GET", "/api/audit/verify", root)).at("sound").as_bool());
  EXPECT_EQ(Call("GET", "/api/audit", viewer).status, 403);
  EXPECT_EQ(Call("GET", "/api/audit?from=yesterday", root).status, 400);
  EXPECT_EQ(Call("GET", "/api/audit?form=2024-01-01", root).status, 400);
  ASSERT_TRUE(Run(store->Write(store::Durability::kSoon, [](store::Database& db) {
    return db.Run("UPDATE audit SET actor = 'somebody else' WHERE seq = 1");
  })));
  const json::Value found = JsonOf(Call("GET", "/api/audit/verify", root));
  EXPECT_FALSE(found.at("sound").as_bool());
  EXPECT_EQ(found.at("finding").at("seq").to_number<int64_t>(), 1);
}

TEST_F(AdminRoutesTest, TheExportIsTheWholeLogALineEach) {
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Call("POST", "/api/keys", root, kDeveloper).status, 201);
  const net::Response all = Call("GET", "/api/audit/export", root);
  EXPECT_EQ(all.headers.Get("Content-Type"), "application/x-ndjson");
  EXPECT_EQ(std::ranges::count(all.body, '\n'), 4) << "three keys, and the export itself";
  const net::Response rest = Call("GET", "/api/audit/export?after=3", root);
  EXPECT_EQ(std::ranges::count(rest.body, '\n'), 2);
  EXPECT_EQ(json::Parse(rest.body.substr(0, rest.body.find('\n')))->at("seq").as_int64(), 4);
}

TEST_F(AdminRoutesTest, UsageIsCountedByKeyAndSeenByItsTenant) {
  const std::string dev = MakeKey({.name = "d", .tenant = "acme", .role = auth::Role::kDeveloper});
  const std::string other =
      MakeKey({.name = "o", .tenant = "other", .role = auth::Role::kDeveloper});
  const net::Response made = Call("POST", "/api/sessions", dev, "{}");
  ASSERT_EQ(made.status, 201) << made.body;
  const std::string id = Text(JsonOf(made), "session_id");
  (void)Run(async::SleepFor(&loop, std::chrono::milliseconds(2)));  // so that it has lived
  EXPECT_EQ(Call("DELETE", "/api/sessions/" + id, dev).status, 204);
  ASSERT_TRUE(Eventually([&] {
    const json::Value usage = JsonOf(Call("GET", "/api/usage?key=" + IdOf(dev), root));
    return usage.at("total").at("sandbox_seconds").to_number<double>() > 0;
  }));
  const json::Value usage = JsonOf(Call("GET", "/api/usage?key=" + IdOf(dev), dev));
  EXPECT_EQ(usage.at("total").at("creates").to_number<int64_t>(), 1);
  EXPECT_GE(usage.at("total").at("requests").to_number<int64_t>(), 2);
  EXPECT_EQ(Text(usage.at("usage").at(0), "tenant"), "acme");
  for (const json::Value& row :
       JsonOf(Call("GET", "/api/usage?tenant=acme", other)).at("usage").as_array())
    EXPECT_EQ(Text(row, "tenant"), "other");
}

TEST_F(AdminRoutesTest, ARequestIsASpanOfItsCallersTraceAndSoIsACreate) {
  net::Request request = Ask("POST", "/api/sessions", root);
  request.headers.Set("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
  EXPECT_EQ(Send(std::move(request), "{}").status, 201);
  const auto spans = tracer.Take(10);
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].name, "create session");
  EXPECT_EQ(spans[1].name, "POST /api/sessions");
  EXPECT_EQ(telemetry::Hex(spans[1].context.trace), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(telemetry::Hex(spans[1].parent), "b7ad6b7169203331");
  EXPECT_EQ(spans[0].parent, spans[1].context.span);
  for (const auto& span : spans)
    for (const auto& [name, value] : span.attributes)
      if (const auto* text = std::get_if<std::string>(&value))
        EXPECT_EQ(text->find(root), std::string::npos) << name;
}

TEST_F(AdminRoutesTest, TheDocumentHasEverySchemaOnce) {
  const auto document = OpenApiDocument(AllRoutes(), AllSchemas(), "1");
  EXPECT_TRUE(document) << document.error().message();
}

TEST_F(AdminRoutesTest, TheFirstKeyIsMadeOnce) {
  EXPECT_FALSE(Run(admin->MakeFirstKey())->has_value()) << "there is one already";
}

}  // namespace
}  // namespace caisson::api
