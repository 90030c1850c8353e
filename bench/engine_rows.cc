#include "engine_rows.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <string>

#include "engine_lives.h"
#include "engine_memory.h"

namespace caisson::bench {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr int kWarmLives = 20;  // thrown away: they fill the pools and the page cache
constexpr int kWorkers = 8;     // lives at once in the rows that keep all CPUs busy
constexpr size_t kBurst = 100;
constexpr size_t kIdle = 1000;
constexpr auto kSettle = 1500ms;  // for work that the engine does when nobody waits

template <typename Part>
Samples Take(const std::vector<Life>& lives, Part part) {
  Samples samples;
  for (const Life& life : lives) samples.push_back(part(life));
  return samples;
}

Task<Status> WarmUp(sandbox::Provider* provider) {
  CAISSON_CO_TRY(co_await LiveMany(provider, kWarmLives));
  co_await provider->loop().Sleep(200ms);
  co_return Status();
}

// --- single lives --------------------------------------------------------------------------------

int RunsOf(const RowOptions& options) {
  return options.runs > 0 ? options.runs : options.length == Length::kQuick ? 50 : 300;
}

template <typename Part>
Task<Result<Lines>> MeasureLives(sandbox::Provider* provider, RowOptions options,
                                 std::string_view name, Part part) {
  CAISSON_CO_TRY(co_await WarmUp(provider));
  CAISSON_CO_ASSIGN(const auto lives, co_await LiveMany(provider, RunsOf(options)));
  const Samples samples = Take(lives, part);
  json::object line = WithSamples(TimesLine(name, samples), samples);
  line["create_us"] = Tenth(Percentile(Take(lives, [](const Life& l) { return l.create; }), 0.5));
  line["exec_us"] = Tenth(Percentile(Take(lives, [](const Life& l) { return l.exec; }), 0.5));
  line["destroy_us"] = Tenth(Percentile(Take(lives, [](const Life& l) { return l.destroy; }), 0.5));
  co_return Lines{std::move(line)};
}

Task<Result<Lines>> MeasureCycle(sandbox::Provider* provider, RowOptions options) {
  return MeasureLives(provider, options, "cycle", [](const Life& life) { return life.total(); });
}
Task<Result<Lines>> MeasureCreate(sandbox::Provider* provider, RowOptions options) {
  return MeasureLives(provider, options, "create", [](const Life& life) { return life.create; });
}
Task<Result<Lines>> MeasureDestroy(sandbox::Provider* provider, RowOptions options) {
  return MeasureLives(provider, options, "destroy", [](const Life& life) { return life.destroy; });
}

// Commands in one sandbox that lives on. It may use all CPUs: the default share of one would be
// used up by so many commands in a row, and the kernel's throttling would be what is measured.
Task<Result<Lines>> MeasureExec(sandbox::Provider* provider, RowOptions options) {
  CAISSON_CO_TRY(co_await WarmUp(provider));
  sandbox::SandboxSpec spec;
  spec.limits.cpu_millis = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN)) * 1000;
  CAISSON_CO_ASSIGN(auto box, co_await provider->Create(std::move(spec)));
  for (int i = 0; i < kWarmLives; ++i) CAISSON_CO_TRY(co_await RunTrue(box.get()));
  Samples samples;
  for (int i = RunsOf(options); i > 0; --i) {
    CAISSON_CO_TRY(CheckStop());
    const double begin = NowUs();
    CAISSON_CO_TRY(co_await RunTrue(box.get()));
    samples.push_back(NowUs() - begin);
  }
  CAISSON_CO_TRY(co_await box->Destroy());
  co_return Lines{WithSamples(TimesLine("exec", samples), samples)};
}

// --- many at once --------------------------------------------------------------------------------

Task<Result<Lines>> MeasureSustained(sandbox::Provider* provider, RowOptions options) {
  CAISSON_CO_TRY(co_await LiveTogether(provider, kWorkers, 10 * kWarmLives, std::nullopt));
  const auto time = options.length == Length::kQuick ? 2000ms : 6000ms;
  CAISSON_CO_ASSIGN(const Crowd crowd, co_await LiveTogether(provider, kWorkers, INT_MAX, time));
  json::object line =
      TimesLine("sustained", Take(crowd.lives, [](const Life& l) { return l.total(); }));
  line["per_s"] = Tenth(static_cast<double>(crowd.lives.size()) * 1e6 / crowd.took_us);
  line["workers"] = kWorkers;
  co_return Lines{std::move(line)};
}

