// Rows of many sessions at once.
#include <string>

#include "engine_memory.h"
#include "http_held.h"
#include "http_rows.h"

namespace caisson::bench {
namespace {

using namespace std::chrono_literals;

constexpr int kWorkers = 8;
constexpr size_t kBurst = 100;
constexpr auto kSettle = 1500ms;  // for work that the server does when nobody waits

struct Cycles {
  Remote* remote;
  double deadline_us;
  Samples lives;
};

Task<Status> Cycle(Cycles* cycles) {
  while (NowUs() < cycles->deadline_us) {
    CAISSON_CO_TRY(CheckStop());
    const double begin = NowUs();
    CAISSON_CO_ASSIGN(const auto session, co_await cycles->remote->Create());
    CAISSON_CO_TRY(co_await cycles->remote->RunTrue(session.id));
    CAISSON_CO_TRY(co_await cycles->remote->Destroy(session.id));
    cycles->lives.push_back(NowUs() - begin);
  }
  co_return Status();
}

Task<Result<Samples>> CycleTogether(Remote* remote, std::chrono::milliseconds time) {
  Cycles cycles{remote, NowUs() + static_cast<double>(time.count()) * 1e3, {}};
  Crew crew(remote->loop());
  for (int i = 0; i < kWorkers; ++i) crew.Add(Cycle(&cycles));
  CAISSON_CO_TRY(co_await crew.Wait());
  co_return std::move(cycles.lives);
}

struct Burst {
  Samples created_us;
  size_t failures = 0;
  std::string first_failure;
  Ids held;
};

// A create that fails is counted, not fatal.
Task<Status> CreateInto(Remote* remote, Burst* burst) {
  const double begin = NowUs();
  auto made = co_await remote->Create();
  if (made) {
    burst->created_us.push_back(NowUs() - begin);
    burst->held.push_back(made->id);
  } else if (burst->failures++ == 0) {
    burst->first_failure = made.error().message();
  }
  co_return Status();
}

}  // namespace

Task<Result<Lines>> MeasureHttpSustained(Remote* remote, HttpOptions options) {
  CAISSON_CO_TRY(co_await CycleTogether(remote, 1000ms));
  const double begin = NowUs();
  CAISSON_CO_ASSIGN(const Samples lives,
                    co_await CycleTogether(remote, options.length == Length::kQuick ? 2s : 6s));
  auto line = TimesLine("http_sustained", lives);
  line["per_s"] = Tenth(static_cast<double>(lives.size()) * 1e6 / (NowUs() - begin));
  line["workers"] = kWorkers;
  co_return Lines{std::move(line)};
}

Task<Result<Lines>> MeasureHttpBurst(Remote* remote, HttpOptions options) {
  const int rounds = options.length == Length::kQuick ? 1 : 5;
  CAISSON_CO_TRY(co_await CycleTogether(remote, 500ms));
  Samples each, totals, serials;
  Burst last;
  size_t failures = 0;
  for (int round = 0; round < rounds; ++round) {
    Burst serial;
    for (size_t i = 0; i < kBurst; ++i) {
      CAISSON_CO_TRY(CheckStop());
      CAISSON_CO_TRY(co_await CreateInto(remote, &serial));
    }
    if (serial.failures > 0) co_return Error(ErrorCode::kInternal, serial.first_failure);
    serials.push_back(Percentile(serial.created_us, 0.5) * static_cast<double>(kBurst));
    CAISSON_CO_TRY(co_await EndAll(remote, &serial.held));
    co_await remote->loop().Sleep(kSettle);

    last = Burst();
    Crew crew(remote->loop());
    const double begin = NowUs();
    for (size_t i = 0; i < kBurst; ++i) crew.Add(CreateInto(remote, &last));
    CAISSON_CO_TRY(co_await crew.Wait());
    totals.push_back(NowUs() - begin);
    each.insert(each.end(), last.created_us.begin(), last.created_us.end());
    failures += last.failures;
    if (each.empty()) co_return Error(ErrorCode::kInternal, last.first_failure);
    CAISSON_CO_TRY(co_await EndAll(remote, &last.held));
    co_await remote->loop().Sleep(kSettle);
  }
  auto line = TimesLine("http_burst100", each);
  line["failures"] = failures;
  line["total_us"] = Tenth(Percentile(totals, 0.5));
  line["serial_us"] = Tenth(Percentile(serials, 0.5));
  if (!last.first_failure.empty()) line["first_failure"] = last.first_failure;
  co_return Lines{std::move(line)};
}

// The first tenth of the time is not counted: buffers and caches find their size in it.
Task<Result<Lines>> MeasureHttpStorm(Remote* remote, HttpOptions options) {
  CAISSON_CO_ASSIGN(const Samples first, co_await CycleTogether(remote, options.storm / 10 + 2s));
  co_await remote->loop().Sleep(kSettle);
  CAISSON_CO_ASSIGN(const auto before, ReadProcessMemory(remote->pid()));
  CAISSON_CO_ASSIGN(const Samples lives, co_await CycleTogether(remote, options.storm));
  co_await remote->loop().Sleep(kSettle);
  CAISSON_CO_ASSIGN(const auto after, ReadProcessMemory(remote->pid()));
  auto line = TimesLine("http_storm", lives);
  line["growth_bytes"] = after.resident - before.resident;
  line["rss_bytes"] = after.resident;
  line["seconds"] = options.storm.count();
  line["warm_up_lives"] = first.size();
  co_return Lines{std::move(line)};
}

}  // namespace caisson::bench
