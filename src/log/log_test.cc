#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <type_traits>

#include "json/json.h"
#include "log/fake_sink.h"
#include "log/logger.h"

namespace caisson::log {
namespace {

json::Object OnlyLine(const FakeSink& sink) {
  EXPECT_EQ(sink.lines().size(), 1u);
  if (sink.lines().empty()) return {};
  const auto value = json::Parse(sink.lines().front());
  EXPECT_TRUE(value) << sink.lines().front();
  return value ? value->as_object() : json::Object();
}

TEST(Log, ALineIsAnObject) {
  FakeSink sink;
  const Logger log(sink, Level::kInfo);
  log.Info("created \"it\"", {{"session_id", "s1"},
                              {"count", 3},
                              {"large", UINT64_MAX},
                              {"ratio", 0.5},
                              {"good", true},
                              {"seconds", std::chrono::milliseconds(1500)},
                              {"bytes", std::string("a\xff\n")}});
  const auto line = OnlyLine(sink);
  EXPECT_EQ(line.at("message").as_string(), "created \"it\"");
  EXPECT_EQ(line.at("level").as_string(), "info");
  EXPECT_EQ(line.at("session_id").as_string(), "s1");
  EXPECT_EQ(line.at("count").as_int64(), 3);
  EXPECT_EQ(line.at("large").as_uint64(), UINT64_MAX);
  EXPECT_EQ(line.at("ratio").as_double(), 0.5);
  EXPECT_TRUE(line.at("good").as_bool());
  EXPECT_EQ(line.at("seconds").as_double(), 1.5);
  EXPECT_EQ(line.at("bytes").as_string(), "a\xef\xbf\xbd\n");
  const std::string_view time = line.at("time").as_string();
  ASSERT_EQ(time.size(), std::string_view("2026-01-31T12:00:00.123Z").size());
  EXPECT_EQ(time[10], 'T');
  EXPECT_EQ(time[23], 'Z');
}

TEST(Log, LevelsBelowAreSilent) {
  FakeSink sink;
  const Logger log(sink, Level::kWarn);
  log.Debug("no");
  log.Info("no");
  log.Write(Level::kInfo, "no");
  EXPECT_TRUE(sink.lines().empty());
  log.Warn("yes");
  log.Error("yes");
  EXPECT_EQ(sink.lines().size(), 2u);
}

TEST(Log, LevelsByName) {
  EXPECT_EQ(*ParseLevel("debug"), Level::kDebug);
  EXPECT_EQ(*ParseLevel("error"), Level::kError);
  const auto wrong = ParseLevel("wran");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().remedy(), "did you mean warn?");
}

TEST(Log, BoundFieldsAreInEveryLine) {
  FakeSink sink;
  const Logger log(sink, Level::kInfo);
  const Logger request = log.With({{"request_id", "r1"}}).With({{"session_id", "s1"}});
  request.Info("x", {{"n", 1}});
  const auto line = OnlyLine(sink);
  EXPECT_EQ(line.at("request_id").as_string(), "r1");
  EXPECT_EQ(line.at("session_id").as_string(), "s1");
  EXPECT_EQ(line.at("n").as_int64(), 1);
}

TEST(Log, ErrorsComeWithCodeAndRemedy) {
  FakeSink sink;
  const Logger log(sink, Level::kInfo);
  log.Warn("webhook failed",
           caisson::Error(ErrorCode::kUnavailable, "nobody listens").WithRemedy("start it"),
           {{"url", "http://x"}});
  const auto line = OnlyLine(sink);
  EXPECT_EQ(line.at("error").as_string(), "nobody listens");
  EXPECT_EQ(line.at("code").as_string(), "unavailable");
  EXPECT_EQ(line.at("remedy").as_string(), "start it");
  EXPECT_EQ(line.at("url").as_string(), "http://x");
}

TEST(Log, LongTextsAreCut) {
  FakeSink sink;
  Logger(sink, Level::kInfo).Info("x", {{"long", std::string(100'000, 'a')}});
  EXPECT_EQ(OnlyLine(sink).at("long").as_string().size(), 4096u);
}

TEST(Log, SecretsHaveNoWayOut) {
  static_assert(!std::is_convertible_v<Secret, std::string>);
  static_assert(!std::is_convertible_v<Secret, std::string_view>);
  static_assert(!std::is_copy_constructible_v<Secret>);
  FakeSink sink;
  Secret secret("hunter2");
  Logger(sink, Level::kInfo).Info("login", {{"password", secret}});
  EXPECT_EQ(OnlyLine(sink).at("password").as_string(), "[secret]");
  EXPECT_EQ(sink.lines()[0].find("hunter2"), std::string::npos);
  const Secret moved = std::move(secret);
  EXPECT_EQ(moved.Reveal(), "hunter2");
  EXPECT_TRUE(secret.empty());  // NOLINT: what moving leaves behind is the point
}

TEST(Log, TextForPeopleIsHarmless) {
  FakeSink sink(Format::kText);
  Logger(sink, Level::kInfo)
      .Info("a\x1b[31mb\nc", {{"plain", "word"},
                              {"blank", "two words"},
                              {"bidi", "x\xe2\x80\xaey"},
                              {"c1", "x\xc2\x9by"},
                              {"empty", ""}});
  const std::string line = sink.lines().at(0);
  EXPECT_NE(line.find(" info  a\\u001b[31mb\\nc plain=word blank=\"two words\" bidi=x?y c1=x?y "
                      "empty=\"\""),
            std::string::npos)
      << line;
}

struct Pipe {
  Pipe() { EXPECT_EQ(pipe2(fds, O_CLOEXEC), 0); }
  ~Pipe() {
    CloseReader();
    close(fds[1]);
  }
  void CloseReader() {
    if (fds[0] >= 0) close(fds[0]);
    fds[0] = -1;
  }
  // Reads until `text` has come.
  std::string ReadUntil(std::string_view text) {
    std::string all;
    char buffer[4096];
    while (all.find(text) == std::string::npos) {
      const ssize_t got = read(fds[0], buffer, sizeof buffer);
      if (got <= 0) break;
      all.append(buffer, static_cast<size_t>(got));
    }
    return all;
  }
  int fds[2];
};

TEST(StreamSink, WritesLines) {
  Pipe pipe;
  {
    StreamSink sink(pipe.fds[1], Format::kJson);
    sink.Put("one");
    sink.Put("two");
  }  // flushes
  EXPECT_EQ(pipe.ReadUntil("two\n"), "one\ntwo\n");
}

TEST(StreamSink, AClosedReaderCostsTheLinesOnly) {
  Pipe pipe;
  pipe.CloseReader();
  StreamSink sink(pipe.fds[1], Format::kJson);
  sink.Put("lost");
  while (sink.dropped() == 0) usleep(1000);
  EXPECT_EQ(sink.dropped(), 1u);
}

TEST(StreamSink, AFullPipeDropsAndTellsLater) {
  Pipe pipe;
  ASSERT_GT(fcntl(pipe.fds[1], F_SETPIPE_SZ, 4096), 0);
  StreamSink sink(pipe.fds[1], Format::kJson, {.queue_bytes = 4096});
  while (sink.dropped() == 0) sink.Put(std::string(1000, 'x'));  // never waits for the reader
  const std::string all = pipe.ReadUntil("\"lines\":");
  EXPECT_NE(all.find("log lines were dropped"), std::string::npos);
}

TEST(StreamSink, EndsThoughNobodyReads) {
  Pipe pipe;
  ASSERT_GT(fcntl(pipe.fds[1], F_SETPIPE_SZ, 4096), 0);
  StreamSink sink(pipe.fds[1], Format::kJson,
                  {.queue_bytes = 100'000, .flush_limit = std::chrono::milliseconds(10)});
  for (int i = 0; i < 20; ++i) sink.Put(std::string(2000, 'x'));
}

}  // namespace
}  // namespace caisson::log
