// http_bench: a running `caisson serve`, measured through its API.
//
//   http_bench --url URL --pid PID [--json] [--only ROW] [--runs N] [--quick] [--storm SECONDS]
//   http_bench --end DIR
//
// The server is the caller's: --url is where it listens, --pid is its process, whose memory and CPU
// time some rows read. The second form ends what outlives a server on the data directory DIR: its
// launcher and every sandbox. With --json it prints the lines that README.md describes, otherwise a
// word for people. Exit status: 0 measured, 1 a row failed (the reason is the last line of stderr),
// 2 bad usage.

#include <getopt.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "http_rows.h"
#include "net/url.h"
#include "providers/native/native_provider.h"

namespace caisson::bench {
namespace {

constexpr char kUsage[] =
    "usage: http_bench --url URL --pid PID [--json] [--only ROW] [--runs N] [--quick]\n"
    "                  [--storm SECONDS]\n"
    "       http_bench --end DATA_DIR\n"
    "rows:";

struct Options {
  std::optional<net::Url> url;
  pid_t pid = 0;
  std::string only, end;
  Format format = Format::kPeople;
  HttpOptions row;
};

// A whole number within [1, most], or nothing.
std::optional<int> ParseCount(const char* text, int most) {
  char* end = nullptr;
  errno = 0;
  const long value = strtol(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || value < 1 || value > most) return std::nullopt;
  return static_cast<int>(value);
}

// Whether the option is good.
bool Take(Options& options, int letter, const char* value) {
  const auto count = [&](int most) { return ParseCount(value, most); };
  switch (letter) {
    case 'j':
      options.format = Format::kJson;
      return true;
    case 'q':
      options.row.length = Length::kQuick;
      return true;
    case 'o':
      options.only = value;
      return true;
    case 'e':
      options.end = value;
      return true;
    case 'u':
      if (auto url = net::ParseUrl(value)) options.url = *std::move(url);
      return options.url.has_value();
    case 'p':
      options.pid = count(1 << 30).value_or(0);
      return options.pid > 0;
    case 'r':
      options.row.runs = count(100'000).value_or(0);
      return options.row.runs > 0;
    case 's':
      options.row.storm = std::chrono::seconds(count(86'400).value_or(0));
      return options.row.storm.count() > 0;
    default:
      return false;
  }
}

// Nothing on bad usage.
std::optional<Options> Parse(int argc, char** argv) {
  Options options;
  static constexpr option kOptions[] = {{"json", no_argument, nullptr, 'j'},
                                        {"only", required_argument, nullptr, 'o'},
                                        {"runs", required_argument, nullptr, 'r'},
                                        {"quick", no_argument, nullptr, 'q'},
                                        {"url", required_argument, nullptr, 'u'},
                                        {"pid", required_argument, nullptr, 'p'},
                                        {"storm", required_argument, nullptr, 's'},
                                        {"end", required_argument, nullptr, 'e'},
                                        {nullptr, 0, nullptr, 0}};
  for (int letter; (letter = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;)
    if (!Take(options, letter, optarg)) return std::nullopt;
  if (optind != argc) return std::nullopt;
  if (!options.end.empty()) return options;
  bool known = options.only.empty();
  for (const HttpRow& row : HttpRows()) known = known || row.name == options.only;
  if (!known || !options.url || options.pid == 0) return std::nullopt;
  return options;
}

Task<Status> EndLauncher(async::Loop* loop, std::string data_dir) {
  native::LauncherPaths paths = native::LauncherPaths::FromEnvironment();
  paths.state_dir = data_dir + "/native";
  CAISSON_CO_ASSIGN(const auto provider,
                    co_await native::NativeProvider::Open(loop, paths, native::Keeping::kKeep));
  co_return co_await provider->Shutdown();
}

int Complain(std::string_view what, const Error& error) {
  fprintf(stderr, "http_bench: %s: %s\n", std::string(what).c_str(), error.message().c_str());
  return 1;
}

int MeasureAll(const Options& options) {
  int result = 0;
  for (const HttpRow& row : HttpRows()) {
    if (!options.only.empty() && row.name != options.only) continue;
    async::Loop loop;
    Remote remote(loop, *options.url, options.pid);
    const auto lines = loop.RunUntilDone(row.measure(&remote, options.row));
    if (lines) {
      for (const auto& line : *lines) Print(line, options.format);
      continue;
    }
    result = Complain(row.name, lines.error());
    if (!CheckStop()) break;
  }
  return result;
}

int Main(int argc, char** argv) {
  const std::optional<Options> options = Parse(argc, argv);
  if (!options) {
    fputs(kUsage, stderr);
    for (const HttpRow& row : HttpRows()) fprintf(stderr, " %s", std::string(row.name).c_str());
    fputs("\n", stderr);
    return 2;
  }
  CatchStopSignals();
  if (options->end.empty()) return MeasureAll(*options);
  async::Loop loop;
  const Status ended = loop.RunUntilDone(EndLauncher(&loop, options->end));
  if (!ended) return Complain("end the launcher", ended.error());
  Print(Line("end"), options->format);
  return 0;
}

}  // namespace
}  // namespace caisson::bench

int main(int argc, char** argv) { return caisson::bench::Main(argc, argv); }
