// floor_bench: what the kernel itself charges, measured with nothing in between.
//
//   floor_bench full  [--tmpfs] [--userns]   the whole jail with a network namespace
//   floor_bench nonet [--tmpfs] [--userns]   the same without one
//   floor_bench spawn | vfork                plain /bin/true on the host, by fork or posix_spawn
//   floor_bench run -- PROGRAM [ARG...]      any command, started by posix_spawn, output discarded
//
// Prints one JSON line; times are microseconds of wall clock from before the first system call to
// after the last, cpu_us is the mean of user and system time of this process and its children.
// A jail is inspected from outside once before the timed runs, and nothing is printed if it is not
// the full one. Exit status: 0 measured, 1 a run failed, 2 bad usage.

#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "floor_jail.h"

namespace caisson::bench {
namespace {

constexpr int kMaxRuns = 1'000'000;
constexpr int kMaxWorkers = 256;

constexpr char kUsage[] =
    "usage: floor_bench full|nonet [--tmpfs] [--userns] [--workers N] | spawn | vfork | run -- "
    "CMD\n"
    "options: --runs N (500)  --warmup N (10)  --samples (print each time)  --name NAME\n"
    "         --dir DIR (a directory on a disk file system; /var/tmp)\n"
    "         --workers N (lives in N processes at once; prints the rate)\n";

struct Options {
  std::string mode;
  std::string name;
  std::string directory = "/var/tmp";
  int runs = 500;
  int warmup = 10;
  int workers = 0;  // 0 measures each life, more measure the rate
  Upper upper = Upper::kDisk;
  Users users = Users::kShared;
  enum class Detail { kSummary, kSamples } detail = Detail::kSummary;
  std::vector<char*> command;  // with the final null
};

volatile sig_atomic_t stop_requested = 0;

double Microseconds(const timeval& value) {
  return static_cast<double>(value.tv_sec) * 1e6 + static_cast<double>(value.tv_usec);
}

double WallMicroseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

double CpuMicroseconds() {
  double sum = 0;
  for (auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage;
    getrusage(who, &usage);
    sum += Microseconds(usage.ru_utime) + Microseconds(usage.ru_stime);
  }
  return sum;
}

// 0 when the child exited with 0.
Failure Reap(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) < 0) return {"waitpid", errno};
  if (status != 0) return {"exit status of the command", 0};
  return {};
}

Failure ForkAndExec(const std::vector<char*>& command) {
  const pid_t pid = fork();
  if (pid < 0) return {"fork", errno};
  if (pid == 0) {
    execv(command[0], command.data());
    _exit(127);
  }
  return Reap(pid);
}

// glibc's posix_spawn is CLONE_VM | CLONE_VFORK.
Failure Spawn(const std::vector<char*>& command, const posix_spawn_file_actions_t* actions) {
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, command[0], actions, nullptr, command.data(), environ);
  if (error != 0) return {"posix_spawn of the command", error};
  return Reap(pid);
}

int Complain(const Failure& failure) {
  fprintf(stderr, "floor_bench: %s: %s\n", failure.stage,
          failure.error != 0 ? strerror(failure.error) : "not 0");
  return 1;
}

// Nearest-rank percentile of sorted samples.
double Percentile(const std::vector<double>& sorted, double share) {
  const auto rank = static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5);
  return sorted[rank];
}

void Print(const Options& options, const std::vector<double>& samples, double cpu,
           const FloorJail* jail) {
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  const double mean =
      std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size());
  printf(
      "{\"name\":\"%s\",\"n\":%zu,\"p50\":%.1f,\"p99\":%.1f,\"p5\":%.1f,\"mean_us\":%.1f,"
      "\"cpu_us\":%.1f",
      options.name.c_str(), sorted.size(), Percentile(sorted, 0.5), Percentile(sorted, 0.99),
      Percentile(sorted, 0.05), mean, cpu);
  if (jail != nullptr) {
    printf(",\"cgroup\":\"%s\",\"masks\":%zu,\"seccomp_instructions\":%zu", jail->cgroup_version(),
           jail->masks(), jail->filter_length());
  }
  if (options.detail == Options::Detail::kSamples) {
    printf(",\"samples_us\":[");
    for (size_t i = 0; i < samples.size(); ++i) printf("%s%.1f", i == 0 ? "" : ",", samples[i]);
    printf("]");
  }
  printf("}\n");
}

