// caisson: the table of contents of the command line.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <string_view>
#include <vector>

#include "cli/dispatch.h"
#include "cli/serve.h"
#include "cli/verbs.h"

namespace caisson::cli {
namespace {

constexpr Positional kExecWords[] = {
    {.name = "session",
     .arity = Arity::kBeforeDashes,
     .kind = ValueKind::kSession,
     .help = "a session on a server to run it in, instead of a fresh sandbox here"},
    {.name = "command", .arity = Arity::kRest, .help = "the command to run, and its arguments"}};
constexpr Positional kShell[] = {{.name = "shell",
                                  .kind = ValueKind::kEnum,
                                  .choices = "bash|zsh|fish",
                                  .help = "the shell to complete in"}};

constexpr Example kExecExamples[] = {
    {"caisson exec -- python3 -c 'print(6*7)'", "run Python in a fresh sandbox"},
    {"caisson exec --profile strict --timeout 5s -- ./untrusted",
     "no capability, read-only root, five seconds"},
    {"caisson exec --mount ./src:/workspace/src:ro -- make -C /workspace/src",
     "show it a directory of yours"},
    {"caisson exec --memory 64M --pids 16 --stats -- bash",
     "a shell with tight limits, and what it used"},
    {"caisson exec web -- ls -l /workspace", "in the session web, on a server"},
};
constexpr Example kServeExamples[] = {
    {"caisson serve", "on 127.0.0.1:8000, with API keys; the first start makes an admin key"},
    {"caisson serve --auth none", "for trials on this machine: no keys"},
    {"caisson serve --listen unix:/run/caisson.sock",
     "for local programs; the kernel says who calls"},
    {"caisson serve --listen 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem --host box.example",
     "for others, over TLS"},
};
constexpr Example kCompletionExamples[] = {
    {"source <(caisson completion bash)", "complete in this shell"}};

// A descriptor of ours must never become one of the three streams, or a command's output would go
// into it. A closed stdin reads as empty, a closed stdout fails to be written, a closed stderr
// swallows.
void FillClosedStreams() {
  constexpr int kModes[] = {O_RDONLY, O_RDONLY, O_WRONLY};
  for (int stream = 0; stream < 3; ++stream)
    if (fcntl(stream, F_GETFD) < 0)
      (void)!open("/dev/null", kModes[stream]);  // the lowest free number
}

}  // namespace

const Program& TheProgram() {
  static const Verb kVerbs[] = {
      {.name = "exec",
       .summary = "run a command in a fresh sandbox, or in a session on a server",
       .details = "Exits with the command's own code; 128 + N when signal N ended it, 124 on "
                  "timeout, 125 when Caisson itself "
                  "failed, 126 when the command cannot be executed, 127 when it was not found.",
       .options = ExecOptions(),
       .positionals = kExecWords,
       .examples = kExecExamples,
       .run = RunExec},
      CreateVerb(),
      LsVerb(),
      InspectVerb(),
      ShellVerb(),
      AttachVerb(),
      CpVerb(),
      LogsVerb(),
      TopVerb(),
      StatsVerb(),
      PauseVerb(),
      ResumeVerb(),
      RmVerb(),
      EventsVerb(),
      KeysVerb(),
      AuditVerb(),
      LoginVerb(),
      ConfigVerb(),
      {.name = "serve",
       .summary = "sessions over HTTP: the server",
       .details = "Prints `listening on URL` when it takes requests. SIGTERM lets running requests "
                  "finish, a second one ends them sooner; sandboxes live on for the next server on "
                  "the same data directory.",
       .options = ServeOptionTable(),
       .examples = kServeExamples,
       .run = RunServe},
      {.name = "doctor",
       .summary = "look at this host: what works, what is weaker, how to fix it",
       .options = DoctorOptions(),
       .run = RunDoctor},
      {.name = "sweep",
       .summary = "remove what killed launchers left behind",
       .options = SweepOptions(),
       .run = RunSweep},
      {.name = "completion",
       .summary = "print a completion script for a shell",
       .positionals = kShell,
       .examples = kCompletionExamples,
       .run = RunCompletion},
      {.name = "version", .summary = "print the version", .run = RunVersion},
  };
  static const Program kProgram = {
      .name = "caisson",
      .version = CAISSON_VERSION,
      .summary = "sandboxes for AI agents, in milliseconds, on a plain Linux box",
      .verbs = kVerbs,
      .footer =
          "CAISSON_HOME names the directory for state; by default /var/lib/caisson for root and "
          "~/.local/share/caisson for others."};
  return kProgram;
}

}  // namespace caisson::cli

int main(int argc, char** argv) {
  caisson::cli::FillClosedStreams();
  signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  return caisson::cli::Dispatch(caisson::cli::TheProgram(), arguments,
                                caisson::Surroundings::OfThisProcess());
}
