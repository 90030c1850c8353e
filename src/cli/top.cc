// top: the sessions of a server, live.
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "async/race.h"
#include "async/signals.h"
#include "async/watch.h"
#include "base/units.h"
#include "cli/output.h"
#include "cli/process_link.h"
#include "cli/session_list.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/verbs.h"

namespace caisson::cli {
namespace {

constexpr Option kOwn[] = {
    {.name = "interval",
     .short_name = 'i',
     .kind = ValueKind::kDuration,
     .default_text = "2s",
     .min = 100'000'000,
     .help = "time between two looks"},
    {.name = "once",
     .kind = ValueKind::kFlag,
     .help = "look twice, print one table and end; so it is without a terminal"},
    {.name = "label",
     .short_name = 'l',
     .occurs = Occurs::kMany,
     .placeholder = "NAME=VALUE",
     .help = "only sessions with this label"},
};
constexpr auto kOptions = Joined(kOwn, kJsonOption, kConnectionOptions);
constexpr Example kExamples[] = {{"caisson top", "watch them; q quits"},
                                 {"caisson top --once --json", "one look, for machines"}};

using Clock = async::Loop::Clock;

struct Look {
  json::Value session, stats;
  std::optional<double> cpu_percent;  // of one core, since the look before
};

// Looks at every session, and remembers what is needed to tell how busy each has been since.
class Looker {
 public:
  Looker(ApiClient& api, std::vector<std::string> labels) : api_(api), labels_(std::move(labels)) {}

  // The busiest first.
  Task<Result<std::vector<Look>>> Take() {
    CAISSON_CO_ASSIGN(auto sessions, co_await ListSessions(&api_, {{}, labels_}));
    std::map<std::string, Sample> now;
    std::vector<Look> looks;
    for (json::Value& session : sessions) {
      Look look{std::move(session), {}, {}};
      const std::string id = TextAt(look.session, "session_id");
      auto stats = co_await api_.Get(SessionTarget(id, "/metrics"));
      if (stats) {
        look.stats = *std::move(stats);
        const Sample sample{NumberAt(look.stats, "cpu_seconds"), Clock::now()};
        if (const auto before = before_.find(id); before != before_.end())
          look.cpu_percent = Percent(before->second, sample);
        now.emplace(id, sample);
      } else if (!Passing(stats.error())) {
        co_return std::move(stats).error();
      }
      looks.push_back(std::move(look));
    }
    before_ = std::move(now);
    std::ranges::sort(looks, [](const Look& a, const Look& b) {
      if (a.cpu_percent != b.cpu_percent) return a.cpu_percent > b.cpu_percent;
      const uint64_t ours = CountAt(a.stats, "memory_bytes");
      const uint64_t theirs = CountAt(b.stats, "memory_bytes");
      if (ours != theirs) return ours > theirs;
      return TextAt(a.session, "session_id") < TextAt(b.session, "session_id");
    });
    co_return std::move(looks);
  }

 private:
  struct Sample {
    double cpu_seconds;
    Clock::time_point when;
  };
  static double Percent(const Sample& from, const Sample& to) {
    const double time = std::chrono::duration<double>(to.when - from.when).count();
    return time <= 0 ? 0 : std::max(0.0, 100 * (to.cpu_seconds - from.cpu_seconds) / time);
  }
  // It has ended since it was listed, or is not ready yet.
  static bool Passing(const Error& error) {
    return error.code() == ErrorCode::kNotFound || error.code() == ErrorCode::kGone ||
           error.code() == ErrorCode::kConflict;
  }