struct Burst {
  Samples created_us;
  size_t failures = 0;
  std::string first_failure;
  std::vector<SandboxPtr> held;
};

// A create that fails is counted, not fatal.
Task<Status> CreateInto(sandbox::Provider* provider, Burst* burst) {
  const double begin = NowUs();
  auto made = co_await provider->Create({});
  if (made) {
    burst->created_us.push_back(NowUs() - begin);
    burst->held.push_back(*std::move(made));
  } else if (burst->failures++ == 0) {
    burst->first_failure = made.error().message();
  }
  co_return Status();
}

Task<Result<Lines>> MeasureBurst(sandbox::Provider* provider, RowOptions options) {
  const int rounds = options.length == Length::kQuick ? 1 : 5;
  CAISSON_CO_TRY(co_await WarmUp(provider));
  Samples each, totals, serials;
  size_t failures = 0;
  std::string first_failure;
  for (int round = 0; round < rounds; ++round) {
    Burst serial;
    for (size_t i = 0; i < kBurst; ++i) {
      CAISSON_CO_TRY(CheckStop());
      CAISSON_CO_TRY(co_await CreateInto(provider, &serial));
    }
    if (serial.failures > 0) co_return Error(ErrorCode::kInternal, serial.first_failure);
    serials.push_back(Percentile(serial.created_us, 0.5) * static_cast<double>(kBurst));
    CAISSON_CO_TRY(co_await HoldFewer(&serial.held, kBurst));
    co_await provider->loop().Sleep(kSettle);

    Burst burst;
    Crew crew(provider->loop());
    const double begin = NowUs();
    for (size_t i = 0; i < kBurst; ++i) crew.Add(CreateInto(provider, &burst));
    CAISSON_CO_TRY(co_await crew.Wait());
    totals.push_back(NowUs() - begin);
    each.insert(each.end(), burst.created_us.begin(), burst.created_us.end());
    failures += burst.failures;
    if (first_failure.empty()) first_failure = burst.first_failure;
    CAISSON_CO_TRY(co_await HoldFewer(&burst.held, kBurst));
    co_await provider->loop().Sleep(kSettle);
  }
  if (each.empty()) co_return Error(ErrorCode::kInternal, "every create failed: " + first_failure);
  json::object line = TimesLine("burst100", each);
  line["failures"] = failures;
  line["total_us"] = Tenth(Percentile(totals, 0.5));
  line["serial_us"] = Tenth(Percentile(serials, 0.5));
  if (failures > 0) line["first_failure"] = first_failure;
  co_return Lines{std::move(line)};
}

// --- many alive ----------------------------------------------------------------------------------

Task<Result<Lines>> MeasureIdle(sandbox::Provider* provider, RowOptions) {
  CAISSON_CO_TRY(co_await WarmUp(provider));
  co_await provider->loop().Sleep(kSettle);
  CAISSON_CO_ASSIGN(const Snapshot before, TakeSnapshot(getpid()));
  std::vector<SandboxPtr> held;
  CAISSON_CO_TRY(co_await HoldMore(provider, &held, kIdle));
  co_await provider->loop().Sleep(kSettle);
  CAISSON_CO_ASSIGN(const Snapshot after, TakeSnapshot(getpid()));
  if (after.init_private.size() < kIdle)
    co_return Error(ErrorCode::kInternal, "only " + std::to_string(after.init_private.size()) +
                                              " inits of " + std::to_string(kIdle) + " are there");
  json::object line = MemoryLine("idle1000", before, after, kIdle);
  size_t alive = 0;
  for (const auto& box : held) {
    CAISSON_CO_TRY(CheckStop());
    if (co_await RunTrue(box.get())) ++alive;
  }
  line["alive"] = alive;
  line["n"] = kIdle;
  CAISSON_CO_TRY(co_await HoldFewer(&held, kIdle));
  co_return Lines{std::move(line)};
}

