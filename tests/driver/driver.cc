// driver: the engine on a string, for tests. One JSON request per line on stdin, one answer per
// line on stdout, in order. `--keep` leaves sandboxes to the next driver with the same
// CAISSON_HOME.
#include <unistd.h>

#include <boost/json.hpp>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>

#include "async/watch.h"
#include "base/utf8.h"
#include "providers/native/native_provider.h"
#include "sandbox/run.h"

namespace json = boost::json;
using caisson::Error;
using caisson::Result;
using caisson::Status;
using caisson::Task;
namespace sandbox = caisson::sandbox;

namespace {

constexpr char kBase64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string FromBase64(std::string_view in) {
  std::string out;
  uint32_t word = 0;
  int bits = 0;
  for (const char c : in) {
    const char* at = std::strchr(kBase64, c);
    if (c == '=' || at == nullptr) break;
    word = (word << 6) | static_cast<uint32_t>(at - kBase64);
    if ((bits += 6) >= 8) out += static_cast<char>((word >> (bits -= 8)) & 0xff);
  }
  return out;
}

// Bytes as JSON text; the exact bytes go beside as base64 where they matter.
std::string ToText(std::string_view bytes) { return caisson::ToUtf8(bytes); }
using caisson::ToBase64;

json::object ErrorAnswer(const Error& error) {
  return {{"ok", false},
          {"error",
           {{"code", error.name()},
            {"message", ToText(error.message())},
            {"remedy", ToText(error.remedy())}}}};
}

template <typename T>
std::optional<T> Number(const json::object& o, const char* name) {
  const auto* value = o.if_contains(name);
  if (value == nullptr || value->is_null()) return std::nullopt;
  if (value->is_double()) return static_cast<T>(value->as_double());
  return value->to_number<T>();
}
std::string Text(const json::object& o, const char* name) {
  const auto* value = o.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : "";
}
bool Flag(const json::object& o, const char* name) {
  const auto* value = o.if_contains(name);
  return value != nullptr && value->is_bool() && value->as_bool();
}

sandbox::Limits ReadLimits(const json::object& o) {
  sandbox::Limits limits;
  limits.memory_bytes = Number<uint64_t>(o, "memory");
  limits.swap_bytes = Number<uint64_t>(o, "swap");
  if (const auto* cpus = o.if_contains("cpus"); cpus != nullptr && !cpus->is_null())
    limits.cpu_millis = static_cast<uint32_t>(cpus->to_number<double>() * 1000);
  limits.pids = Number<uint32_t>(o, "pids");
  limits.disk_bytes = Number<uint64_t>(o, "disk");
  limits.disk_inodes = Number<uint64_t>(o, "inodes");
  limits.open_files = Number<uint32_t>(o, "open_files");
  limits.io_write_bps = Number<uint64_t>(o, "io_write_bps");
  limits.io_read_bps = Number<uint64_t>(o, "io_read_bps");
  limits.memory_bandwidth_percent = Number<uint32_t>(o, "memory_bandwidth");
  if (auto ms = Number<int64_t>(o, "timeout_ms")) limits.wall_time = std::chrono::milliseconds(*ms);
  limits.output_bytes = Number<uint64_t>(o, "output_limit");
  return limits;
}

json::array LimitsJson(const std::vector<sandbox::LimitState>& limits) {
  json::array out;
  for (const auto& l : limits)
    out.push_back(json::object{{"name", l.name},
                               {"enforced", l.enforced},
                               {"value", l.value},
                               {"by", l.by},
                               {"reason", l.reason}});
  return out;
}

json::object FileJson(const sandbox::FileInfo& info) {
  return {{"name", ToText(info.name)}, {"name_b64", ToBase64(info.name)},
          {"mode", info.mode},         {"uid", info.uid},
          {"gid", info.gid},           {"size", info.size},
          {"links", info.links},       {"inode", info.inode},
          {"mtime_ns", info.mtime_ns}, {"target", ToText(info.target)}};
}

json::object StatsJson(const sandbox::SandboxStats& s) {
  return {{"ok", true},
          {"memory", s.memory_bytes},
          {"memory_peak", s.memory_peak_bytes},
          {"oom_kills", s.oom_kills},
          {"cpu_us", s.cpu.count()},
          {"throttled_us", s.cpu_throttled.count()},
          {"pids", s.pids},
          {"pids_limit_hits", s.pids_limit_hits},
          {"disk", s.disk_bytes},
          {"disk_used", s.disk_used_bytes},
          {"inodes", s.disk_inodes},
          {"inodes_used", s.disk_used_inodes},
          {"io_read", s.io_read_bytes},
          {"io_write", s.io_write_bytes}};
}

json::object ResultJson(const sandbox::ExecResult& r) {
  const auto& o = r.outcome;
  return {{"ok", true},
          {"exit_code", o.exit_code},
          {"signal", o.signal},
          {"stdout", ToText(r.out)},
          {"stderr", ToText(r.err)},
          {"stdout_b64", ToBase64(r.out)},
          {"outcome", {{"status", NameOf(o.status)}, {"reason", o.reason}}},
          {"usage",
           {{"user_us", o.usage.user_cpu.count()},
            {"system_us", o.usage.system_cpu.count()},
            {"wall_ns", o.usage.wall.count()},
            {"max_rss", o.usage.max_rss_bytes},
            {"memory_peak", o.usage.memory_peak_bytes},
            {"stdout_bytes", o.usage.stdout_bytes},
            {"stderr_bytes", o.usage.stderr_bytes},
            {"dropped_bytes", o.usage.dropped_bytes}}}};
}

sandbox::ExecSpec ReadExec(const json::object& o) {
  sandbox::ExecSpec spec;
  if (const auto* argv = o.if_contains("argv"))
    for (const auto& a : argv->as_array()) spec.argv.emplace_back(a.as_string());
  if (const auto* env = o.if_contains("env"); env != nullptr && env->is_object())
    for (const auto& [k, v] : env->as_object())
      spec.env[std::string(k)] = std::string(v.as_string());
  spec.cwd = Text(o, "cwd");
  spec.user = Text(o, "user");
  spec.label = Text(o, "label");
  if (Text(o, "stdio") == "pty") spec.stdio = sandbox::Stdio::kPty;
  if (Text(o, "overflow") == "drop") spec.on_overflow = sandbox::OnOverflow::kDropOldest;
  if (auto ms = Number<int64_t>(o, "timeout_ms")) spec.timeout = std::chrono::milliseconds(*ms);
  spec.output_limit = Number<uint64_t>(o, "output_limit");
  return spec;
}

class Driver {
 public:
  explicit Driver(caisson::sandbox::Provider& provider) : provider_(provider) {}

