#include "sandbox/session_log.h"

#include <algorithm>

#include "base/utf8.h"
#include "json/json.h"

namespace caisson::sandbox {
namespace {

constexpr auto kArea = store::BlobArea::kSessions;
constexpr const char* kFile = "log.jsonl";
constexpr const char* kOlderFile = "log.jsonl.1";
constexpr uint32_t kScanBytes = 256 * 1024;

json::Object Line(WallTime time, uint32_t process, std::string_view event) {
  return {{"time_ms", time.time_since_epoch().count()}, {"process", process}, {"event", event}};
}

std::string_view NameOf(Stream stream) { return stream == Stream::kStdout ? "stdout" : "stderr"; }

std::string TextOf(const json::Object& object, std::string_view name) {
  const json::Value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->as_string()) : "";
}

uint64_t NumberOf(const json::Object& object, std::string_view name) {
  const json::Value* value = object.if_contains(name);
  return value != nullptr && value->is_int64() ? static_cast<uint64_t>(value->as_int64()) : 0;
}

// Both files read as one.
Result<std::string> ReadFiles(store::Blobs& blobs, const std::string& session_id, uint64_t offset,
                              uint32_t max) {
  std::string data;
  for (const char* name : {kOlderFile, kFile}) {
    auto file = blobs.Open(kArea, session_id, name);
    if (!file && file.error().code() == ErrorCode::kNotFound) continue;
    if (!file) return std::move(file).error();
    const auto size = static_cast<uint64_t>(file->size());
    if (offset >= size) {
      offset -= size;
      continue;
    }
    CAISSON_ASSIGN(const std::string piece,
                   file->ReadAt(static_cast<int64_t>(offset), max - data.size()));
    data += piece;
    offset = 0;
    if (data.size() >= max) break;
  }
  return data;
}

}  // namespace

SessionLog::SessionLog(async::Loop& loop, store::Blobs& blobs, LogOptions options)
    : loop_(loop),
      options_(options),
      blobs_(blobs),
      shared_(std::make_shared<Shared>()),
      tasks_(loop) {}

SessionLog::~SessionLog() = default;

void SessionLog::Append(const std::string& session_id, std::string line) {
  line += '\n';
  if (shared_->waiting + line.size() > options_.waiting_bytes) {
    ++dropped_;
    return;
  }
  shared_->waiting += line.size();
  writer_.Submit([shared = shared_, blobs = &blobs_, session_id, line = std::move(line),
                  rotate = static_cast<int64_t>(options_.file_bytes)] {
    if (!blobs->AppendLog(kArea, session_id, kFile, line, rotate)) ++shared->failed;
    shared->waiting -= line.size();
  });
}

void SessionLog::AppendStart(const std::string& session_id, const ProcessFeed& process) {
  json::Object line = Line(process.facts().started, process.handle(), "started");
  line["command"] = ToUtf8(process.facts().command);
  Append(session_id, json::Write(line));
}

void SessionLog::Follow(const Session& session, std::shared_ptr<ProcessFeed> process) {
  if (process->facts().origin == ProcessOrigin::kAdopted)
    return tasks_.Spawn(AdoptTask(session.id(), std::move(process)));
  AppendStart(session.id(), *process);
  auto output = process->Subscribe(Pace::kFollows, {});
  tasks_.Spawn(
      FollowTask(session.id(), std::move(process), std::move(output), options_.command_bytes));
}

Task<void> SessionLog::AdoptTask(std::string session_id, std::shared_ptr<ProcessFeed> process) {
  const auto scanned = co_await async::Offload(
      &loop_, &writer_, [blobs = &blobs_, session_id, handle = process->handle()] {
        return Scan(*blobs, session_id, handle);
      });
  const Logged logged = scanned ? *scanned : Logged();
  if (logged.ended) co_return;
  if (!logged.started) AppendStart(session_id, *process);
  std::unique_ptr<ProcessFeed::Subscription> output;
  const uint64_t room = options_.command_bytes - std::min(options_.command_bytes, logged.bytes);
  if (room > 0) output = process->Subscribe(Pace::kFollows, logged.end);
  co_await FollowTask(std::move(session_id), std::move(process), std::move(output), room);
}

