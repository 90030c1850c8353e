// engine_bench: Caisson's engine, measured through its own interface and nothing above it.
//
//   engine_bench [--json] [--only ROW] [--runs N] [--quick] [--dir DIR]
//
// Each row gets a launcher of its own, with all its state in a new directory below DIR (/var/tmp)
// that is removed again. With --json it prints the lines that README.md describes, otherwise a word
// for people. Exit status: 0 measured or skipped with a reason, 1 a row failed (the reason is the
// last line of stderr), 2 bad usage.

#include <fcntl.h>
#include <getopt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "engine_lives.h"
#include "engine_rows.h"
#include "providers/native/native_provider.h"
#include "sys/remove_tree.h"
#include "sys/unique_fd.h"

namespace caisson::bench {
namespace {

constexpr int kMaxRuns = 100'000;

constexpr char kUsage[] =
    "usage: engine_bench [--json] [--only ROW] [--runs N] [--quick] [--dir DIR]\n"
    "rows:";

struct Options {
  std::string only;
  std::string directory = "/var/tmp";
  Format format = Format::kPeople;
  RowOptions row;
};

// A directory for one engine's state, removed with all it holds unless an engine still uses it.
class Home {
 public:
  static Result<Home> Make(const std::string& parent) {
    std::string path = parent + "/caisson-bench-XXXXXX";
    sys::UniqueFd directory(open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory || mkdtemp(path.data()) == nullptr)
      return Error::FromErrno("make a directory below " + parent)
          .WithRemedy("give another one with --dir");
    return Home(std::move(directory), std::move(path));
  }
  Home(Home&&) = default;
  Home& operator=(Home&&) = delete;
  ~Home() {
    if (!parent_) return;
    const std::string name = path_.substr(path_.rfind('/') + 1);
    if (auto removed = sys::RemoveTree(parent_.get(), name.c_str()); !removed)
      fprintf(stderr, "engine_bench: remove %s: %s\n", path_.c_str(),
              removed.error().message().c_str());
  }

  const std::string& path() const { return path_; }
  void Leave() { parent_.Reset(); }

 private:
  Home(sys::UniqueFd parent, std::string path)
      : parent_(std::move(parent)), path_(std::move(path)) {}

  sys::UniqueFd parent_;
  std::string path_;
};

Task<Result<Lines>> Measure(async::Loop* loop, std::string home, const Row* row,
                            RowOptions options) {
  auto provider = co_await native::NativeProvider::Open(
      loop, {.run_dir = home + "/run", .state_dir = home}, native::Keeping::kEphemeral);
  if (!provider) co_return std::move(provider).error();
  co_return co_await row->measure(provider->get(), options);
}

// The engine ends when its provider is gone; its launcher is the only child there is.
Status AwaitLauncher() {
  constexpr int kSteps = 600;
  for (int i = 0; i < kSteps; ++i) {
    const pid_t pid = waitpid(-1, nullptr, WNOHANG);
    if (pid < 0 && errno == ECHILD) return {};
    if (pid <= 0) usleep(50'000);
  }
  return Error(ErrorCode::kDeadlineExceeded,
               "the launcher has not ended 30 seconds after its owner left");
}

Result<Lines> MeasureRow(const Row& row, const Options& options) {
  if (row.measure == nullptr) return Lines{{{"name", row.name}, {"skipped", row.skipped}}};
  CAISSON_ASSIGN(Home home, Home::Make(options.directory));
  std::optional<Result<Lines>> result;
  {
    async::Loop loop;
    result = loop.RunUntilDone(Measure(&loop, home.path(), &row, options.row));
  }
  if (auto ended = AwaitLauncher(); !ended) {
    home.Leave();
    return std::move(ended).error().Because("end the engine in " + home.path());
  }
  return *std::move(result);
}

// A whole number within [1, kMaxRuns], or nothing.
std::optional<int> ParseRuns(const char* text) {
  char* end = nullptr;
  errno = 0;
  const long value = strtol(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || value < 1 || value > kMaxRuns)
    return std::nullopt;
  return static_cast<int>(value);
}

// Nothing on bad usage.
std::optional<Options> Parse(int argc, char** argv) {
  Options options;
  static constexpr option kOptions[] = {
      {"json", no_argument, nullptr, 'j'},       {"only", required_argument, nullptr, 'o'},
      {"runs", required_argument, nullptr, 'r'}, {"quick", no_argument, nullptr, 'q'},
      {"dir", required_argument, nullptr, 'd'},  {nullptr, 0, nullptr, 0}};
  for (int letter; (letter = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    if (letter == 'j')
      options.format = Format::kJson;
    else if (letter == 'o')
      options.only = optarg;
    else if (letter == 'q')
      options.row.length = Length::kQuick;
    else if (letter == 'd')
      options.directory = optarg;
    else if (letter == 'r' && ParseRuns(optarg))
      options.row.runs = *ParseRuns(optarg);
    else
      return std::nullopt;
  }
  if (optind != argc || options.directory.empty()) return std::nullopt;
  bool known = options.only.empty();
  for (const Row& row : Rows()) known = known || row.name == options.only;
  return known ? std::optional(options) : std::nullopt;
}

int Main(int argc, char** argv) {
  const std::optional<Options> options = Parse(argc, argv);
  if (!options) {
    fputs(kUsage, stderr);
    for (const Row& row : Rows()) fprintf(stderr, " %s", std::string(row.name).c_str());
    fputs("\n", stderr);
    return 2;
  }
  CatchStopSignals();
  bool failed = false;
  for (const Row& row : Rows()) {
    if (!options->only.empty() && row.name != options->only) continue;
    const auto lines = MeasureRow(row, *options);
    if (lines) {
      for (const auto& line : *lines) Print(line, options->format);
      continue;
    }
    failed = true;
    fprintf(stderr, "engine_bench: %s: %s\n", std::string(row.name).c_str(),
            lines.error().message().c_str());
    if (!CheckStop()) break;
  }
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace caisson::bench

int main(int argc, char** argv) { return caisson::bench::Main(argc, argv); }
