#include "store/writer.h"

#include <algorithm>
#include <utility>

#include "base/crash_point.h"
#include "base/text.h"
#include "store/migrations.h"

namespace caisson::store {
namespace {

using std::chrono::steady_clock;

constexpr size_t kMaxGroup = 256;
constexpr std::chrono::milliseconds kIdle{500};
constexpr const char* kFileName = "caisson.db";
// A commit that starts the log anew flushes the log's header. This one is made where nobody waits.
constexpr std::string_view kStartLog =
    "INSERT INTO log_restarts VALUES (1, 1) ON CONFLICT DO UPDATE SET count = count + 1";

Error Refusal(const Error& failure) {
  return Error(ErrorCode::kUnavailable,
               Concat({"the state is read-only since a write to the disk failed: ",
                       failure.message()}))
      .WithRemedy("mend the disk that holds the data directory, then restart the server");
}

Error NoSpace(const std::string& path) {
  return Error(ErrorCode::kResourceExhausted, Concat({"the disk that holds ", path, " is full"}))
      .WithRemedy("free space there, or destroy sessions and purge artifacts");
}

bool IsNoSpace(const Status& status) {
  return !status && status.error().code() == ErrorCode::kResourceExhausted;
}

}  // namespace

Result<std::unique_ptr<Writer>> Writer::Open(DataDir& dir, Options options) {
  const std::string path = dir.PathOf(kFileName);
  const Database::Options as_owner{.mode = Database::Mode::kOwner, .vfs = options.vfs};
  CAISSON_ASSIGN(Database committing, Database::Open(path, as_owner));
  CAISSON_TRY(committing.CheckIntegrity());
  CAISSON_TRY(Migrate(committing));
  // A full disk must not keep a server from starting: there are things to destroy.
  if (const Status started = committing.Run(kStartLog); !started && !IsNoSpace(started)) {
    return started.error();
  }
  CAISSON_ASSIGN(Database flushing, Database::Open(path, as_owner));
  CAISSON_TRY(flushing.Number("SELECT count(*) FROM log_restarts"));  // opens the log
  return std::unique_ptr<Writer>(
      new Writer(dir, std::move(options), std::move(committing), std::move(flushing)));
}

Writer::Writer(DataDir& dir, Options options, Database committing, Database flushing)
    : dir_(dir),
      options_(std::move(options)),
      committing_(std::move(committing)),
      flushing_(std::move(flushing)) {
  out_of_space_ = !dir_.MakeReserve();
  flusher_ = std::thread([this] { FlushLoop(); });
  committer_ = std::thread([this] { CommitLoop(); });
}

Writer::~Writer() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  submitted_.notify_one();
  committer_.join();
  flusher_.join();
}

Status Writer::health() const {
  const std::lock_guard lock(mutex_);
  if (failure_) return Refusal(*failure_);
  return {};
}

bool Writer::out_of_space() const {
  const std::lock_guard lock(mutex_);
  return out_of_space_;
}

void Writer::Submit(Durability durability, Purpose purpose, Work work, Done done) {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() < options_.max_waiting) {
      waiting_.push_back({durability, purpose, std::move(work), std::move(done), {}});
      submitted_.notify_one();
      return;
    }
  }
  done(Error(ErrorCode::kResourceExhausted, "too many writes are waiting for the disk")
           .WithRemedy("try again later"));
}

// --- the committer -------------------------------------------------------------------------------

void Writer::CommitLoop() {
  std::vector<Item> group;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      submitted_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
      if (waiting_.empty()) break;
      const size_t count = std::min(waiting_.size(), kMaxGroup);
      group.assign(std::make_move_iterator(waiting_.begin()),
                   std::make_move_iterator(waiting_.begin() + static_cast<ptrdiff_t>(count)));
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(count));
    }
    RunGroup(group);
    Acknowledge(group);
    group.clear();
  }
  const std::lock_guard lock(mutex_);
  committer_ended_ = true;
  committed_.notify_one();
}

void Writer::RunGroup(std::vector<Item>& group) {
  for (Item& item : group) item.result = Admit(item.purpose);
  if (RunTogether(group)) return;
  for (Item& item : group) {
    item.result = Admit(item.purpose);
    if (item.result) RunAlone(item);
  }
}