// Up and down again, so that a machine that gets slower with time does not look like a slope.
Task<Result<Lines>> MeasureCurve(sandbox::Provider* provider, RowOptions options) {
  constexpr size_t kPoints[] = {1, 10, 100, 300, 1000};
  const int runs = options.length == Length::kQuick ? 25 : 100;
  CAISSON_CO_TRY(co_await WarmUp(provider));
  std::vector<SandboxPtr> held;
  Samples samples[std::size(kPoints)];
  for (size_t step = 0; step < 2 * std::size(kPoints); ++step) {
    const size_t point = step < std::size(kPoints) ? step : 2 * std::size(kPoints) - 1 - step;
    const size_t live = kPoints[point];
    if (held.size() < live) CAISSON_CO_TRY(co_await HoldMore(provider, &held, live - held.size()));
    if (held.size() > live) CAISSON_CO_TRY(co_await HoldFewer(&held, held.size() - live));
    co_await provider->loop().Sleep(kSettle);
    CAISSON_CO_ASSIGN(const auto lives, co_await LiveMany(provider, runs));
    for (const Life& life : lives) samples[point].push_back(life.total());
  }
  CAISSON_CO_TRY(co_await HoldFewer(&held, held.size()));
  Lines lines;
  for (size_t point = 0; point < std::size(kPoints); ++point) {
    lines.push_back(TimesLine("curve", samples[point]));
    lines.back()["live"] = kPoints[point];
  }
  co_return lines;
}

// --- many lives ----------------------------------------------------------------------------------

struct Residue {
  int64_t memory_cgroups, slab;
};
Result<Residue> ReadResidue() {
  CAISSON_ASSIGN(const int64_t groups, CountMemoryCgroups());
  CAISSON_ASSIGN(const auto memory, ReadHostMemory());
  return Residue{groups, memory.unreclaimable};
}

// What is left behind when the kernel has had ten seconds to free what it frees late.
Task<Result<Lines>> MeasureManyLives(sandbox::Provider* provider, RowOptions options) {
  const int count = options.length == Length::kQuick ? 1000 : 10000;
  CAISSON_CO_TRY(co_await LiveTogether(provider, kWorkers, 20 * kWarmLives, std::nullopt));
  co_await provider->loop().Sleep(2 * kSettle);
  CAISSON_CO_ASSIGN(const Residue before, ReadResidue());
  CAISSON_CO_ASSIGN(const Crowd crowd,
                    co_await LiveTogether(provider, kWorkers, count, std::nullopt));
  CAISSON_CO_ASSIGN(Residue left, ReadResidue());
  for (int i = 0;
       i < 20 && (left.memory_cgroups > before.memory_cgroups || left.slab > before.slab); ++i) {
    CAISSON_CO_TRY(CheckStop());
    co_await provider->loop().Sleep(500ms);
    CAISSON_CO_ASSIGN(const Residue now, ReadResidue());
    left = {std::min(left.memory_cgroups, now.memory_cgroups), std::min(left.slab, now.slab)};
  }
  json::object line =
      TimesLine("lives10000", Take(crowd.lives, [](const Life& l) { return l.total(); }));
  line["memcg_growth"] = left.memory_cgroups - before.memory_cgroups;
  line["slab_growth_bytes"] = left.slab - before.slab;
  line["per_s"] = Tenth(static_cast<double>(count) * 1e6 / crowd.took_us);
  co_return Lines{std::move(line)};
}

constexpr std::string_view kAlwaysNetwork = "a sandbox always has its own network namespace";
constexpr Row kRows[] = {
    {"cycle", MeasureCycle, {}},
    {"cycle_nonet", nullptr, kAlwaysNetwork},
    {"create", MeasureCreate, {}},
    {"exec", MeasureExec, {}},
    {"destroy", MeasureDestroy, {}},
    {"sustained", MeasureSustained, {}},
    {"sustained_nonet", nullptr, kAlwaysNetwork},
    {"burst100", MeasureBurst, {}},
    {"idle1000", MeasureIdle, {}},
    {"curve", MeasureCurve, {}},
    {"lives10000", MeasureManyLives, {}},
};

}  // namespace

std::span<const Row> Rows() { return kRows; }

}  // namespace caisson::bench
