#include "telemetry/metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "base/utf8.h"

namespace caisson::telemetry {
namespace {

[[noreturn]] void AbortOnMisuse(std::string_view name, const char* what) {
  std::fprintf(stderr, "metric %.*s %s\n", static_cast<int>(name.size()), name.data(), what);
  std::abort();
}

// [a-zA-Z_][a-zA-Z0-9_]*, which is all that base units and words need.
bool IsName(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto fine = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  return !name.empty() && letter(name[0]) && std::ranges::all_of(name, fine);
}

void AppendNumber(std::string& out, double number) {
  if (std::isnan(number)) {
    out += "NaN";
  } else if (std::isinf(number)) {
    out += number > 0 ? "+Inf" : "-Inf";
  } else {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    out.append(digits, end);
  }
}

std::string BoundText(double bound) {
  std::string text;
  AppendNumber(text, bound);
  return text;
}

void AppendEscaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
}

// Help texts escape only the backslash and the newline.
void AppendHelp(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
}

void AppendSample(std::string& out, const Sample& sample) {
  out += sample.name;
  for (size_t i = 0; i < sample.labels.size(); ++i) {
    out += i == 0 ? '{' : ',';
    out += sample.labels[i].first;
    out += "=\"";
    AppendEscaped(out, sample.labels[i].second);
    out += '"';
  }
  if (!sample.labels.empty()) out += '}';
  out += ' ';
  AppendNumber(out, sample.value);
  out += '\n';
}

std::vector<Sample> SamplesOf(const Counter& counter, Sample plain) {
  plain.value = static_cast<double>(counter.value());
  return {std::move(plain)};
}

std::vector<Sample> SamplesOf(const Gauge& gauge, Sample plain) {
  plain.value = gauge.value();
  return {std::move(plain)};
}

std::vector<Sample> SamplesOf(const Histogram& histogram, Sample plain) {
  const std::vector<uint64_t> counts = histogram.Cumulative();
  std::vector<Sample> samples;
  for (size_t i = 0; i < counts.size(); ++i) {
    Sample bucket = plain;
    bucket.name += "_bucket";
    bucket.labels.emplace_back(
        "le", i < histogram.bounds().size() ? BoundText(histogram.bounds()[i]) : "+Inf");
    bucket.value = static_cast<double>(counts[i]);
    samples.push_back(std::move(bucket));
  }
  samples.push_back({plain.name + "_sum", plain.labels, histogram.sum()});
  samples.push_back(
      {plain.name + "_count", std::move(plain.labels), static_cast<double>(counts.back())});
  return samples;
}

}  // namespace

Histogram::Histogram(std::span<const double> bounds)
    : bounds_(bounds), buckets_(bounds.size() + 1) {}

void Histogram::Observe(double value) {
  const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  buckets_[static_cast<size_t>(bucket)].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(value, std::memory_order_relaxed);
}

std::vector<uint64_t> Histogram::Cumulative() const {
  std::vector<uint64_t> counts;
  uint64_t total = 0;
  for (const auto& bucket : buckets_) {
    counts.push_back(total += bucket.load(std::memory_order_relaxed));
  }
  return counts;
}

template <typename Metric>
Metric& Family<Metric>::With(LabelValues values) {
  std::vector<std::string> owned;
  for (const auto value : values)
    owned.push_back(IsUtf8(value) ? std::string(value) : ToUtf8(value));
  if (owned.size() != labels_.size())
    AbortOnMisuse(labels_[0], "is given another number of labels");
  return FindOrMake(std::move(owned));
}

template <typename Metric>
Metric& Family<Metric>::FindOrMake(std::vector<std::string> values) {
  const std::lock_guard lock(mutex_);
  auto found = std::ranges::find(series_, values, &Series::values);
  if (found == series_.end() && series_.size() >= kMaxSeries) {
    values.assign(values.size(), "other");
    found = std::ranges::find(series_, values, &Series::values);
  }
  if (found != series_.end()) return *found->metric;
  return *series_.emplace_back(Series{std::move(values), make_()}).metric;
}

template class Family<Counter>;
template class Family<Gauge>;
template class Family<Histogram>;

struct Registry::Entry {
  std::string name;
  std::string help;
  Type type;
  std::vector<std::string> labels;
  std::shared_ptr<void> family;  // keeps what `collect` reads
  std::function<std::vector<Sample>()> collect;
};

Registry::Registry() = default;
Registry::~Registry() = default;

