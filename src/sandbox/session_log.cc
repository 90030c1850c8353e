#include "sandbox/session_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>

#include "base/utf8.h"
#include "json/json.h"
#include "sandbox/ids.h"

namespace caisson::sandbox {
namespace {

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

bool WriteAll(int fd, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t wrote = write(fd, text.data() + at, text.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    at += static_cast<size_t>(wrote);
  }
  return true;
}

uint64_t SizeOf(int fd) {
  struct stat info{};
  return fstat(fd, &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

json::Object Line(WallTime time, uint32_t process, std::string_view event) {
  return {{"time_ms", time.time_since_epoch().count()}, {"process", process}, {"event", event}};
}

}  // namespace

// The files, for the writing thread; the counters are shared with the loop's.
struct SessionLog::Files {
  std::string directory;
  uint64_t file_bytes;
  std::atomic<uint64_t> waiting = 0, failed = 0;

  std::string PathOf(const std::string& session_id, const char* name) const {
    return directory + "/" + session_id + "/" + name;
  }

  void Append(const std::string& session_id, const std::string& line) {
    const std::string folder = directory + "/" + session_id;
    const std::string path = PathOf(session_id, "log.jsonl");
    mkdir(folder.c_str(), 0700);  // mostly there already; open tells when it is not
    struct stat info{};
    if (stat(path.c_str(), &info) == 0 && info.st_size > 0 &&
        static_cast<uint64_t>(info.st_size) + line.size() > file_bytes)
      std::rename(path.c_str(), PathOf(session_id, "log.1.jsonl").c_str());
    const Fd file(open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    waiting -= line.size();
    if (!file || !WriteAll(file.get(), line)) ++failed;
  }

  Result<std::string> Read(const std::string& session_id, uint64_t offset, uint32_t max) const {
    std::string data;
    bool any = false;
    for (const char* name : {"log.1.jsonl", "log.jsonl"}) {
      const Fd file(open(PathOf(session_id, name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
      if (!file) continue;
      any = true;
      const uint64_t size = SizeOf(file.get());
      if (offset >= size) {
        offset -= size;
        continue;
      }
      std::string piece(std::min<uint64_t>(size - offset, max - data.size()), '\0');
      const ssize_t got = pread(file.get(), piece.data(), piece.size(), static_cast<off_t>(offset));
      if (got < 0) return Error::FromErrno("read the log of session " + session_id);
      data.append(piece, 0, static_cast<size_t>(got));
      offset = 0;
      if (data.size() == max) break;
    }
    if (!any) return Error(ErrorCode::kNotFound, "session " + session_id + " has no log");
    return data;
  }
};

SessionLog::SessionLog(async::Loop& loop, std::string directory, LogOptions options)
    : loop_(loop), options_(options), files_(std::make_shared<Files>()), tasks_(loop) {
  files_->directory = std::move(directory);
  files_->file_bytes = options_.file_bytes;
}

SessionLog::~SessionLog() = default;

void SessionLog::Append(const std::string& session_id, std::string line) {
  line += '\n';
  if (files_->waiting + line.size() > options_.waiting_bytes) {
    ++dropped_;
    return;
  }
  files_->waiting += line.size();
  writer_.Submit(
      [files = files_, session_id, line = std::move(line)] { files->Append(session_id, line); });
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
  if (!LooksLikeId(session_id))
    co_return Error(ErrorCode::kNotFound, "there is no session of that id");
  co_return co_await async::Offload(
      &loop_, &writer_, [files = files_, session_id = std::move(session_id), offset, max] {
        return files->Read(session_id, offset, max);
      });
}

Task<void> SessionLog::Flush() {
  (void)co_await async::Offload(&loop_, &writer_, [] { return 0; });
  dropped_ += files_->failed.exchange(0);
}

}  // namespace caisson::sandbox
