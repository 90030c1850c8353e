// Rows that time one thing after another.
#include "http_rows.h"

#include <unistd.h>

#include <charconv>
#include <string>

#include "base/text.h"

namespace caisson::bench {
namespace {

using namespace std::chrono_literals;

constexpr int kWarmLives = 20;  // thrown away: they fill the pools and the page cache

int RunsOf(const HttpOptions& options) {
  return options.runs > 0 ? options.runs : options.length == Length::kQuick ? 50 : 300;
}

struct Life {
  double create, exec, destroy;
  double total() const { return create + exec + destroy; }
};

Task<Result<Life>> LiveOnce(Remote* remote) {
  CAISSON_CO_TRY(CheckStop());
  const double begin = NowUs();
  CAISSON_CO_ASSIGN(const auto session, co_await remote->Create());
  const double created = NowUs();
  CAISSON_CO_TRY(co_await remote->RunTrue(session.id));
  const double ran = NowUs();
  CAISSON_CO_TRY(co_await remote->Destroy(session.id));
  co_return Life{created - begin, ran - created, NowUs() - ran};
}

Task<Result<Lines>> MeasureLives(Remote* remote, HttpOptions options, std::string_view name,
                                 double (*part)(const Life&)) {
  Samples samples, creates, execs, destroys;
  for (int i = -kWarmLives; i < RunsOf(options); ++i) {
    CAISSON_CO_ASSIGN(const Life life, co_await LiveOnce(remote));
    if (i < 0) continue;
    samples.push_back(part(life));
    creates.push_back(life.create);
    execs.push_back(life.exec);
    destroys.push_back(life.destroy);
  }
  auto line = WithSamples(TimesLine(name, samples), samples);
  line["create_us"] = Tenth(Percentile(creates, 0.5));
  line["exec_us"] = Tenth(Percentile(execs, 0.5));
  line["destroy_us"] = Tenth(Percentile(destroys, 0.5));
  co_return Lines{std::move(line)};
}

// Waits until a sandbox is ready to be claimed; the next create must find it.
Task<Status> AwaitWarm(Remote* remote) {
  constexpr int kSteps = 1000;
  for (int i = 0; i < kSteps; ++i) {
    CAISSON_CO_TRY(CheckStop());
    CAISSON_CO_ASSIGN(const double ready, co_await remote->Metric("caisson_warm_ready"));
    if (ready >= 2) co_return Status();
    co_await remote->loop().Sleep(10ms);
  }
  co_return Error(ErrorCode::kDeadlineExceeded, "no sandbox is made ready within 10 seconds")
      .WithRemedy("start the server with --warm 8");
}

// Errors unless every one of `claims` found a sandbox ready.
Status CheckHits(double before, double after, int claims) {
  if (after - before >= claims) return {};
  return Error(ErrorCode::kInternal, "of " + std::to_string(claims) + " creates only " +
                                         std::to_string(static_cast<int>(after - before)) +
                                         " found a sandbox ready");
}

// From POST /api/sessions to the first byte of a command's output.
Task<Result<double>> ClaimAndPrint(Remote* remote) {
  const double begin = NowUs();
  CAISSON_CO_ASSIGN(const auto session, co_await remote->Create());
  double seen = 0;
  {
    CAISSON_CO_ASSIGN(auto events,
                      co_await remote->Stream(session.id, ExecBody({"/bin/echo", "ready"})));
    for (;;) {
      CAISSON_CO_ASSIGN(const auto event, co_await events.Next());
      if (!event) break;
      if (seen == 0 && event->contains(R"("stdout")")) seen = NowUs();
    }
  }
  CAISSON_CO_TRY(co_await remote->Destroy(session.id));
  if (seen == 0) co_return Error(ErrorCode::kInternal, "a command's output did not come");
  co_return seen - begin;
}

// The time between what a command printed of its own clock and now; one for each line.
Result<Samples> AgesOf(std::string_view event) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const double now_us =
      static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
  CAISSON_ASSIGN(const auto value, json::Parse(event));
  Samples ages;
  const auto* data = value.is_object() ? value.as_object().if_contains("data") : nullptr;
  if (data == nullptr || !data->is_string()) return ages;
  for (std::string_view rest = data->as_string(); !rest.empty();) {
    double seconds = 0;
    const auto read = std::from_chars(rest.data(), rest.data() + rest.size(), seconds);
    if (read.ec != std::errc()) return Error(ErrorCode::kInternal, "the command printed no clock");
    ages.push_back(now_us - seconds * 1e6);
    const size_t end = rest.find('\n');
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
  }
  return ages;
}

}  // namespace

std::string RoomyBody(std::string_view more_limits) {
  return Concat({R"({"limits": {"cpus": )", std::to_string(sysconf(_SC_NPROCESSORS_ONLN)),
                 more_limits, "}}"});
}