// False when the group as a whole could not be committed; nothing of it is then done.
bool Writer::RunTogether(std::vector<Item>& group) {
  const Status committed = committing_.Transact([&]() -> Status {
    for (Item& item : group) {
      if (!item.result) continue;
      item.result = committing_.Nested([&] { return item.work(committing_); });
      if (IsNoSpace(item.result) || !committing_.in_transaction()) return item.result;
    }
    CrashPoint("store.uncommitted");
    return {};
  });
  CrashPoint("store.committed");
  return committed.has_value();
}

void Writer::RunAlone(Item& item) {
  const auto attempt = [&] { return committing_.Transact([&] { return item.work(committing_); }); };
  item.result = attempt();
  if (!IsNoSpace(item.result) || item.purpose != Purpose::kShrink) return;
  if (!dir_.GiveUpReserve()) return;
  {
    const std::lock_guard lock(mutex_);
    out_of_space_ = true;
    reserve_tried_ = steady_clock::now();
  }
  item.result = attempt();
}

Status Writer::Admit(Purpose purpose) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return Refusal(*failure_);
    if (!out_of_space_ || purpose == Purpose::kShrink) return {};
  }
  if (TryMakeReserve()) return {};
  return NoSpace(dir_.path());
}

bool Writer::TryMakeReserve() {
  const auto now = steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    if (now - reserve_tried_ < options_.reserve_retry) return false;
    reserve_tried_ = now;
  }
  if (!dir_.MakeReserve()) return false;
  const std::lock_guard lock(mutex_);
  out_of_space_ = false;
  return true;
}

void Writer::Acknowledge(std::vector<Item>& group) {
  Status observed;
  if (options_.observer != nullptr) observed = options_.observer->OnCommitted(committing_);
  std::vector<Item> now;
  {
    const std::lock_guard lock(mutex_);
    if (!observed && !failure_) failure_ = std::move(observed).error();
    const auto time = steady_clock::now();
    if (!std::exchange(dirty_, true)) dirty_since_ = time;
    last_commit_ = time;
    since_checkpoint_ += static_cast<int64_t>(group.size());
    for (Item& item : group) {
      const bool waits = item.result && item.durability == Durability::kDurable;
      (waits ? unflushed_ : now).push_back(std::move(item));
    }
  }
  committed_.notify_one();
  for (Item& item : now) item.done(std::move(item.result));
}

// --- the flusher ---------------------------------------------------------------------------------

bool Writer::MustFlush(steady_clock::time_point now) const {
  return !unflushed_.empty() || (dirty_ && now - dirty_since_ >= options_.flush_every);
}

void Writer::FlushLoop() {
  while (true) {
    std::vector<Item> group;
    {
      std::unique_lock lock(mutex_);
      const auto wanted = [this] { return committer_ended_ || MustFlush(steady_clock::now()); };
      // What is dirty has a deadline; what is clean waits for a commit.
      while (!wanted()) {
        if (dirty_) {
          committed_.wait_until(lock, dirty_since_ + options_.flush_every);
        } else {
          committed_.wait(lock);
        }
      }
      if (committer_ended_ && !dirty_ && unflushed_.empty()) return;
      group.swap(unflushed_);
      dirty_ = false;
      if (options_.observer != nullptr) options_.observer->BeforeFlush();
    }
    const Status flushed = Flush();
    CrashPoint("store.flushed");
    for (Item& item : group) item.done(flushed);
    if (const Status tidy = CheckpointWhenDue(); !tidy) Fail(tidy.error());
  }
}

Status Writer::Flush() {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return Refusal(*failure_);
  }
  Status flushed = flushing_.SyncLog();
  if (flushed && options_.observer != nullptr) flushed = options_.observer->AfterFlush();
  if (flushed) return {};
  Fail(flushed.error());
  return Refusal(flushed.error());
}

Status Writer::CheckpointWhenDue() {
  {
    const std::lock_guard lock(mutex_);
    const bool idle = steady_clock::now() - last_commit_ >= kIdle;
    const int64_t limit = options_.checkpoint_after * (idle || ending_ ? 1 : 4);
    if (failure_ || since_checkpoint_ < limit) return {};
    since_checkpoint_ = 0;
  }
  const auto left = flushing_.Checkpoint();
  Status done = left ? Status() : Status(left.error());
  if (left && *left == 0) {
    done = flushing_.Run(kStartLog);  // all of the log is in the file; the next commit begins it
  }
  // A full disk or a reader in the way leave the log as it is; it is tried again later.
  if (!done && (IsNoSpace(done) || done.error().code() == ErrorCode::kUnavailable)) return {};
  return done;
}

void Writer::Fail(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!failure_) failure_ = error;
}

}  // namespace caisson::store