int Measure(const Options& options, const std::function<Failure()>& run, const FloorJail* jail) {
  for (int i = 0; i < options.warmup && stop_requested == 0; ++i) {
    if (Failure failure = run()) return Complain(failure);
  }
  std::vector<double> samples;
  samples.reserve(static_cast<size_t>(options.runs));
  const double cpu_before = CpuMicroseconds();
  for (int i = 0; i < options.runs && stop_requested == 0; ++i) {
    const double begin = WallMicroseconds();
    if (Failure failure = run()) return Complain(failure);
    samples.push_back(WallMicroseconds() - begin);
  }
  if (stop_requested != 0) return 1;
  const double cpu = (CpuMicroseconds() - cpu_before) / static_cast<double>(samples.size());
  Print(options, samples, cpu, jail);
  return 0;
}

// One worker of MeasureRate: prepares, reports ready, waits for the start, lives its lives.
int Work(const Options& options, const JailOptions& jail_options, int ready, int start) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  FloorJail jail(jail_options);
  if (Failure failure = jail.Prepare()) return Complain(failure);
  for (int i = 0; i <= options.warmup; ++i) {
    if (Failure failure = jail.RunOnce()) return Complain(failure);
  }
  char byte = 'r';
  if (write(ready, &byte, 1) != 1 || read(start, &byte, 1) != 1) return 1;
  for (int i = 0; i < options.runs; ++i) {
    if (stop_requested != 0) return 1;
    if (Failure failure = jail.RunOnce()) return Complain(failure);
  }
  return 0;
}

int MeasureRate(const Options& options, const JailOptions& jail_options) {
  int ready[2], start[2];
  if (pipe2(ready, O_CLOEXEC) < 0 || pipe2(start, O_CLOEXEC) < 0) return Complain({"pipe", errno});
  for (int i = 0; i < options.workers; ++i) {
    const pid_t pid = fork();
    if (pid < 0) return Complain({"fork of a worker", errno});
    if (pid == 0) {
      close(ready[0]);
      close(start[1]);
      exit(Work(options, jail_options, ready[1], start[0]));
    }
  }
  close(ready[1]);
  close(start[0]);
  char byte = 0;
  int prepared = 0;
  while (prepared < options.workers && read(ready[0], &byte, 1) == 1) ++prepared;
  const std::string go(static_cast<size_t>(options.workers), 'g');
  const double begin = WallMicroseconds();
  bool failed = prepared != options.workers ||
                write(start[1], go.data(), go.size()) != static_cast<ssize_t>(go.size());
  close(start[1]);
  for (int status = 0; wait(&status) > 0;) failed |= status != 0;
  if (failed) return 1;
  const double seconds = (WallMicroseconds() - begin) / 1e6;
  const int lives = options.runs * options.workers;
  printf("{\"name\":\"%s\",\"n\":%d,\"workers\":%d,\"per_s\":%.1f}\n", options.name.c_str(), lives,
         options.workers, lives / seconds);
  return 0;
}

int MeasureJail(const Options& options) {
  const JailOptions jail_options = {
      .network = options.mode == "full" ? Network::kLoopback : Network::kShared,
      .upper = options.upper,
      .users = options.users,
      .directory = options.directory};
  if (options.workers > 0) return MeasureRate(options, jail_options);
  FloorJail jail(jail_options);
  if (Failure failure = jail.Prepare()) return Complain(failure);
  if (Failure failure = jail.Verify()) {
    fprintf(stderr, "floor_bench: the inspected run did not give a full jail\n");
    return Complain(failure);
  }
  return Measure(options, [&jail] { return jail.RunOnce(); }, &jail);
}

