#include "sandbox/command_records.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "base/utf8.h"
#include "json/json.h"
#include "store/exec_records.h"

namespace caisson::sandbox {
namespace {

int64_t ToMs(WallTime time) { return time.time_since_epoch().count(); }
WallTime FromMs(int64_t ms) { return WallTime(std::chrono::milliseconds(ms)); }

// Of one width, so that those of one moment are in order.
std::string IdOf(uint32_t process) { return fmt::format("{:010}", process); }

uint32_t ProcessOf(const std::string& id) {
  uint32_t process = 0;
  std::from_chars(id.data(), id.data() + id.size(), process);
  return process;
}

json::Array ArgvToJson(const std::vector<std::string>& argv) {
  json::Array array;
  size_t room = CommandRecords::kArgvBytes;
  for (const auto& argument : argv) {
    array.emplace_back(ToUtf8(argument.substr(0, room)));
    if (argument.size() >= room) break;
    room -= argument.size();
  }
  return array;
}

store::ExecRecord RowOf(std::string session_id, const ProcessFeed& process) {
  const ProcessFacts& facts = process.facts();
  store::ExecRecord row;
  row.session_id = std::move(session_id);
  row.id = IdOf(process.handle());
  row.command = json::Write(json::Object{{"command", ToUtf8(facts.command)},
                                         {"label", ToUtf8(facts.label)},
                                         {"argv", ArgvToJson(facts.argv)},
                                         {"cwd", ToUtf8(facts.cwd)},
                                         {"user", ToUtf8(facts.user)},
                                         {"pty", facts.stdio == Stdio::kPty}});
  row.started_ms = ToMs(facts.started);
  return row;
}

void AddOutcome(store::ExecRecord& row, const ExecOutcome& outcome, WallTime ended) {
  const Usage& usage = outcome.usage;
  row.status = NameOf(outcome.status);
  row.reason = ToUtf8(outcome.reason);
  if (outcome.exit_code >= 0) row.exit_code = outcome.exit_code;
  row.cpu_us = (usage.user_cpu + usage.system_cpu).count();
  row.memory_peak = static_cast<int64_t>(usage.memory_peak_bytes);
  row.stdout_end = static_cast<int64_t>(usage.stdout_bytes);
  row.stderr_end = static_cast<int64_t>(usage.stderr_bytes);
  row.ended_ms = ToMs(ended);
  row.usage = json::Write(json::Object{{"signal", outcome.signal},
                                       {"user_us", usage.user_cpu.count()},
                                       {"system_us", usage.system_cpu.count()},
                                       {"wall_ns", usage.wall.count()},
                                       {"max_rss", usage.max_rss_bytes},
                                       {"dropped", usage.dropped_bytes}});
}

// Fields of an object; what is missing or damaged is empty.
class Fields {
 public:
  explicit Fields(const std::string& text) {
    if (auto value = json::Parse(text); value && value->is_object()) object_ = value->as_object();
  }
  std::string Text(std::string_view name) const {
    const json::Value* value = object_.if_contains(name);
    return value != nullptr && value->is_string() ? std::string(value->as_string()) : "";
  }
  int64_t Number(std::string_view name) const {
    const json::Value* value = object_.if_contains(name);
    return value != nullptr && value->is_int64() ? value->as_int64() : 0;
  }
  bool Flag(std::string_view name) const {
    const json::Value* value = object_.if_contains(name);
    return value != nullptr && value->is_bool() && value->as_bool();
  }
  std::vector<std::string> Texts(std::string_view name) const {
    std::vector<std::string> texts;
    const json::Value* value = object_.if_contains(name);
    if (value == nullptr || !value->is_array()) return texts;
    for (const auto& text : value->as_array())
      if (text.is_string()) texts.emplace_back(text.as_string());
    return texts;
  }

