#include "telemetry/trace.h"

#include <gtest/gtest.h>

#include <map>

#include "async/loop.h"
#include "json/json.h"
#include "log/fake_sink.h"
#include "telemetry/otlp.h"

namespace caisson::telemetry {
namespace {

constexpr std::string_view kHeader = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
constexpr Sampler kAll{1, Sampler::Parents::kIgnore};

TEST(Traceparent, RoundTrip) {
  const auto context = ParseTraceparent(kHeader);
  ASSERT_TRUE(context);
  EXPECT_EQ(Hex(context->trace), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(Hex(context->span), "b7ad6b7169203331");
  EXPECT_EQ(context->sampled, Sampled::kYes);
  EXPECT_EQ(MakeTraceparent(*context), kHeader);
}

TEST(Traceparent, LaterVersionsMayGoOn) {
  EXPECT_TRUE(
      ParseTraceparent("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00-what-else"));
  EXPECT_FALSE(
      ParseTraceparent("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00.what-else"));
}

TEST(Traceparent, MalformedOnesAreIgnored) {
  for (const char* text : {"", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
                           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
                           "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                           "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
                           "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                           "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                           "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
                           "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01"}) {
    EXPECT_FALSE(ParseTraceparent(text)) << text;
  }
}

TEST(Tracer, ChildrenShareTheTrace) {
  Tracer tracer(kAll);
  {
    Span parent = tracer.Start("parent", SpanKind::kServer, ParseTraceparent(kHeader));
    Span child = tracer.Start("child", SpanKind::kInternal, parent.context());
    child.Set("n", int64_t{1});
    child.Set("n", int64_t{2});
    child.Fail("broke");
  }
  const auto spans = tracer.Take(10);
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].name, "child");
  EXPECT_EQ(spans[0].parent, spans[1].context.span);
  EXPECT_EQ(spans[0].context.trace, spans[1].context.trace);
  EXPECT_EQ(Hex(spans[1].context.trace), kHeader.substr(3, 32));
  EXPECT_EQ(Hex(spans[1].parent), "b7ad6b7169203331");
  ASSERT_EQ(spans[0].attributes.size(), 1u);
  EXPECT_EQ(std::get<int64_t>(spans[0].attributes[0].second), 2);
  EXPECT_TRUE(spans[0].failed);
  EXPECT_TRUE(tracer.Take(10).empty());
}

TEST(Tracer, TheQueueIsBounded) {
  Tracer tracer(kAll, 2);
  for (int i = 0; i < 5; ++i) tracer.Start("x", SpanKind::kInternal).End();
  EXPECT_EQ(tracer.waiting(), 2u);
  EXPECT_EQ(tracer.dropped(), 3u);
}

TEST(Sampler, FollowsParentsOrRatio) {
  const auto kept = ParseTraceparent(kHeader);
  auto dropped = kept;
  dropped->sampled = Sampled::kNo;
  const auto follow = *Sampler::Parse("parentbased_always_off", "");
  EXPECT_EQ(follow.Decide(kept->trace, kept), Sampled::kYes);
  EXPECT_EQ(follow.Decide(kept->trace, dropped), Sampled::kNo);
  EXPECT_EQ(follow.Decide(kept->trace, {}), Sampled::kNo);
  EXPECT_EQ(Sampler::Parse("always_on", "")->Decide(kept->trace, dropped), Sampled::kYes);
  const auto quarter = *Sampler::Parse("traceidratio", "0.25");
  TraceId id = {};
  id[8] = 0x3f;
  EXPECT_EQ(quarter.Decide(id, {}), Sampled::kYes);
  id[8] = 0x40;
  EXPECT_EQ(quarter.Decide(id, {}), Sampled::kNo);
  EXPECT_FALSE(Sampler::Parse("traceidratio", "2"));
  EXPECT_FALSE(Sampler::Parse("traceidratio", "nan"));
  EXPECT_EQ(Sampler::Parse("always_onn", "").error().remedy(), "did you mean always_on?");
}

TEST(Sampler, UnsampledSpansStillHaveAContext) {
  Tracer tracer({0, Sampler::Parents::kIgnore});
  Span span = tracer.Start("x", SpanKind::kServer, ParseTraceparent(kHeader));
  EXPECT_EQ(Hex(span.context().trace), kHeader.substr(3, 32));
  EXPECT_TRUE(MakeTraceparent(span.context()).ends_with("-00"));
  span.End();
  EXPECT_EQ(tracer.waiting(), 0u);
}

TEST(Otlp, TheJsonOfASpan) {
  SpanData span;
  span.context = *ParseTraceparent(kHeader);
  span.parent = {1, 2, 3, 4, 5, 6, 7, 8};
  span.name = "create";
  span.kind = SpanKind::kServer;
  span.start = std::chrono::system_clock::time_point(std::chrono::nanoseconds(1500000000000000001));
  span.end = std::chrono::system_clock::time_point(std::chrono::nanoseconds(1500000000000000002));
  span.attributes = {{"s", std::string("x")}, {"i", int64_t{5}}, {"d", 0.5}, {"b", true}};
  span.failed = true;
  span.failure = "why";
  const std::vector<Attribute> resource = {{"service.name", std::string("caisson")}};
  EXPECT_EQ(
      EncodeSpans(resource, "1.2", {&span, 1}),
      R"({"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":)"
      R"("caisson"}}]},"scopeSpans":[{"scope":{"name":"caisson","version":"1.2"},"spans":[{"traceId":)"
      R"("0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","parentSpanId":)"
      R"("0102030405060708","name":"create","kind":2,"startTimeUnixNano":"1500000000000000001",)"
      R"("endTimeUnixNano":"1500000000000000002","attributes":[{"key":"s","value":{"stringValue":)"
      R"("x"}},{"key":"i","value":{"intValue":"5"}},{"key":"d","value":{"doubleValue":0.5}},{"key":)"
      R"("b","value":{"boolValue":true}}],"status":{"code":2,"message":"why"}}]}]}]})");
}

Result<OtlpSettings> Settings(std::map<std::string, std::string, std::less<>> variables) {
  return OtlpSettings::FromEnvironment([&](std::string_view name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(Otlp, SettingsFromTheStandardVariables) {
  const auto settings = Settings({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/"},
                                  {"OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x, a=b"},
                                  {"OTEL_SERVICE_NAME", "mine"},
                                  {"OTEL_RESOURCE_ATTRIBUTES", "host=a,service.name=other"},
                                  {"OTEL_TRACES_SAMPLER", "traceidratio"},
                                  {"OTEL_TRACES_SAMPLER_ARG", "0.5"}});
  ASSERT_TRUE(settings) << settings.error().message();
  EXPECT_EQ(settings->endpoint, "http://collector:4318/v1/traces");
  ASSERT_EQ(settings->headers.size(), 2u);
  EXPECT_EQ(settings->headers[0].second.Reveal(), "Bearer x");
  ASSERT_EQ(settings->resource.size(), 2u);
  EXPECT_EQ(std::get<std::string>(settings->resource[1].second), "mine");
  EXPECT_EQ(settings->sampler.ratio, 0.5);
}

TEST(Otlp, WithoutAnEndpointNothingIsSampled) {
  for (const auto& settings :
       {Settings({}),
        Settings({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1"}, {"OTEL_SDK_DISABLED", "true"}})}) {
    ASSERT_TRUE(settings);
    EXPECT_EQ(settings->endpoint, "");
    EXPECT_EQ(settings->sampler.Decide({}, ParseTraceparent(kHeader)), Sampled::kNo);
  }
  EXPECT_EQ(Settings({{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c:1/x"}})->endpoint,
            "http://c:1/x");
}

TEST(Otlp, WrongVariablesAreNamed) {
  const auto message = [](std::map<std::string, std::string, std::less<>> variables) {
    const auto settings = Settings(std::move(variables));
    return settings ? "accepted" : settings.error().message();
  };
  EXPECT_EQ(message({{"OTEL_EXPORTER_OTLP_ENDPOINT", "collector"}}),
            "environment variable OTEL_EXPORTER_OTLP_ENDPOINT: \"collector\" is no http or https "
            "URL");
  EXPECT_EQ(message({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"},
                     {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}}),
            "environment variable OTEL_EXPORTER_OTLP_PROTOCOL: \"grpc\" is not supported");
  EXPECT_EQ(message({{"OTEL_RESOURCE_ATTRIBUTES", "abc"}}),
            "environment variable OTEL_RESOURCE_ATTRIBUTES: a part of it is no KEY=VALUE");
  EXPECT_EQ(message({{"OTEL_TRACES_SAMPLER", "nope"}}),
            "environment variable OTEL_TRACES_SAMPLER: \"nope\" is no sampler");
}

// Fails as often as told, then takes what comes.
class FakeSpanSink final : public SpanSink {
 public:
  FakeSpanSink(int failures, ErrorCode code, async::Loop* loop, size_t wanted)
      : failures_(failures), code_(code), loop_(loop), wanted_(wanted) {}
  Task<Status> Send(std::string body) override {
    ++attempts;
    if (failures_-- > 0) {
      if (code_ == ErrorCode::kInvalidArgument) loop_->Stop();
      co_return Error(code_, "no");
    }
    bodies.push_back(std::move(body));
    if (bodies.size() == wanted_) loop_->Stop();
    co_return Status();
  }
  int attempts = 0;
  std::vector<std::string> bodies;

 private:
  int failures_;
  ErrorCode code_;
  async::Loop* loop_;
  size_t wanted_;
};

constexpr ExportOptions kQuick{.interval = std::chrono::milliseconds(1),
                               .batch = 2,
                               .attempts = 5,
                               .first_pause = std::chrono::milliseconds(1)};

TEST(Otlp, ExportsInBatchesAndTriesAgain) {
  async::Loop loop;
  Tracer tracer(kAll);
  for (int i = 0; i < 3; ++i) tracer.Start("x", SpanKind::kInternal).End();
  FakeSpanSink sink(2, ErrorCode::kUnavailable, &loop, 2);
  log::FakeSink lines;
  const log::Logger log(lines, log::Level::kInfo);
  Task<void> task = ExportSpans(&loop, &tracer, &sink, OtlpSettings(), "1", kQuick, &log);
  task.Start();
  loop.Run();
  EXPECT_EQ(sink.attempts, 4);
  ASSERT_EQ(sink.bodies.size(), 2u);
  EXPECT_TRUE(json::Parse(sink.bodies[0]));
  EXPECT_TRUE(lines.lines().empty());
}

TEST(Otlp, WhatIsRefusedForGoodIsDroppedAndSaid) {
  async::Loop loop;
  Tracer tracer(kAll);
  tracer.Start("x", SpanKind::kInternal).End();
  FakeSpanSink sink(1, ErrorCode::kInvalidArgument, &loop, 1);
  log::FakeSink lines;
  const log::Logger log(lines, log::Level::kInfo);
  Task<void> task = ExportSpans(&loop, &tracer, &sink, OtlpSettings(), "1", kQuick, &log);
  task.Start();
  loop.Run();
  EXPECT_EQ(sink.attempts, 1);
  EXPECT_EQ(lines.lines().size(), 1u);
  EXPECT_EQ(tracer.waiting(), 0u);
}

}  // namespace
}  // namespace caisson::telemetry
