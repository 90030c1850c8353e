// Rows of a server that holds sessions and does nothing, and of many streams from them.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "base/text.h"
#include "engine_memory.h"
#include "http_held.h"
#include "http_rows.h"

namespace caisson::bench {
namespace {

using namespace std::chrono_literals;

constexpr size_t kIdle = 1000;
constexpr size_t kStreams = 200;
constexpr int kStreamLines = 40;
constexpr auto kSettle = 1500ms;  // for work that the server does when nobody waits

// Seconds of CPU that a process has used, from /proc/PID/stat (fields 14 and 15).
Result<double> CpuSeconds(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line))
    return Error(ErrorCode::kNotFound, "the server's process has gone");
  const char* at = line.c_str() + line.rfind(')') + 1;
  for (int field = 2; field < 13; ++field) at += 1 + std::string_view(at + 1).find(' ');
  char* end = nullptr;
  const unsigned long user = std::strtoul(at, &end, 10);
  const unsigned long system = std::strtoul(end, nullptr, 10);
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// The share of one CPU that the server uses while nobody asks for anything.
Task<Result<double>> IdleShare(Remote* remote, std::chrono::seconds time) {
  CAISSON_CO_ASSIGN(const double before, CpuSeconds(remote->pid()));
  const double begin = NowUs();
  co_await remote->loop().Sleep(time);
  CAISSON_CO_ASSIGN(const double after, CpuSeconds(remote->pid()));
  co_return (after - before) * 1e6 / (NowUs() - begin);
}

struct Aliveness {
  Remote* remote;
  const Ids* held;
  size_t next = 0;
  size_t alive = 0;
};

Task<Status> Visit(Aliveness* of) {
  while (of->next < of->held->size()) {
    CAISSON_CO_TRY(CheckStop());
    if (co_await of->remote->RunTrue((*of->held)[of->next++])) ++of->alive;
  }
  co_return Status();
}

struct Streaming {
  Remote* remote;
  size_t complete = 0;
  std::string first_failure;
};

// A stream's command waits between its lines, so that all streams are open side by side.
std::string StreamBody(size_t number) {
  return ExecBody({"/bin/bash", "-c",
                   Concat({"mkfifo /tmp/wait && exec 9<>/tmp/wait || exit 1; for ((i = 0; i < ",
                           std::to_string(kStreamLines), "; ++i)); do echo \"",
                           std::to_string(number), " $i\"; read -t 0.1 -u 9; done; exit 0"})});
}

std::string StreamOutput(size_t number) {
  std::string output;
  for (int i = 0; i < kStreamLines; ++i)
    output += Concat({std::to_string(number), " ", std::to_string(i), "\n"});
  return output;
}

// What a stream's command printed, put together from its events; it must have ended well.
Task<Result<std::string>> ReadStream(Remote* remote, std::string id, size_t number) {
  CAISSON_CO_ASSIGN(auto events, co_await remote->Stream(std::move(id), StreamBody(number)));
  std::string output, last;
  for (;;) {
    CAISSON_CO_ASSIGN(auto text, co_await events.Next());
    if (!text) break;
    CAISSON_CO_ASSIGN(const auto event, json::Parse(*text));
    const auto* data = event.is_object() ? event.as_object().if_contains("data") : nullptr;
    if (data != nullptr && data->is_string()) output += std::string_view(data->as_string());
    last = *std::move(text);
  }
  CAISSON_CO_TRY(CheckExit(last));
  co_return output;
}

Task<Status> StreamOne(Streaming* streaming, std::string id, size_t number) {
  auto output = co_await ReadStream(streaming->remote, std::move(id), number);
  if (output && *output == StreamOutput(number))
    ++streaming->complete;
  else if (streaming->first_failure.empty())
    streaming->first_failure = output ? "a stream's bytes differ" : output.error().message();
  co_return Status();
}

Task<Result<boost::json::object>> MeasureStreams(Remote* remote, const Ids* held) {
  Streaming streaming{remote, 0, {}};
  Crew crew(remote->loop());
  const double begin = NowUs();
  for (size_t i = 0; i < kStreams; ++i) crew.Add(StreamOne(&streaming, (*held)[i], i));
  CAISSON_CO_TRY(co_await crew.Wait());
  auto line = Line("http_streams200");
  line["complete"] = streaming.complete;
  line["total_us"] = Tenth(NowUs() - begin);
  if (!streaming.first_failure.empty()) line["first_failure"] = streaming.first_failure;
  co_return line;
}

}  // namespace

Task<Result<Lines>> MeasureHttpIdle(Remote* remote, HttpOptions) {
  Ids held;
  CAISSON_CO_TRY(co_await HoldMore(remote, &held, 20));
  CAISSON_CO_TRY(co_await EndAll(remote, &held));
  co_await remote->loop().Sleep(kSettle);
  CAISSON_CO_ASSIGN(const Snapshot before, TakeSnapshot(remote->pid()));
  CAISSON_CO_TRY(co_await HoldMore(remote, &held, kIdle));
  co_await remote->loop().Sleep(kSettle);
  CAISSON_CO_ASSIGN(const Snapshot after, TakeSnapshot(remote->pid()));
  auto line = MemoryLine("http_idle1000", before, after, kIdle);
  line["server_rss_bytes"] = after.owner_resident;
  CAISSON_CO_ASSIGN(const double share, co_await IdleShare(remote, 5s));
  line["server_cpu_percent"] = share * 100;
  Aliveness aliveness{remote, &held};
  Crew crew(remote->loop());
  for (int i = 0; i < 4; ++i) crew.Add(Visit(&aliveness));
  CAISSON_CO_TRY(co_await crew.Wait());
  line["alive"] = aliveness.alive;
  line["n"] = kIdle;
  CAISSON_CO_ASSIGN(auto streams, co_await MeasureStreams(remote, &held));
  CAISSON_CO_TRY(co_await EndAll(remote, &held));
  Lines lines;
  lines.push_back(std::move(line));
  lines.push_back(std::move(streams));
  co_return lines;
}

// Of a server that has just answered its first calls.
Task<Result<Lines>> MeasureHttpServerRss(Remote* remote, HttpOptions) {
  CAISSON_CO_TRY(co_await remote->Call("GET", "/health", "", 200));
  CAISSON_CO_ASSIGN(const auto session, co_await remote->Create());
  CAISSON_CO_TRY(co_await remote->RunTrue(session.id));
  CAISSON_CO_TRY(co_await remote->Destroy(session.id));
  co_await remote->loop().Sleep(kSettle);
  CAISSON_CO_ASSIGN(const auto memory, ReadProcessMemory(remote->pid()));
  auto line = Line("http_server_rss");
  line["rss_bytes"] = memory.resident;
  line["anonymous_bytes"] = memory.anonymous;
  co_return Lines{std::move(line)};
}

}  // namespace caisson::bench