int MeasureCommand(const Options& options) {
  if (options.mode == "spawn") {
    return Measure(options, [&] { return ForkAndExec(options.command); }, nullptr);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (options.mode == "run") {
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  }
  const int result = Measure(options, [&] { return Spawn(options.command, &actions); }, nullptr);
  posix_spawn_file_actions_destroy(&actions);
  return result;
}

// A whole number within [low, high], or -1.
int ParseCount(const char* text, int low, int high) {
  char* end = nullptr;
  errno = 0;
  const long value = strtol(text, &end, 10);
  if (errno != 0 || end == text || *end != '\0' || value < low || value > high) return -1;
  return static_cast<int>(value);
}

std::string DefaultName(const Options& options) {
  std::string name = options.mode;
  if (options.mode == "full") name = "floor";
  if (options.mode == "nonet") name = "floor_nonet";
  if (options.upper == Upper::kTmpfs) name += "_tmpfs";
  if (options.users == Users::kOwn) name += "_userns";
  if (options.workers > 0) name += "_rate";
  return name;
}

// Nothing on bad usage.
std::optional<Options> Parse(int argc, char** argv) {
  Options options;
  static constexpr option kOptions[] = {{"runs", required_argument, nullptr, 'r'},
                                        {"warmup", required_argument, nullptr, 'w'},
                                        {"workers", required_argument, nullptr, 'p'},
                                        {"dir", required_argument, nullptr, 'd'},
                                        {"name", required_argument, nullptr, 'n'},
                                        {"tmpfs", no_argument, nullptr, 't'},
                                        {"userns", no_argument, nullptr, 'u'},
                                        {"samples", no_argument, nullptr, 's'},
                                        {nullptr, 0, nullptr, 0}};
  for (int letter; (letter = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    switch (letter) {
      case 'r':
        options.runs = ParseCount(optarg, 1, kMaxRuns);
        break;
      case 'w':
        options.warmup = ParseCount(optarg, 0, kMaxRuns);
        break;
      case 'p':
        options.workers = ParseCount(optarg, 1, kMaxWorkers);
        break;
      case 'd':
        options.directory = optarg;
        break;
      case 'n':
        options.name = optarg;
        break;
      case 't':
        options.upper = Upper::kTmpfs;
        break;
      case 'u':
        options.users = Users::kOwn;
        break;
      case 's':
        options.detail = Options::Detail::kSamples;
        break;
      default:
        return std::nullopt;
    }
  }
  if (options.runs < 0 || options.warmup < 0 || options.workers < 0 || optind >= argc)
    return std::nullopt;
  options.mode = argv[optind++];
  static char true_path[] = "/bin/true";
  if (options.mode == "run") {
    options.command.assign(argv + optind, argv + argc);
    if (options.command.empty()) return std::nullopt;
  } else if (optind != argc) {
    return std::nullopt;
  } else {
    options.command = {true_path};
  }
  options.command.push_back(nullptr);
  if (options.name.empty()) options.name = DefaultName(options);
  if (options.name.find_first_of("\"\\\n") != std::string::npos) return std::nullopt;
  return options;
}

int Main(int argc, char** argv) {
  const std::optional<Options> parsed = Parse(argc, argv);
  if (!parsed) {
    fputs(kUsage, stderr);
    return 2;
  }
  const Options& options = *parsed;
  struct sigaction action = {};
  action.sa_handler = [](int) { stop_requested = 1; };
  action.sa_flags = SA_RESTART;
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  if (options.mode == "full" || options.mode == "nonet") return MeasureJail(options);
  if (options.mode == "spawn" || options.mode == "vfork" || options.mode == "run") {
    return MeasureCommand(options);
  }
  fputs(kUsage, stderr);
  return 2;
}

}  // namespace
}  // namespace caisson::bench

int main(int argc, char** argv) { return caisson::bench::Main(argc, argv); }
