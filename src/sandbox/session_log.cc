#include "sandbox/session_log.h"

#include <algorithm>

#include "base/utf8.h"
#include "json/json.h"

namespace caisson::sandbox {
namespace {

constexpr auto kArea = store::BlobArea::kSessions;
constexpr const char* kFile = "log.jsonl";
constexpr const char* kOlderFile = "log.jsonl.1";

json::Object Line(WallTime time, uint32_t process, std::string_view event) {
  return {{"time_ms", time.time_since_epoch().count()}, {"process", process}, {"event", event}};
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

void SessionLog::Follow(const Session& session, std::shared_ptr<ProcessFeed> process) {
  json::Object line = Line(process->facts().started, process->handle(), "started");
  line["command"] = ToUtf8(process->facts().command);
  Append(session.id(), json::Write(line));
  auto output = process->Subscribe(Pace::kFollows, {});
  tasks_.Spawn(FollowTask(session.id(), std::move(process), std::move(output)));
}

Task<void> SessionLog::FollowTask(std::string session_id, std::shared_ptr<ProcessFeed> process,
                                  std::unique_ptr<ProcessFeed::Subscription> output) {
  uint64_t room = options_.command_bytes;
  while (output) {
    const auto item = co_await output->Next();
    if (!item) break;
    if (const auto* chunk = std::get_if<OutputChunk>(&*item)) {
      json::Object line = Line(SystemTime(), process->handle(),
                               chunk->stream == Stream::kStdout ? "stdout" : "stderr");
      line["offset"] = chunk->offset;
      line["data"] = ToUtf8(std::string_view(chunk->data).substr(0, room));
      if (chunk->data.size() > room) line["cut"] = true;
      room -= std::min<uint64_t>(room, chunk->data.size());
      Append(session_id, json::Write(line));
      if (room == 0) output.reset();
    } else if (const auto* gap = std::get_if<OutputGap>(&*item)) {
      json::Object line = Line(SystemTime(), process->handle(), "gap");
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