Registry::Entry& Registry::Declare(std::string_view name, std::string_view help, Type type,
                                   LabelNames labels) {
  if (!IsName(name)) AbortOnMisuse(name, "has a name that Prometheus does not take");
  if (std::ranges::any_of(labels, [](std::string_view l) { return !IsName(l) || l == "le"; })) {
    AbortOnMisuse(name, "has a label name that Prometheus does not take");
  }
  if ((type == Type::kCounter) != name.ends_with("_total")) {
    AbortOnMisuse(name, "must end in _total if it is a counter, and only then");
  }
  if (std::ranges::find(entries_, name, &Entry::name) != entries_.end()) {
    AbortOnMisuse(name, "is declared twice");
  }
  return entries_.emplace_back(Entry{.name = std::string(name),
                                     .help = std::string(help),
                                     .type = type,
                                     .labels = {labels.begin(), labels.end()}});
}

template <typename Metric>
Family<Metric>& Registry::AddFamily(std::string_view name, std::string_view help, Type type,
                                    LabelNames labels,
                                    std::function<std::unique_ptr<Metric>()> make) {
  const std::lock_guard lock(mutex_);
  Entry& entry = Declare(name, help, type, labels);
  std::shared_ptr<Family<Metric>> family(new Family<Metric>(entry.labels, std::move(make)));
  entry.family = family;
  entry.collect = [&entry, family = family.get()] {
    const std::lock_guard lock(family->mutex_);
    std::vector<Sample> all;
    for (const auto& [values, metric] : family->series_) {
      Sample plain{.name = entry.name};
      for (size_t i = 0; i < values.size(); ++i)
        plain.labels.emplace_back(entry.labels[i], values[i]);
      for (Sample& sample : SamplesOf(*metric, std::move(plain))) all.push_back(std::move(sample));
    }
    return all;
  };
  return *family;
}

Counter& Registry::AddCounter(std::string_view name, std::string_view help) {
  return AddCounters(name, help, {}).FindOrMake({});
}
Family<Counter>& Registry::AddCounters(std::string_view name, std::string_view help,
                                       LabelNames labels) {
  return AddFamily<Counter>(name, help, Type::kCounter, labels,
                            [] { return std::make_unique<Counter>(); });
}
Gauge& Registry::AddGauge(std::string_view name, std::string_view help) {
  return AddGauges(name, help, {}).FindOrMake({});
}
Family<Gauge>& Registry::AddGauges(std::string_view name, std::string_view help,
                                   LabelNames labels) {
  return AddFamily<Gauge>(name, help, Type::kGauge, labels,
                          [] { return std::make_unique<Gauge>(); });
}
Histogram& Registry::AddHistogram(std::string_view name, std::string_view help,
                                  std::span<const double> bounds) {
  return AddHistograms(name, help, {}, bounds).FindOrMake({});
}
Family<Histogram>& Registry::AddHistograms(std::string_view name, std::string_view help,
                                           LabelNames labels, std::span<const double> bounds) {
  if (!std::ranges::is_sorted(bounds, std::less_equal<>{})) {
    AbortOnMisuse(name, "has bounds that do not ascend");
  }
  return AddFamily<Histogram>(name, help, Type::kHistogram, labels,
                              [bounds] { return std::make_unique<Histogram>(bounds); });
}

void Registry::AddComputedGauge(std::string_view name, std::string_view help,
                                std::function<double()> read) {
  const std::lock_guard lock(mutex_);
  Entry& entry = Declare(name, help, Type::kGauge, {});
  entry.collect = [&entry, read = std::move(read)] {
    return std::vector<Sample>{{entry.name, {}, read()}};
  };
}
void Registry::AddComputedCounter(std::string_view name, std::string_view help,
                                  std::function<double()> read) {
  const std::lock_guard lock(mutex_);
  Entry& entry = Declare(name, help, Type::kCounter, {});
  entry.collect = [&entry, read = std::move(read)] {
    return std::vector<Sample>{{entry.name, {}, read()}};
  };
}

std::vector<Sample> Registry::Collect() const {
  const std::lock_guard lock(mutex_);
  std::vector<Sample> all;
  for (const Entry& entry : entries_) {
    for (Sample& sample : entry.collect()) all.push_back(std::move(sample));
  }
  return all;
}

std::vector<std::string> Registry::SampleNames() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const Entry& entry : entries_) {
    if (entry.type != Type::kHistogram) {
      names.push_back(entry.name);
      continue;
    }
    for (const char* suffix : {"_bucket", "_sum", "_count"}) names.push_back(entry.name + suffix);
  }
  return names;
}

std::string Registry::Expose() const {
  constexpr std::string_view kTypes[] = {"counter", "gauge", "histogram"};
  const std::lock_guard lock(mutex_);
  std::string out;
  for (const Entry& entry : entries_) {
    out += "# HELP " + entry.name + " ";
    AppendHelp(out, entry.help);
    out += "\n# TYPE " + entry.name + " ";
    out += kTypes[static_cast<size_t>(entry.type)];
    out += '\n';
    for (const Sample& sample : entry.collect()) AppendSample(out, sample);
  }
  return out;
}

}  // namespace caisson::telemetry
