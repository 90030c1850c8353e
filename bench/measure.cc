#include "measure.h"

#include <signal.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>

namespace caisson::bench {
namespace {

namespace json = boost::json;

volatile sig_atomic_t stop_requested = 0;

}  // namespace

double NowUs() {
  return std::chrono::duration<double, std::micro>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double Percentile(Samples samples, double share) {
  std::sort(samples.begin(), samples.end());
  return samples[static_cast<size_t>(share * static_cast<double>(samples.size() - 1) + 0.5)];
}

double Tenth(double value) { return std::round(value * 10) / 10; }

json::object Line(std::string_view name) { return {{"name", name}}; }

json::object TimesLine(std::string_view name, const Samples& samples) {
  json::object line = Line(name);
  line["p50_us"] = Tenth(Percentile(samples, 0.5));
  line["p99_us"] = Tenth(Percentile(samples, 0.99));
  line["n"] = samples.size();
  return line;
}

json::object WithSamples(json::object line, const Samples& samples) {
  json::array all;
  for (const double sample : samples) all.push_back(Tenth(sample));
  line["samples_us"] = std::move(all);
  return line;
}

void Print(const json::object& line, Format format) {
  if (format == Format::kJson) {
    printf("%s\n", json::serialize(line).c_str());
  } else {
    for (const auto& [key, value] : line) {
      if (key == "samples_us") continue;
      if (key == "name")
        printf("%-16s", value.as_string().c_str());
      else if (value.is_double())
        printf(" %s=%.1f", std::string(key).c_str(), value.as_double());
      else
        printf(" %s=%s", std::string(key).c_str(), json::serialize(value).c_str());
    }
    printf("\n");
  }
  fflush(stdout);
}

void CatchStopSignals() {
  struct sigaction action = {};
  action.sa_handler = [](int) { stop_requested = 1; };
  action.sa_flags = SA_RESTART;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

Status CheckStop() {
  if (stop_requested != 0) return Error(ErrorCode::kCancelled, "stopped by a signal");
  return {};
}

void Crew::Add(Task<Status> task) { tasks_.Spawn(Follow(std::move(task))); }

Task<void> Crew::Follow(Task<Status> task) {
  Status status = co_await std::move(task);
  if (!status && first_error_) first_error_ = std::move(status);
}

Task<Status> Crew::Wait() {
  co_await tasks_.Join();
  co_return first_error_;
}

}  // namespace caisson::bench
