// Metrics: numbers that /metrics shows and alert rules look at.
//
//   auto& created = registry.AddCounters("caisson_sessions_created_total", "…", {"provider"});
//   auto& seconds = registry.AddHistogram("caisson_create_seconds", "…", kLatencyBounds);
//   created.With({"native"}).Add();
//   seconds.Observe(took);
//
// A Registry is owned by main and outlives everything it gave out; what it gives out stays where it
// is. Every metric is declared once, at the start, with its label names: a name that Prometheus
// would not take, or one taken already, is a programming error and aborts. The number of series of
// a family is bounded: label values beyond that count as "other", so that no caller can grow memory
// by what it names things. Counting is a few atomic instructions, from any thread. Base units, as
// Prometheus has it: seconds, bytes, ratios.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace caisson::telemetry {

// One line of what is shown.
struct Sample {
  std::string name;
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;
};

class Counter {
 public:
  void Add(uint64_t amount = 1) { value_.fetch_add(amount, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_ = 0;
};

class Gauge {
 public:
  void Set(double value) { value_.store(value, std::memory_order_relaxed); }
  void Add(double amount) { value_.fetch_add(amount, std::memory_order_relaxed); }
  double value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<double> value_ = 0;
};

// 0.5 ms to a minute.
inline constexpr double kLatencyBounds[] = {0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
                                            0.2,    0.5,   1,     2,     5,    10,   30,   60};

class Histogram {
 public:
  explicit Histogram(std::span<const double> bounds);
  void Observe(double value);
  void Observe(std::chrono::nanoseconds time) {
    Observe(std::chrono::duration<double>(time).count());
  }
  // Observations up to each bound, and last of all.
  std::vector<uint64_t> Cumulative() const;
  double sum() const { return sum_.load(std::memory_order_relaxed); }
  std::span<const double> bounds() const { return bounds_; }

 private:
  std::span<const double> bounds_;
  std::vector<std::atomic<uint64_t>> buckets_;  // one more than bounds
  std::atomic<double> sum_ = 0;
};

using LabelNames = std::initializer_list<std::string_view>;
using LabelValues = std::initializer_list<std::string_view>;

// The metrics of one name, told apart by label values.
template <typename Metric>
class Family {
 public:
  static constexpr size_t kMaxSeries = 200;

  // The metric for these values, in the order of the names. Takes a lock: keep what it gives
  // where it is needed often.
  Metric& With(LabelValues values);

 private:
  friend class Registry;
  struct Series {
    std::vector<std::string> values;
    std::unique_ptr<Metric> metric;
  };
  template <typename Make>
  Family(std::vector<std::string> labels, Make make)
      : labels_(std::move(labels)), make_(std::move(make)) {}

  Metric& FindOrMake(std::vector<std::string> values);

  const std::vector<std::string> labels_;
  const std::function<std::unique_ptr<Metric>()> make_;
  mutable std::mutex mutex_;
  std::deque<Series> series_;
};

class Registry {
 public:
  Registry();
  ~Registry();
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  Counter& AddCounter(std::string_view name, std::string_view help);
  Family<Counter>& AddCounters(std::string_view name, std::string_view help, LabelNames labels);
  Gauge& AddGauge(std::string_view name, std::string_view help);
  Family<Gauge>& AddGauges(std::string_view name, std::string_view help, LabelNames labels);
  // A gauge or counter that is asked for its value whenever somebody looks, on their thread.
  void AddComputedGauge(std::string_view name, std::string_view help, std::function<double()> read);
  void AddComputedCounter(std::string_view name, std::string_view help,
                          std::function<double()> read);
  // `bounds` ascend, and are constants: they are not copied.
  Histogram& AddHistogram(std::string_view name, std::string_view help,
                          std::span<const double> bounds);
  Family<Histogram>& AddHistograms(std::string_view name, std::string_view help, LabelNames labels,
                                   std::span<const double> bounds);

  // Everything in the Prometheus text format 0.0.4, to be served as kContentType.
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";
  std::string Expose() const;

  // Every sample now. A histogram gives name_bucket, name_sum and name_count.
  std::vector<Sample> Collect() const;

  // The names that samples can have, whether there are any yet or not.
  std::vector<std::string> SampleNames() const;

 private:
  enum class Type { kCounter, kGauge, kHistogram };
  struct Entry;

  template <typename Metric>
  Family<Metric>& AddFamily(std::string_view name, std::string_view help, Type type,
                            LabelNames labels, std::function<std::unique_ptr<Metric>()> make);
  Entry& Declare(std::string_view name, std::string_view help, Type type, LabelNames labels);

  mutable std::mutex mutex_;
  std::deque<Entry> entries_;
};

}  // namespace caisson::telemetry