  Task<json::object> Handle(json::object request) {
    const std::string op = Text(request, "op");
    if (op == "create") co_return co_await Create(request.at("spec").as_object());
    if (op == "list" && !request.contains("id")) {
      auto ids = co_await provider_.List();
      if (!ids) co_return ErrorAnswer(ids.error());
      json::array out;
      for (const auto& id : *ids) out.emplace_back(id);
      co_return json::object{{"ok", true}, {"ids", out}};
    }
    const std::string id = Text(request, "id");
    if (op == "adopt") {
      auto adopted = co_await provider_.Adopt(id);
      if (!adopted) co_return ErrorAnswer(adopted.error());
      boxes_[id] = *std::move(adopted);
      co_return json::object{{"ok", true}, {"id", id}};
    }
    const auto found = boxes_.find(id);
    if (found == boxes_.end())
      co_return ErrorAnswer(Error(caisson::ErrorCode::kNotFound, "no sandbox " + id));
    if (op.starts_with("file.")) co_return co_await FileOp(*found->second, op.substr(5), request);
    co_return co_await BoxOp(*found->second, op, request);
  }

 private:
  Task<json::object> Create(json::object o) {
    sandbox::SandboxSpec spec;
    spec.profile =
        Text(o, "profile") == "strict" ? sandbox::Profile::kStrict : sandbox::Profile::kDefault;
    spec.rootfs = Text(o, "rootfs");
    spec.user = Text(o, "user");
    spec.hostname = Text(o, "hostname");
    spec.limits = ReadLimits(o);
    const std::string backend = Text(o, "disk_backend");
    spec.disk_backend = backend == "tmpfs"   ? sandbox::DiskBackend::kTmpfs
                        : backend == "loop"  ? sandbox::DiskBackend::kLoop
                        : backend == "quota" ? sandbox::DiskBackend::kQuota
                                             : sandbox::DiskBackend::kAuto;
    if (const auto* mounts = o.if_contains("mounts"))
      for (const auto& m : mounts->as_array())
        spec.mounts.push_back({Text(m.as_object(), "source"), Text(m.as_object(), "target"),
                               Text(m.as_object(), "mode") == "rw"
                                   ? sandbox::MountMode::kReadWrite
                                   : sandbox::MountMode::kReadOnly});
    const auto before = std::chrono::steady_clock::now();
    auto created = co_await provider_.Create(std::move(spec));
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - before);
    if (!created) co_return ErrorAnswer(created.error());
    json::object isolation;
    for (const auto& fact : (*created)->report().isolation) isolation[fact.name] = fact.value;
    isolation["level"] = (*created)->report().level;
    json::object answer{{"ok", true},
                        {"id", (*created)->id()},
                        {"isolation", isolation},
                        {"limits", LimitsJson((*created)->report().limits)},
                        {"timing_us", took.count()}};
    const std::string id = (*created)->id();
    boxes_[id] = *std::move(created);
    co_return answer;
  }

