// What the bench programs share: a clock, samples and the lines made of them, tasks side by side,
// and an end that is asked for by a signal.
#pragma once

#include <boost/json/object.hpp>
#include <string_view>
#include <vector>

#include "async/task_set.h"
#include "base/result.h"

namespace caisson::bench {

enum class Length { kFull, kQuick };
enum class Format { kPeople, kJson };

using Lines = std::vector<boost::json::object>;
using Samples = std::vector<double>;

// Microseconds of a steady clock.
double NowUs();

// Nearest-rank percentile of samples that are not empty.
double Percentile(Samples samples, double share);
// Rounded to one decimal.
double Tenth(double value);

// {"name": name}, with p50_us, p99_us and n, and with all of the samples.
boost::json::object Line(std::string_view name);
boost::json::object TimesLine(std::string_view name, const Samples& samples);
boost::json::object WithSamples(boost::json::object line, const Samples& samples);
// On stdout; for people without samples_us.
void Print(const boost::json::object& line, Format format);

// Asked for by SIGINT, SIGTERM or SIGHUP. Long rows look before each life and end with kCancelled.
void CatchStopSignals();
Status CheckStop();

// Tasks side by side. Whatever a task refers to outlives Wait, and Wait is always awaited.
class Crew {
 public:
  explicit Crew(async::Loop& loop) : tasks_(loop) {}
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  void Add(Task<Status> task);
  // Completes when every task has, with the first error of them.
  Task<Status> Wait();

 private:
  Task<void> Follow(Task<Status> task);

  Status first_error_;
  async::TaskSet tasks_;
};

}  // namespace caisson::bench