Task<Result<Lines>> MeasureHttpCycle(Remote* remote, HttpOptions options) {
  return MeasureLives(remote, options, "http_cycle", [](const Life& l) { return l.total(); });
}
Task<Result<Lines>> MeasureHttpDestroy(Remote* remote, HttpOptions options) {
  return MeasureLives(remote, options, "http_destroy", [](const Life& l) { return l.destroy; });
}

Task<Result<Lines>> MeasureHttpClaim(Remote* remote, HttpOptions options) {
  Samples server, client;
  CAISSON_CO_ASSIGN(const double hits, co_await remote->Metric("caisson_warm_hits_total"));
  for (int i = RunsOf(options); i > 0; --i) {
    CAISSON_CO_TRY(co_await AwaitWarm(remote));
    const double begin = NowUs();
    CAISSON_CO_ASSIGN(const auto session, co_await remote->Create());
    client.push_back(NowUs() - begin);
    server.push_back(session.server_us);
    CAISSON_CO_TRY(co_await remote->Destroy(session.id));
  }
  CAISSON_CO_ASSIGN(const double after, co_await remote->Metric("caisson_warm_hits_total"));
  CAISSON_CO_TRY(CheckHits(hits, after, RunsOf(options)));
  auto line = WithSamples(TimesLine("http_claim", server), server);
  line["client_us"] = Tenth(Percentile(client, 0.5));
  co_return Lines{std::move(line)};
}

Task<Result<Lines>> MeasureHttpClaimOutput(Remote* remote, HttpOptions options) {
  Samples samples;
  CAISSON_CO_ASSIGN(const double hits, co_await remote->Metric("caisson_warm_hits_total"));
  for (int i = RunsOf(options); i > 0; --i) {
    CAISSON_CO_TRY(co_await AwaitWarm(remote));
    CAISSON_CO_ASSIGN(const double took, co_await ClaimAndPrint(remote));
    samples.push_back(took);
  }
  CAISSON_CO_ASSIGN(const double after, co_await remote->Metric("caisson_warm_hits_total"));
  CAISSON_CO_TRY(CheckHits(hits, after, RunsOf(options)));
  co_return Lines{WithSamples(TimesLine("http_claim_output", samples), samples)};
}

Task<Result<Lines>> MeasureHttpExec(Remote* remote, HttpOptions options) {
  CAISSON_CO_ASSIGN(const auto session, co_await remote->Create(RoomyBody()));
  Samples samples;
  for (int i = -kWarmLives; i < RunsOf(options); ++i) {
    CAISSON_CO_TRY(CheckStop());
    const double begin = NowUs();
    CAISSON_CO_TRY(co_await remote->RunTrue(session.id));
    if (i >= 0) samples.push_back(NowUs() - begin);
  }
  CAISSON_CO_TRY(co_await remote->Destroy(session.id));
  co_return Lines{WithSamples(TimesLine("http_exec", samples), samples)};
}

Task<Result<Lines>> MeasureHttpFirstByte(Remote* remote, HttpOptions options) {
  CAISSON_CO_ASSIGN(const auto session, co_await remote->Create(RoomyBody()));
  const std::string script = Concat({"for ((i = 0; i < ", std::to_string(RunsOf(options)),
                                     "; ++i)); do echo $EPOCHREALTIME; sleep 0.01; done"});
  Samples samples;
  {
    CAISSON_CO_ASSIGN(auto events,
                      co_await remote->Stream(session.id, ExecBody({"/bin/bash", "-c", script})));
    for (;;) {
      CAISSON_CO_ASSIGN(const auto event, co_await events.Next());
      if (!event) break;
      CAISSON_CO_ASSIGN(const Samples ages, AgesOf(*event));
      samples.insert(samples.end(), ages.begin(), ages.end());
    }
  }
  CAISSON_CO_TRY(co_await remote->Destroy(session.id));
  if (samples.size() != static_cast<size_t>(RunsOf(options)))
    co_return Error(ErrorCode::kInternal,
                    "only " + std::to_string(samples.size()) + " lines of output came");
  co_return Lines{WithSamples(TimesLine("http_first_byte", samples), samples)};
}

std::span<const HttpRow> HttpRows() {
  static constexpr HttpRow kRows[] = {
      {"http_cycle", MeasureHttpCycle},         {"http_destroy", MeasureHttpDestroy},
      {"http_claim", MeasureHttpClaim},         {"http_claim_output", MeasureHttpClaimOutput},
      {"http_exec", MeasureHttpExec},           {"http_first_byte", MeasureHttpFirstByte},
      {"http_sustained", MeasureHttpSustained}, {"http_burst100", MeasureHttpBurst},
      {"http_idle1000", MeasureHttpIdle},       {"http_server_rss", MeasureHttpServerRss},
      {"http_storm", MeasureHttpStorm},         {"http_stream_rate", MeasureHttpStreamRate},
      {"http_upload", MeasureHttpUpload},       {"http_download", MeasureHttpDownload},
  };
  return kRows;
}

}  // namespace caisson::bench