  Task<json::object> BoxOp(sandbox::Sandbox& box, std::string op, json::object o) {
    if (op == "exec") {
      auto result = co_await sandbox::Run(&box, ReadExec(o), Text(o, "stdin"));
      co_return result ? ResultJson(*result) : ErrorAnswer(result.error());
    }
    if (op == "start") {
      auto spec = ReadExec(o);
      spec.stdin_kind =
          Flag(o, "stdin_open") ? sandbox::StdinKind::kOpen : sandbox::StdinKind::kNull;
      auto process = co_await box.Start(std::move(spec));
      if (!process) co_return ErrorAnswer(process.error());
      const uint32_t handle = (*process)->handle();
      json::object answer{{"ok", true}, {"process", handle}, {"pid", (*process)->pid()}};
      processes_[{box.id(), handle}] = *std::move(process);
      co_return answer;
    }
    if (op == "attach") {
      const auto handle = *Number<uint32_t>(o, "process");
      auto process = co_await box.Attach(handle, Number<uint64_t>(o, "stdout_from").value_or(0),
                                         Number<uint64_t>(o, "stderr_from").value_or(0));
      if (!process) co_return ErrorAnswer(process.error());
      processes_[{box.id(), handle}] = *std::move(process);
      co_return json::object{{"ok", true}, {"process", handle}};
    }
    if (op == "wait" || op == "signal" || op == "input" || op == "resize")
      co_return co_await ProcessOp(box, op, std::move(o));
    if (op == "processes") {
      auto list = co_await box.Processes();
      if (!list) co_return ErrorAnswer(list.error());
      json::array out;
      for (const auto& p : *list)
        out.push_back(json::object{{"process", p.handle},
                                   {"pid", p.pid},
                                   {"ended", p.ended},
                                   {"command", ToText(p.command)},
                                   {"label", p.label},
                                   {"stdout_begin", p.stdout_begin},
                                   {"stdout_end", p.stdout_end}});
      co_return json::object{{"ok", true}, {"processes", out}};
    }
    if (op == "update") {
      auto states = co_await box.Update(ReadLimits(o.at("limits").as_object()));
      if (!states) co_return ErrorAnswer(states.error());
      co_return json::object{{"ok", true}, {"limits", LimitsJson(*states)}};
    }
    if (op == "pause" || op == "resume") {
      Status done = op == "pause" ? co_await box.Pause() : co_await box.Resume();
      co_return done ? json::object{{"ok", true}} : ErrorAnswer(done.error());
    }
    if (op == "stats" || op == "destroy") {
      auto stats = op == "stats" ? co_await box.Stats() : co_await box.Destroy();
      if (op == "destroy") {
        const std::string id = box.id();
        std::erase_if(processes_, [&](const auto& item) { return item.first.first == id; });
        boxes_.erase(id);
      }
      co_return stats ? StatsJson(*stats) : ErrorAnswer(stats.error());
    }
    co_return ErrorAnswer(Error(caisson::ErrorCode::kInvalidArgument, "unknown op " + op));
  }