 private:
  json::Object object_;
};

ExecOutcome OutcomeOf(const store::ExecRecord& row) {
  const Fields usage(row.usage);
  const auto unsigned_of = [](int64_t number) { return static_cast<uint64_t>(number); };
  ExecOutcome outcome;
  outcome.status = OutcomeStatusFrom(row.status).value_or(OutcomeStatus::kUnknown);
  outcome.reason = row.reason;
  outcome.exit_code = row.exit_code.value_or(-1);
  outcome.signal = static_cast<int>(usage.Number("signal"));
  outcome.usage.user_cpu = std::chrono::microseconds(usage.Number("user_us"));
  outcome.usage.system_cpu = std::chrono::microseconds(usage.Number("system_us"));
  outcome.usage.wall = std::chrono::nanoseconds(usage.Number("wall_ns"));
  outcome.usage.max_rss_bytes = unsigned_of(usage.Number("max_rss"));
  outcome.usage.memory_peak_bytes = unsigned_of(row.memory_peak);
  outcome.usage.stdout_bytes = unsigned_of(row.stdout_end);
  outcome.usage.stderr_bytes = unsigned_of(row.stderr_end);
  outcome.usage.dropped_bytes = unsigned_of(usage.Number("dropped"));
  return outcome;
}

CommandRecord FromStore(const store::ExecRecord& row) {
  const Fields command(row.command);
  CommandRecord record;
  record.session_id = row.session_id;
  record.process = ProcessOf(row.id);
  record.command = command.Text("command");
  record.label = command.Text("label");
  record.argv = command.Texts("argv");
  record.cwd = command.Text("cwd");
  record.user = command.Text("user");
  record.stdio = command.Flag("pty") ? Stdio::kPty : Stdio::kPipes;
  record.started = FromMs(row.started_ms);
  if (!row.ended_ms) return record;
  record.ended = FromMs(*row.ended_ms);
  record.outcome = OutcomeOf(row);
  return record;
}

}  // namespace

CommandRecords::CommandRecords(async::Loop& loop, store::Store& store, log::Logger log,
                               WallClock clock)
    : store_(store), log_(log), clock_(std::move(clock)), tasks_(loop) {}

// The start is handed over before this returns, so the end comes after it.
void CommandRecords::Follow(std::string session_id, std::shared_ptr<ProcessFeed> process) {
  // An adopted one has its record already, unless that could not be written.
  const bool adopted = process->facts().origin == ProcessOrigin::kAdopted;
  tasks_.Spawn(Write(
      [row = RowOf(session_id, *process), adopted](store::Database& db) -> Status {
        if (!adopted) return store::InsertExec(db, row);
        CAISSON_ASSIGN(const auto known, store::FindExec(db, row.session_id, row.id));
        return known ? Status() : store::InsertExec(db, row);
      },
      store::Purpose::kGrow));
  tasks_.Spawn(FollowTask(std::move(session_id), std::move(process)));
}

Task<void> CommandRecords::FollowTask(std::string session_id,
                                      std::shared_ptr<ProcessFeed> process) {
  const ExecOutcome outcome = co_await process->Wait();
  store::ExecRecord row = RowOf(std::move(session_id), *process);
  process.reset();
  AddOutcome(row, outcome, clock_());
  co_await Write(
      [row = std::move(row)](store::Database& db) -> Status {
        auto finished = store::FinishExec(db, row);
        if (finished) return {};
        // Its end is on record, or its start is not, or its session has been forgotten.
        const ErrorCode code = finished.error().code();
        if (code == ErrorCode::kConflict || code == ErrorCode::kNotFound) return {};
        return finished;
      },
      store::Purpose::kShrink);
}

Task<void> CommandRecords::Write(store::Writer::Work work, store::Purpose purpose) {
  const auto written = co_await store_.Write(store::Durability::kSoon, std::move(work), purpose);
  if (!written) log_.Warn("the record of a command was not written", written.error());
}

// The store writes in order: when this is done, all before it is.
Task<Status> CommandRecords::Written() {
  return store_.Write(
      store::Durability::kSoon, [](store::Database&) { return Status(); }, store::Purpose::kShrink);
}

Task<Result<std::optional<CommandRecord>>> CommandRecords::Find(std::string session_id,
                                                                uint32_t process) {
  using Found = std::optional<CommandRecord>;
  CAISSON_CO_TRY(co_await Written());
  co_return co_await store_.Read<Found>(
      [session_id = std::move(session_id), process](store::Database& db) -> Result<Found> {
        CAISSON_ASSIGN(const auto row, store::FindExec(db, session_id, IdOf(process)));
        return row ? Found(FromStore(*row)) : Found();
      });
}

Task<Result<CommandPage>> CommandRecords::ListEnded(std::string session_id, std::string cursor,
                                                    int limit) {
  CAISSON_CO_TRY(co_await Written());
  co_return co_await store_.Read<CommandPage>([session_id = std::move(session_id),
                                               cursor = std::move(cursor),
                                               limit](store::Database& db) -> Result<CommandPage> {
    CAISSON_ASSIGN(auto rows, store::ListEndedExecs(db, session_id, cursor, limit));
    CommandPage page;
    page.next_cursor = std::move(rows.next_cursor);
    for (const auto& row : rows.execs) page.commands.push_back(FromStore(row));
    return page;
  });
}

Task<Status> CommandRecords::CloseForgotten(Runs runs) {
  CAISSON_CO_ASSIGN(auto open, co_await store_.Read<std::vector<store::ExecRecord>>(
                                   [](store::Database& db) { return store::OpenExecs(db); }));
  std::erase_if(open, [&](const auto& row) { return runs(row.session_id, ProcessOf(row.id)); });
  if (open.empty()) co_return Status();
  ExecOutcome unknown;
  unknown.status = OutcomeStatus::kUnknown;
  unknown.reason = "the server ended while it ran, and nobody saw how it ended";
  for (auto& row : open) AddOutcome(row, unknown, clock_());
  co_return co_await store_.Write(
      store::Durability::kSoon,
      [open = std::move(open)](store::Database& db) -> Status {
        for (const auto& row : open) CAISSON_TRY(store::FinishExec(db, row));
        return {};
      },
      store::Purpose::kShrink);
}

}  // namespace caisson::sandbox