  ApiClient& api_;
  std::vector<std::string> labels_;
  std::map<std::string, Sample> before_;
};

Table TableOf(const std::vector<Look>& looks, size_t most) {
  Table table({{"SESSION", Align::kLeft, Fit::kCut},
               {"NAME", Align::kLeft, Fit::kCut},
               {"STATE"},
               {"CPU%", Align::kRight},
               {"MEMORY", Align::kRight},
               {"PEAK", Align::kRight},
               {"PROCS", Align::kRight},
               {"DISK", Align::kRight},
               {"AGE", Align::kRight}});
  for (const Look& look : looks) {
    if (table.size() == most) break;
    const std::string state = TextAt(look.session, "state");
    const auto size = [&](std::string_view name) {
      return look.stats.is_null() ? "-" : FormatSize(CountAt(look.stats, name));
    };
    const auto created = ParseTime(TextAt(look.session, "created_at"));
    table.Add({TextAt(look.session, "session_id"), TextAt(look.session, "name"),
               Cell(state, TintOfState(state)),
               look.cpu_percent ? fmt::format("{:.1f}", *look.cpu_percent) : "-",
               size("memory_bytes"), size("memory_peak_bytes"),
               look.stats.is_null() ? "-" : std::to_string(CountAt(look.stats, "processes")),
               size("disk_used_bytes"), created ? Span(Now() - *created) : "-"});
  }
  return table;
}

std::string AsLines(const std::vector<Look>& looks) {
  std::string lines;
  for (const Look& look : looks) {
    json::Object line{{"session_id", TextAt(look.session, "session_id")},
                      {"name", At(look.session, "name")},
                      {"state", TextAt(look.session, "state")},
                      {"stats", look.stats}};
    line["cpu_percent"] = look.cpu_percent ? json::Value(*look.cpu_percent) : json::Value();
    lines += json::Write(line) + "\n";
  }
  return lines;
}

// The other screen of the terminal, with the cursor hidden; back to what was there at the end.
class Screenful {
 public:
  Screenful() : raw_(STDIN_FILENO) { WriteTo(STDOUT_FILENO, "\x1b[?1049h\x1b[?25l"); }
  ~Screenful() { WriteTo(STDOUT_FILENO, "\x1b[?25h\x1b[?1049l"); }
  Screenful(const Screenful&) = delete;
  Screenful& operator=(const Screenful&) = delete;

  void Draw(std::string_view text) {
    std::string drawn = "\x1b[H";
    for (const char c : text) {
      if (c == '\n') drawn += "\x1b[K\r";
      drawn += c;
    }
    WriteTo(STDOUT_FILENO, drawn + "\x1b[J");
  }

 private:
  RawTerminal raw_;
};

// Completes when somebody types q, Ctrl-C or Ctrl-D, or nobody can type any more.
Task<std::monostate> QuitKey(async::Loop* loop) {
  async::Watch watch(*loop, STDIN_FILENO);
  for (;;) {
    co_await watch.Readable();
    char keys[64];
    const ssize_t got = read(STDIN_FILENO, keys, sizeof keys);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) co_return std::monostate();
    for (const char key : std::string_view(keys, static_cast<size_t>(got)))
      if (key == 'q' || key == 'Q' || key == 3 || key == 4) co_return std::monostate();
  }
}

// Waits for the next look: the time is over, or the window has another size. False: a signal to
// end.
Task<bool> NextTurn(async::Loop* loop, async::Signals* signals, Clock::duration interval) {
  const auto signal = co_await async::WithTimeout(loop, interval, signals->Next());
  co_return !signal || *signal == SIGWINCH;
}

Task<Status> Show(ApiClient* api, Looker* looker, Screenful* screen, Clock::duration interval) {
  async::Signals signals(api->loop(), {SIGINT, SIGTERM, SIGHUP, SIGWINCH});
  for (;;) {
    CAISSON_CO_ASSIGN(const auto looks, co_await looker->Take());
    const WindowSize size = SizeOfTerminal(STDOUT_FILENO);
    const size_t room = size.rows > 4 ? size.rows - 4u : 1;
    std::string text = fmt::format("{} sessions at {}   (q quits)\n\n", looks.size(), api->url());
    text += TableOf(looks, room).Show(size.cols, ColourOfOutput());
    screen->Draw(text);
    if (!co_await NextTurn(&api->loop(), &signals, interval)) co_return Status();
  }
}

Task<Result<int>> Top(ApiClient* api, const Parsed* parsed) {
  const auto interval = *parsed->Get<std::chrono::nanoseconds>("interval");
  Looker looker(*api, parsed->All<std::string>("label"));
  const bool terminal = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  if (parsed->Flag("once") || parsed->Flag("json") || !terminal) {
    CAISSON_CO_TRY(co_await looker.Take());
    co_await api->loop().Sleep(interval);
    CAISSON_CO_ASSIGN(const auto looks, co_await looker.Take());
    CAISSON_CO_TRY(
        Print(parsed->Flag("json")
                  ? AsLines(looks)
                  : TableOf(looks, looks.size()).Show(WidthOfOutput(), ColourOfOutput())));
    co_return 0;
  }
  Screenful screen;
  auto first = co_await async::FirstOf(&api->loop(), Show(api, &looker, &screen, interval),
                                       QuitKey(&api->loop()));
  if (first.index() == 0) CAISSON_CO_TRY(std::get<0>(std::move(first)));
  co_return 0;
}

Result<int> Run(const Parsed& parsed) { return RunWithServer(parsed, Top); }

}  // namespace

Verb TopVerb() {
  return {.name = "top",
          .summary = "watch the sessions of a server: CPU, memory, processes",
          .options = kOptions,
          .examples = kExamples,
          .run = Run};
}

}  // namespace caisson::cli