  Task<json::object> ProcessOp(sandbox::Sandbox& box, std::string op, json::object o) {
    const auto key = std::make_pair(box.id(), Number<uint32_t>(o, "process").value_or(0));
    const auto found = processes_.find(key);
    if (found == processes_.end())
      co_return ErrorAnswer(Error(caisson::ErrorCode::kNotFound, "no such process"));
    auto& process = *found->second;
    Status done;
    if (op == "wait") {
      sandbox::ExecResult result;
      for (;;) {
        auto event = co_await process.Next();
        if (!event) co_return ErrorAnswer(event.error());
        if (auto* chunk = std::get_if<sandbox::OutputChunk>(&*event)) {
          (chunk->stream == sandbox::Stream::kStdout ? result.out : result.err) += chunk->data;
          continue;
        }
        result.outcome = std::get<sandbox::ExecOutcome>(*event);
        break;
      }
      processes_.erase(key);
      (void)co_await box.Release(key.second);
      co_return ResultJson(result);
    }
    if (op == "signal") {
      const std::string scope = Text(o, "scope");
      done = co_await process.Signal(*Number<int>(o, "signal"),
                                     scope == "process" ? sandbox::SignalScope::kProcess
                                     : scope == "group" ? sandbox::SignalScope::kGroup
                                                        : sandbox::SignalScope::kTree);
    } else if (op == "input") {
      if (!Text(o, "data").empty()) done = co_await process.Write(Text(o, "data"));
      if (done && Flag(o, "eof")) done = co_await process.CloseStdin();
    } else {
      done = co_await process.Resize(*Number<uint16_t>(o, "rows"), *Number<uint16_t>(o, "cols"));
    }
    co_return done ? json::object{{"ok", true}} : ErrorAnswer(done.error());
  }

