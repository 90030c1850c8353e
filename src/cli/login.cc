// login: which server, as whom, and where that is kept.
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "cli/api_client.h"
#include "cli/output.h"
#include "cli/process_link.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "providers/native/launcher_client.h"

namespace caisson::cli {
namespace {

constexpr Option kLoginOwn[] = {
    {.name = "forget", .kind = ValueKind::kFlag, .help = "remove what an earlier login stored"}};
constexpr auto kLoginOptions = Joined(kLoginOwn, kJsonOption, kConnectionOptions);
constexpr Example kLoginExamples[] = {
    {"caisson login --url https://caisson.example.org", "asks for the key, and stores both"},
    {"caisson login --url https://caisson.example.org < key.txt", "with the key from a file"},
    {"caisson login --forget", "log out"}};

// A terminal that does not show what is typed, until the end.
class Unseen {
 public:
  Unseen() {
    if (tcgetattr(STDIN_FILENO, &before_) != 0) return;
    changed_ = true;
    termios now = before_;
    now.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &now);
  }
  ~Unseen() {
    if (changed_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;

 private:
  termios before_{};
  bool changed_ = false;
};

// One line of stdin, without blanks around it.
Result<std::string> ReadLine() {
  constexpr size_t kMax = 64 << 10;
  std::string line;
  for (char c; line.size() < kMax;) {
    const ssize_t got = read(STDIN_FILENO, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::FromErrno("reading the key from standard input");
    if (got == 0 || c == '\n') break;
    line += c;
  }
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
  return line;
}

Result<std::string> AskForKey() {
  if (isatty(STDIN_FILENO) == 0) return ReadLine();
  WriteTo(STDERR_FILENO, "API key (empty for none): ");
  Result<std::string> key = [] {
    const Unseen unseen;
    return ReadLine();
  }();
  WriteTo(STDERR_FILENO, "\n");
  return key;
}

// The connection that is to be stored: what is given, and a key that is asked for.
Result<Connection> Wanted(const Parsed& parsed) {
  Connection wanted;
  const auto stored = LoadLogin();  // one that cannot be read is about to be replaced
  const std::string before = stored && *stored ? (*stored)->url : "";
  wanted.url.value =
      parsed.Get<std::string>("url").value_or(before.empty() ? std::string(kDefaultUrl) : before);
  wanted.url.source = "--url";
  wanted.key.source = "what was given";
  if (const auto key = parsed.Get<std::string>("key")) {
    wanted.key.value = *key;
  } else {
    CAISSON_ASSIGN(wanted.key.value, AskForKey());
  }
  if (const auto file = parsed.Get<std::string>("ca-file")) {
    char* absolute = realpath(file->c_str(), nullptr);
    if (absolute == nullptr) return Error::FromErrno("finding " + *file);
    wanted.ca_file.value = absolute;
    free(absolute);
  }
  return wanted;
}

Task<Result<int>> CheckAndStore(ApiClient* api, const Connection* wanted, const Parsed* parsed) {
  CAISSON_CO_TRY(co_await api->Get("/api/sessions?limit=1"));
  CAISSON_CO_TRY(StoreLogin({wanted->url.value, wanted->key.value, wanted->ca_file.value}));
  if (parsed->Flag("json")) {
    CAISSON_CO_TRY(PrintJson(json::Object{{"url", wanted->url.value}, {"file", LoginPath()}}));
  } else {
    CAISSON_CO_TRY(
        Print("logged in to " + OneLine(wanted->url.value) + "; kept in " + LoginPath() + "\n"));
  }
  co_return 0;
}

Result<int> Forget(const Parsed& parsed) {
  CAISSON_ASSIGN(const bool was, ForgetLogin());
  if (parsed.Flag("json")) {
    CAISSON_TRY(PrintJson(json::Object{{"forgotten", was}, {"file", LoginPath()}}));
  } else {
    CAISSON_TRY(Print(was ? "removed " + LoginPath() + "\n" : "nobody was logged in\n"));
  }
  return 0;
}

Result<int> RunLogin(const Parsed& parsed) {
  if (parsed.Flag("forget")) return Forget(parsed);
  CAISSON_ASSIGN(const Connection wanted, Wanted(parsed));
  async::Loop loop;
  CAISSON_ASSIGN(const auto api, ApiClient::Create(loop, wanted));
  return loop.RunUntilDone(CheckAndStore(api.get(), &wanted, &parsed));
}

}  // namespace

Verb LoginVerb() {
  return {.name = "login",
          .summary = "store a server and your key for it, for all other commands",
          .details =
              "The key is read from the terminal, or from standard input where that is no "
              "terminal, unless --key or CAISSON_API_KEY gives it. It is tried before it is "
              "stored, in a file that only you can read.",
          .options = kLoginOptions,
          .examples = kLoginExamples,
          .run = RunLogin};
}

}  // namespace caisson::cli
