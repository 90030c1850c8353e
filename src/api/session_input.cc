#include "api/session_input.h"

#include <signal.h>
#include <string.h>

#include <charconv>

#include "base/encoding.h"
#include "json/reader.h"

namespace caisson::api {
namespace {

using sandbox::Limits;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr json::Choice<sandbox::Profile> kProfiles[] = {{"default", sandbox::Profile::kDefault},
                                                        {"strict", sandbox::Profile::kStrict}};
constexpr json::Choice<sandbox::IsolationLevel> kLevels[] = {
    {"any", sandbox::IsolationLevel::kAny},
    {"namespaces-rootless", sandbox::IsolationLevel::kNamespacesRootless},
    {"namespaces", sandbox::IsolationLevel::kNamespaces}};
constexpr json::Choice<sandbox::OnOverflow> kOverflows[] = {
    {"block", sandbox::OnOverflow::kBlock}, {"drop_oldest", sandbox::OnOverflow::kDropOldest}};

std::optional<milliseconds> ToMilliseconds(std::optional<nanoseconds> time) {
  if (!time) return std::nullopt;
  return std::chrono::ceil<milliseconds>(*time);
}

Limits ReadLimits(json::Reader& in) {
  Limits limits;
  limits.memory_bytes = in.OptionalSize("memory", {.min = 1});
  limits.swap_bytes = in.OptionalSize("swap");
  limits.cpu_millis = in.OptionalCpus("cpus", {.min = 1});
  limits.pids = in.Optional<uint32_t>("pids", {.min = 1});
  limits.disk_bytes = in.OptionalSize("disk", {.min = 1});
  limits.disk_inodes = in.Optional<uint64_t>("inodes", {.min = 1});
  limits.open_files = in.Optional<uint32_t>("open_files", {.min = 1});
  limits.io_read_bps = in.OptionalSize("io_read", {.min = 1});
  limits.io_write_bps = in.OptionalSize("io_write", {.min = 1});
  limits.io_read_iops = in.Optional<uint64_t>("io_read_ops", {.min = 1});
  limits.io_write_iops = in.Optional<uint64_t>("io_write_ops", {.min = 1});
  limits.memory_bandwidth_percent =
      in.Optional<uint32_t>("memory_bandwidth", {.min = 1, .max = 100});
  limits.wall_time = ToMilliseconds(in.OptionalDuration("wall_time", {.min = nanoseconds(1)}));
  limits.output_bytes = in.OptionalSize("output", {.min = 1});
  return limits;
}

void ReadScaling(json::Reader& in, sandbox::ScalingSpec& scaling) {
  in.OptionalObject("memory", [&](json::Reader& memory) {
    scaling.memory_floor = memory.OptionalSize("floor", {.min = 1}).value_or(0);
    scaling.memory_ceiling = memory.OptionalSize("ceiling", {.min = 1}).value_or(0);
  });
  in.OptionalObject("cpus", [&](json::Reader& cpus) {
    scaling.cpu_floor = cpus.OptionalCpus("floor", {.min = 1}).value_or(0);
    scaling.cpu_ceiling = cpus.OptionalCpus("ceiling", {.min = 1}).value_or(0);
  });
}

// `command` is given to a shell; `argv` is run as it is.
void ReadCommand(json::Reader& in, sandbox::ExecSpec& spec) {
  const auto command = in.Optional<std::string>("command", {.min = 1});
  auto argv = in.OptionalList<std::string>("argv", {.min = 1});
  if (command && argv)
    in.Refuse("argv", "is given together with \"command\"", "give one of the two");
  else if (command)
    spec.argv = {"/bin/sh", "-c", *command};
  else if (argv)
    spec.argv = *std::move(argv);
  else
    in.Refuse("command", "is missing", "give \"command\" (for a shell) or \"argv\" (a list)");
}

void ReadInput(json::Reader& in, std::string& input) {
  const auto text = in.Optional<std::string>("stdin");
  const auto encoded = in.Optional<std::string>("stdin_base64");
  if (text && encoded) {
    in.Refuse("stdin_base64", "is given together with \"stdin\"", "give one of the two");
  } else if (encoded) {
    auto bytes = FromBase64(*encoded);
    if (!bytes) in.Refuse("stdin_base64", "is not base64", "encode it as RFC 4648 has it");
    input = std::move(bytes).value_or("");
  } else {
    input = text.value_or("");
  }
}

void ReadPty(json::Reader& in, sandbox::ExecSpec& spec) {
  if (in.Optional<bool>("pty").value_or(false)) spec.stdio = sandbox::Stdio::kPty;
  spec.rows = static_cast<uint16_t>(
      in.Optional<uint32_t>("rows", {.min = 1, .max = 1000}).value_or(spec.rows));
  spec.cols = static_cast<uint16_t>(
      in.Optional<uint32_t>("cols", {.min = 1, .max = 1000}).value_or(spec.cols));
}

}  // namespace

Result<sandbox::SessionSpec> ReadSessionSpec(const json::Value& body) {
  json::Reader in(body);
  sandbox::SessionSpec spec;
  spec.environment =
      in.Optional<std::string>("environment", {.min = 1, .max = 256}).value_or("host");
  spec.provider = in.Optional<std::string>("provider", {.max = 64}).value_or("");
  spec.profile =
      in.OptionalEnum<sandbox::Profile>("profile", kProfiles).value_or(sandbox::Profile::kDefault);
  spec.min_isolation = in.OptionalEnum<sandbox::IsolationLevel>("min_isolation", kLevels)
                           .value_or(sandbox::IsolationLevel::kAny);
  spec.user = in.Optional<std::string>("user", {.max = 64}).value_or("");
  in.OptionalObject("limits", [&](json::Reader& limits) { spec.limits = ReadLimits(limits); });
  spec.network = in.Optional<std::string>("network", {.max = 64}).value_or("none");
  spec.env = in.OptionalMap("env").value_or(sandbox::StringMap());
  spec.metadata = in.OptionalMap("metadata").value_or(sandbox::StringMap());
  spec.labels = in.OptionalMap("labels").value_or(sandbox::StringMap());
  spec.name = in.Optional<std::string>("name").value_or("");
  if (const auto timeout = in.OptionalDuration("timeout", {.min = nanoseconds(1)}))
    spec.timeout = std::chrono::ceil<milliseconds>(*timeout);
  spec.artifacts =
      in.OptionalList<std::string>("artifacts", {.max = 64}).value_or(std::vector<std::string>());
  in.OptionalObject("scaling", [&](json::Reader& scaling) { ReadScaling(scaling, spec.scaling); });
  if (!in.Optional<bool>("warm").value_or(true)) spec.warm = sandbox::WarmUse::kNever;
  spec.queue = ToMilliseconds(in.OptionalDuration("queue", {.min = nanoseconds(0)}));
  CAISSON_TRY(in.Finish());
  return spec;
}

Result<sandbox::SessionPatch> ReadSessionPatch(const json::Value& body) {
  json::Reader in(body);
  sandbox::SessionPatch patch;
  patch.timeout = ToMilliseconds(in.OptionalDuration("timeout", {.min = nanoseconds(1)}));
  in.OptionalObject("limits", [&](json::Reader& limits) { patch.limits = ReadLimits(limits); });
  patch.metadata = in.OptionalMap("metadata");
  patch.labels = in.OptionalMap("labels");
  CAISSON_TRY(in.Finish());
  return patch;
}

Result<ExecInput> ReadExec(const json::Value& body) {
  json::Reader in(body);
  ExecInput exec;
  sandbox::ExecSpec& spec = exec.request.spec;
  ReadCommand(in, spec);
  ReadInput(in, exec.request.input);
  ReadPty(in, spec);
  spec.env = in.OptionalMap("env").value_or(sandbox::StringMap());
  spec.cwd = in.Optional<std::string>("cwd", {.max = 4096}).value_or("");
  spec.user = in.Optional<std::string>("user", {.max = 64}).value_or("");
  spec.label = in.Optional<std::string>("label", {.max = 256}).value_or("");
  spec.timeout = ToMilliseconds(in.OptionalDuration("timeout", {.min = nanoseconds(1)}));
  spec.output_limit = in.OptionalSize("output_limit", {.min = 1});
  const auto overflow = in.OptionalEnum<sandbox::OnOverflow>("on_overflow", kOverflows);
  spec.on_overflow = overflow.value_or(sandbox::OnOverflow::kBlock);
  exec.request.artifacts =
      in.OptionalList<std::string>("artifacts", {.max = 64}).value_or(std::vector<std::string>());
  const bool background = in.Optional<bool>("background").value_or(false);
  // A stdin that stays open is of use only to a command that somebody can send input to.
  const bool open = in.Optional<bool>("stdin_open").value_or(false);
  if (open && !exec.request.input.empty())
    in.Refuse("stdin_open", "is given together with input",
              "send the input to the process instead");
  if (overflow && !background)
    in.Refuse("on_overflow", "is for background commands",
              "leave it out: whoever waits for a command gets all of its output");
  if (background && !exec.request.artifacts.empty())
    in.Refuse("artifacts", "cannot be kept for a background command",
              "declare them for the session, or wait for the command");
  CAISSON_TRY(in.Finish());
  if (open) spec.stdin_kind = sandbox::StdinKind::kOpen;
  if (background) exec.manner = ExecManner::kBackground;
  return exec;
}

Result<int> SignalFrom(const json::Value& value) {
  if (value.is_int64() && value.as_int64() >= 1 && value.as_int64() < NSIG)
    return static_cast<int>(value.as_int64());
  if (value.is_string()) {
    std::string_view name(value.as_string().data(), value.as_string().size());
    if (name.starts_with("SIG")) name.remove_prefix(3);
    for (int number = 1; number < NSIG; ++number) {
      const char* known = sigabbrev_np(number);
      if (known != nullptr && name == known) return number;
    }
  }
  return Error(ErrorCode::kInvalidArgument, "signal: " + json::Write(value) + " is no signal")
      .WithRemedy("give a name such as \"SIGTERM\" or a number from 1 to 64");
}

Result<uint32_t> ParseHandle(const std::string& text) {
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return Error(ErrorCode::kNotFound, "there is no process \"" + text + "\"")
        .WithRemedy("give a process_id that the session lists");
  return value;
}

}  // namespace caisson::api