  Task<json::object> FileOp(sandbox::Sandbox& box, std::string op, json::object o) {
    auto& files = box.files();
    const std::string user = Text(o, "user");
    std::string path = o.contains("path_b64") ? FromBase64(Text(o, "path_b64")) : Text(o, "path");
    if (op == "read") {
      auto file = co_await files.OpenRead(path, user);
      if (!file) co_return ErrorAnswer(file.error());
      std::string all;
      for (;;) {
        auto data = co_await (*file)->Read(all.size(), 65536);
        if (!data) co_return ErrorAnswer(data.error());
        if (data->empty()) break;
        all += *data;
      }
      co_return json::object{{"ok", true}, {"data_b64", ToBase64(all)}};
    }
    if (op == "write") {
      auto file = co_await files.OpenWrite(
          path, user,
          Flag(o, "in_place") ? sandbox::WriteMode::kInPlace : sandbox::WriteMode::kReplace, 0644,
          Flag(o, "parents") ? sandbox::Parents::kMake : sandbox::Parents::kMustExist);
      if (!file) co_return ErrorAnswer(file.error());
      Status done = co_await (*file)->Write(0, FromBase64(Text(o, "data_b64")));
      if (done) done = co_await (*file)->Commit();
      co_return done ? json::object{{"ok", true}} : ErrorAnswer(done.error());
    }
    if (op == "stat") {
      auto info = co_await files.Stat(
          path, user, Flag(o, "follow") ? sandbox::Follow::kYes : sandbox::Follow::kNo);
      if (!info) co_return ErrorAnswer(info.error());
      json::object answer = FileJson(*info);
      answer["ok"] = true;
      co_return answer;
    }
    if (op == "list") {
      json::array entries;
      uint64_t cursor = 0;
      do {
        auto page = co_await files.List(path, user, cursor, 256);
        if (!page) co_return ErrorAnswer(page.error());
        for (const auto& entry : page->entries) entries.push_back(FileJson(entry));
        cursor = page->next;
      } while (cursor != 0);
      co_return json::object{{"ok", true}, {"entries", entries}};
    }
    Status done = Error(caisson::ErrorCode::kInvalidArgument, "unknown file op " + op);
    if (op == "mkdir")
      done = co_await files.Mkdir(
          path, user, 0755,
          Flag(o, "parents") ? sandbox::Parents::kMake : sandbox::Parents::kMustExist);
    if (op == "move")
      done = co_await files.Move(
          Text(o, "from"), Text(o, "to"), user,
          Flag(o, "replace") ? sandbox::Existing::kReplace : sandbox::Existing::kKeep);
    if (op == "remove")
      done = co_await files.Remove(
          path, user, Flag(o, "recursive") ? sandbox::Recursion::kYes : sandbox::Recursion::kNo);
    if (op == "symlink") done = co_await files.Symlink(Text(o, "target"), path, user);
    co_return done ? json::object{{"ok", true}} : ErrorAnswer(done.error());
  }

  sandbox::Provider& provider_;
  std::map<std::string, std::unique_ptr<sandbox::Sandbox>> boxes_;
  std::map<std::pair<std::string, uint32_t>, std::unique_ptr<sandbox::Process>> processes_;
};

void Say(const json::object& answer) { std::cout << json::serialize(answer) << '\n' << std::flush; }

// The next line of stdin; nothing at its end.
Task<std::optional<std::string>> ReadLine(caisson::async::Watch* input, std::string* buffer) {
  for (;;) {
    if (const size_t end = buffer->find('\n'); end != std::string::npos) {
      std::string line = buffer->substr(0, end);
      buffer->erase(0, end + 1);
      co_return line;
    }
    co_await input->Readable();
    char piece[65536];
    const ssize_t got = read(STDIN_FILENO, piece, sizeof piece);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got <= 0) co_return std::nullopt;
    buffer->append(piece, static_cast<size_t>(got));
  }
}

Task<void> Main(caisson::async::Loop* loop, caisson::native::Keeping keeping) {
  auto provider = co_await caisson::native::NativeProvider::Open(
      loop, caisson::native::LauncherPaths::FromEnvironment(), keeping);
  caisson::async::Watch input(*loop, STDIN_FILENO);
  std::string buffer;
  std::optional<Driver> driver;
  if (provider) driver.emplace(**provider);
  while (const auto line = co_await ReadLine(&input, &buffer)) {
    json::object request;
    try {
      request = json::parse(*line).as_object();
    } catch (const std::exception& e) {
      Say(ErrorAnswer(Error(caisson::ErrorCode::kInvalidArgument, e.what())));
      continue;
    }
    if (Text(request, "op") == "quit") break;
    if (!provider) {
      Say(ErrorAnswer(provider.error()));
    } else if (Text(request, "op") == "shutdown") {
      Status done = co_await (*provider)->Shutdown();
      Say(done ? json::object{{"ok", true}} : ErrorAnswer(done.error()));
    } else {
      Say(co_await driver->Handle(std::move(request)));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  caisson::async::Loop loop;
  const bool keep = argc > 1 && std::strcmp(argv[1], "--keep") == 0;
  loop.RunUntilDone(
      Main(&loop, keep ? caisson::native::Keeping::kKeep : caisson::native::Keeping::kEphemeral));
  return 0;
}
