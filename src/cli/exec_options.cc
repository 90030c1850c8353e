#include "cli/exec_options.h"

#include <unistd.h>

#include <cstdlib>

#include "base/text.h"
#include "cli/connection.h"
#include "cli/verbs.h"

namespace caisson::cli {
namespace {

constexpr int64_t kMillisecond = 1'000'000;

constexpr Option kOwn[] = {
    {.name = "env",
     .short_name = 'e',
     .occurs = Occurs::kMany,
     .placeholder = "NAME=VALUE",
     .section = "Command",
     .help = "set an environment variable; repeatable. Nothing of your own environment is passed"},
    {.name = "cwd",
     .short_name = 'w',
     .placeholder = "DIR",
     .section = "Command",
     .help = "working directory inside (default /workspace)"},
    {.name = "user",
     .short_name = 'u',
     .placeholder = "USER",
     .section = "Command",
     .help =
         "a name of the sandbox's passwd, or a uid from 0 to 65534 (default root; 1000 in strict)"},
    {.name = "timeout",
     .short_name = 't',
     .kind = ValueKind::kDuration,
     .min = kMillisecond,
     .section = "Command",
     .help = "kill the whole process tree after this long (default 1h; 5s in strict)"},
    {.name = "output",
     .kind = ValueKind::kSize,
     .min = 1,
     .section = "Command",
     .help = "kill it when it has written more than this (default none; 16M in strict)"},
    {.name = "profile",
     .short_name = 'p',
     .kind = ValueKind::kEnum,
     .choices = "default|strict",
     .default_text = "default",
     .env = "CAISSON_PROFILE",
     .section = "Sandbox",
     .help = "default: root inside that can install packages. strict: no capability, read-only "
             "root except /tmp and /workspace"},
    {.name = "min-isolation",
     .kind = ValueKind::kEnum,
     .choices = "any|namespaces-rootless|namespaces",
     .default_text = "any",
     .env = "CAISSON_MIN_ISOLATION",
     .section = "Sandbox",
     .help = "refuse to run when the host isolates less than this"},
    {.name = "rootfs",
     .kind = ValueKind::kPath,
     .placeholder = "DIR|TAR",
     .section = "Sandbox",
     .help = "a directory or tar file as the root, instead of the host's system directories"},
    {.name = "mount",
     .short_name = 'v',
     .occurs = Occurs::kMany,
     .placeholder = "SRC:DST[:ro]",
     .section = "Sandbox",
     .help = "show a file or directory of yours inside; repeatable. A writable one must not belong "
             "to root"},
    {.name = "hostname",
     .placeholder = "NAME",
     .section = "Sandbox",
     .help = "host name inside (default caisson)"},
    {.name = "memory",
     .short_name = 'm',
     .kind = ValueKind::kSize,
     .min = 4 << 20,
     .section = "Limits",
     .help = "memory, without swap (default 512M; 256M in strict)"},
    {.name = "swap",
     .kind = ValueKind::kSize,
     .section = "Limits",
     .help = "swap beyond the memory limit (default none)"},
    {.name = "cpus",
     .short_name = 'c',
     .kind = ValueKind::kCpus,
     .min = 10,
     .max = 1'024'000,
     .section = "Limits",
     .help = "cores, e.g. 0.5 (the default)"},
    {.name = "pids",
     .kind = ValueKind::kInt,
     .min = 4,
     .max = 4'194'304,
     .section = "Limits",
     .help = "processes and threads (default 256; 128 in strict)"},
    {.name = "disk",
     .kind = ValueKind::kSize,
     .min = 1 << 20,
     .max = int64_t{1} << 44,
     .section = "Limits",
     .help = "bytes it may write (default 256M, at most half of the memory; more goes to a disk "
             "image)"},
    {.name = "inodes",
     .kind = ValueKind::kInt,
     .min = 64,
     .max = int64_t{1} << 31,
     .section = "Limits",
     .help = "files it may create (default 65536)"},
    {.name = "disk-backend",
     .kind = ValueKind::kEnum,
     .choices = "auto|tmpfs|loop|quota",
     .default_text = "auto",
     .section = "Limits",
     .help = "what holds its files"},
    {.name = "files",
     .kind = ValueKind::kInt,
     .min = 8,
     .max = 1'048'576,
     .section = "Limits",
     .help = "open files of each process (default 1024; 512 in strict)"},
    {.name = "io-read",
     .kind = ValueKind::kSize,
     .min = 4096,
     .section = "Limits",
     .help = "bytes per second read from the host's disk"},
    {.name = "io-write",
     .kind = ValueKind::kSize,
     .min = 4096,
     .section = "Limits",
     .help = "bytes per second written to the host's disk"},
    {.name = "memory-bandwidth",
     .kind = ValueKind::kPercent,
     .min = 100,
     .max = 10000,
     .section = "Limits",
     .help = "share of the memory bandwidth (resctrl)"},
    {.name = "tty",
     .kind = ValueKind::kEnum,
     .choices = "auto|on|off",
     .default_text = "auto",
     .section = "Output",
     .help = "give the command a terminal; auto: when stdin and stdout are one"},
    {.name = "stats",
     .kind = ValueKind::kFlag,
     .section = "Output",
     .help = "print outcome, usage and timing to stderr afterwards"},
    {.name = "json",
     .kind = ValueKind::kFlag,
     .section = "Output",
     .help = "print one JSON object with output, outcome, usage, isolation and limits"},
    {.name = "detach",
     .short_name = 'd',
     .kind = ValueKind::kFlag,
     .section = "Session",
     .help = "with SESSION: leave it running in the background, and print its process_id"},
};
constexpr auto kOptions = Joined(kOwn, kConnectionOptions);

Error Bad(std::string what, std::string remedy) {
  return Error(ErrorCode::kInvalidArgument, std::move(what)).WithRemedy(std::move(remedy));
}

Result<sandbox::MountSpec> ReadMount(const std::string& text) {
  const std::string remedy =
      "write --mount SRC:DST or SRC:DST:ro with two absolute paths, e.g. "
      "/srv/data:/workspace/data:ro";
  const size_t first = text.find(':');
  if (first == std::string::npos || first == 0)
    return Bad("--mount " + Quoted(text) + " has no source and target", remedy);
  const size_t second = text.find(':', first + 1);
  sandbox::MountSpec mount{
      text.substr(0, first),
      text.substr(first + 1, second == std::string::npos ? second : second - first - 1),
      sandbox::MountMode::kReadWrite};
  if (second != std::string::npos) {
    const std::string mode = text.substr(second + 1);
    if (mode != "ro" && mode != "rw")
      return Bad("--mount " + Quoted(text) + " ends in neither :ro nor :rw", remedy);
    if (mode == "ro") mount.mode = sandbox::MountMode::kReadOnly;
  }
  if (mount.source[0] == '.' &&
      (mount.source.size() == 1 || mount.source[1] == '/')) {  // ./here is a path, too
    char* absolute = realpath(mount.source.c_str(), nullptr);
    if (absolute != nullptr) mount.source = absolute;
    free(absolute);
  }
  if (mount.source[0] != '/' || mount.target.empty() || mount.target[0] != '/')
    return Bad("--mount " + Quoted(text) + " needs absolute paths", remedy);
  return mount;
}

Status ReadEnv(const Parsed& parsed, sandbox::SandboxSpec& spec) {
  for (const auto& text : parsed.All<std::string>("env")) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos)
      return Bad("--env " + Quoted(text) + " is no NAME=VALUE", "write e.g. --env LEVEL=3");
    spec.env[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return {};
}

void ReadLimits(const Parsed& parsed, sandbox::Limits& limits) {
  auto number = [&](const char* name) -> std::optional<uint64_t> {
    const auto value = parsed.Get<int64_t>(name);
    return value ? std::optional<uint64_t>(static_cast<uint64_t>(*value)) : std::nullopt;
  };
  limits.memory_bytes = parsed.Get<uint64_t>("memory");
  limits.swap_bytes = parsed.Get<uint64_t>("swap");
  limits.cpu_millis = parsed.Get<uint32_t>("cpus");
  if (const auto pids = number("pids")) limits.pids = static_cast<uint32_t>(*pids);
  limits.disk_bytes = parsed.Get<uint64_t>("disk");
  limits.disk_inodes = number("inodes");
  if (const auto files = number("files")) limits.open_files = static_cast<uint32_t>(*files);
  limits.io_read_bps = parsed.Get<uint64_t>("io-read");
  limits.io_write_bps = parsed.Get<uint64_t>("io-write");
  if (const auto share = parsed.Get<uint32_t>("memory-bandwidth"))
    limits.memory_bandwidth_percent = *share / 100;
  if (const auto time = parsed.Get<std::chrono::nanoseconds>("timeout"))
    limits.wall_time = std::chrono::duration_cast<std::chrono::milliseconds>(*time);
  limits.output_bytes = parsed.Get<uint64_t>("output");
}

}  // namespace

std::span<const Option> ExecOptions() { return kOptions; }

Result<ExecRequest> ReadExecRequest(const Parsed& parsed) {
  ExecRequest request;
  auto& spec = request.sandbox;
  request.command.argv = parsed.All<std::string>("command");
  if (request.command.argv.empty())
    return Bad("there is no command to run",
               "give one after --, for example: caisson exec -- python3 -c 'print(1)'");
  spec.profile = *parsed.Get<std::string>("profile") == "strict" ? sandbox::Profile::kStrict
                                                                 : sandbox::Profile::kDefault;
  spec.min_isolation = *sandbox::ParseIsolation(*parsed.Get<std::string>("min-isolation"));
  spec.rootfs = parsed.Get<std::string>("rootfs").value_or("");
  spec.hostname = parsed.Get<std::string>("hostname").value_or("");
  // A strict sandbox is one user wholly; a default one can run each command as another.
  const std::string user = parsed.Get<std::string>("user").value_or("");
  if (spec.profile == sandbox::Profile::kStrict)
    spec.user = user;
  else
    request.command.user = user;
  for (const auto& text : parsed.All<std::string>("mount")) {
    CAISSON_ASSIGN(auto mount, ReadMount(text));
    spec.mounts.push_back(std::move(mount));
  }
  const std::string backend = *parsed.Get<std::string>("disk-backend");
  spec.disk_backend = backend == "tmpfs"   ? sandbox::DiskBackend::kTmpfs
                      : backend == "loop"  ? sandbox::DiskBackend::kLoop
                      : backend == "quota" ? sandbox::DiskBackend::kQuota
                                           : sandbox::DiskBackend::kAuto;
  CAISSON_TRY(ReadEnv(parsed, spec));
  ReadLimits(parsed, spec.limits);
  request.command.cwd = parsed.Get<std::string>("cwd").value_or("");
  request.stats = parsed.Flag("stats");
  request.json = parsed.Flag("json");
  const std::string tty = *parsed.Get<std::string>("tty");
  const bool terminal = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  if (!request.json && (tty == "on" || (tty == "auto" && terminal)))
    request.command.stdio = sandbox::Stdio::kPty;
  return request;
}

}  // namespace caisson::cli