Task<void> SessionLog::FollowTask(std::string session_id, std::shared_ptr<ProcessFeed> process,
                                  std::unique_ptr<ProcessFeed::Subscription> output,
                                  uint64_t room) {
  while (output) {
    const auto item = co_await output->Next();
    if (!item) break;
    if (const auto* chunk = std::get_if<OutputChunk>(&*item)) {
      const uint64_t kept = std::min<uint64_t>(room, chunk->data.size());
      json::Object line = Line(SystemTime(), process->handle(), NameOf(chunk->stream));
      line["offset"] = chunk->offset;
      line["end"] = chunk->offset + kept;
      line["data"] = ToUtf8(std::string_view(chunk->data).substr(0, kept));
      if (chunk->data.size() > room) line["cut"] = true;
      room -= kept;
      Append(session_id, json::Write(line));
      if (room == 0) output.reset();
    } else if (const auto* gap = std::get_if<OutputGap>(&*item)) {
      json::Object line = Line(SystemTime(), process->handle(), "gap");
      line["stream"] = NameOf(gap->stream);
      line["from"] = gap->from;
      line["to"] = gap->to;
      Append(session_id, json::Write(line));
    }
  }
  const ExecOutcome outcome = co_await process->Wait();
  json::Object line = Line(SystemTime(), process->handle(), "ended");
  line["status"] = NameOf(outcome.status);
  line["reason"] = outcome.reason;
  line["exit_code"] = outcome.exit_code;
  Append(session_id, json::Write(line));
}

Result<SessionLog::Logged> SessionLog::Scan(store::Blobs& blobs, const std::string& session_id,
                                            uint32_t process) {
  Logged logged;
  const std::string mark = "\"process\":" + std::to_string(process) + ",";
  std::string rest;
  for (uint64_t offset = 0;;) {
    CAISSON_ASSIGN(const std::string piece, ReadFiles(blobs, session_id, offset, kScanBytes));
    if (piece.empty()) return logged;
    offset += piece.size();
    rest += piece;
    size_t begin = 0;
    for (size_t end; (end = rest.find('\n', begin)) != std::string::npos; begin = end + 1) {
      const std::string_view line = std::string_view(rest).substr(begin, end - begin);
      if (!line.contains(mark)) continue;
      const auto parsed = json::Parse(line);
      if (!parsed || !parsed->is_object()) continue;  // cut by a crash: it says nothing
      const json::Object& fields = parsed->as_object();
      const std::string event = TextOf(fields, "event");
      logged.started = logged.started || event == "started";
      logged.ended = logged.ended || event == "ended";
      const std::string stream = event == "gap" ? TextOf(fields, "stream") : event;
      uint64_t& reached = stream == "stderr" ? logged.end.err : logged.end.out;
      if (event == "gap") reached = std::max(reached, NumberOf(fields, "to"));
      if (event != "stdout" && event != "stderr") continue;
      reached = std::max(reached, NumberOf(fields, "end"));
      logged.bytes += NumberOf(fields, "end") - NumberOf(fields, "offset");
    }
    rest.erase(0, begin);
  }
}

Task<Result<std::string>> SessionLog::Read(std::string session_id, uint64_t offset, uint32_t max) {
  co_return co_await async::Offload(
      &loop_, &writer_, [blobs = &blobs_, session_id = std::move(session_id), offset, max] {
        return ReadFiles(*blobs, session_id, offset, max);
      });
}

Task<void> SessionLog::Flush() {
  (void)co_await async::Offload(&loop_, &writer_, [] { return 0; });
  dropped_ += shared_->failed.exchange(0);
}

}  // namespace caisson::sandbox
