#include "sandbox/process_feed.h"

#include <algorithm>

namespace caisson::sandbox {
namespace {

constexpr size_t kChunkCost = sizeof(OutputChunk) + 32;

uint64_t& OffsetOf(FeedOffsets& offsets, Stream stream) {
  return stream == Stream::kStdout ? offsets.out : offsets.err;
}

}  // namespace

ProcessFeed::ProcessFeed(async::Loop& loop, std::unique_ptr<Process> process, ProcessFacts facts,
                         size_t ring_bytes)
    : ring_bytes_(ring_bytes),
      facts_(std::move(facts)),
      process_(std::move(process)),
      changed_(loop),
      taken_(loop),
      reader_(loop) {}

void ProcessFeed::Start() { reader_.Spawn(Read()); }

Task<void> ProcessFeed::Read() {
  for (;;) {
    for (Trim(); Full(); Trim()) co_await taken_.Wait();
    auto event = co_await process_->Next();
    if (!event) {
      // How it ended is not known, and is not made up.
      ExecOutcome lost;
      lost.status = OutcomeStatus::kLost;
      lost.reason = "the connection to the command broke: " + event.error().message();
      lost.usage.stdout_bytes = end_.out;
      lost.usage.stderr_bytes = end_.err;
      co_return Finish(std::move(lost));
    }
    if (auto* outcome = std::get_if<ExecOutcome>(&*event)) co_return Finish(std::move(*outcome));
    Append(std::get<OutputChunk>(*std::move(event)));
  }
}

void ProcessFeed::Append(OutputChunk chunk) {
  if (chunk.data.empty()) return;
  OffsetOf(end_, chunk.stream) = chunk.offset + chunk.data.size();
  bytes_ += chunk.data.size() + kChunkCost;
  ring_.push_back(std::move(chunk));
  changed_.Wake();
}

void ProcessFeed::Finish(ExecOutcome outcome) {
  outcome_ = std::move(outcome);
  changed_.Wake();
}

void ProcessFeed::Trim() {
  uint64_t held = first_ + ring_.size();
  for (const Subscription* subscription : subscriptions_)
    if (subscription->pace_ == Pace::kHolds) held = std::min(held, subscription->next_);
  while (Full() && first_ < held) {
    bytes_ -= ring_.front().data.size() + kChunkCost;
    ring_.pop_front();
    ++first_;
  }
}

FeedOffsets ProcessFeed::begin() const {
  FeedOffsets begin = end_;
  // From the newest to the oldest, so that the oldest of each stream stays.
  for (auto chunk = ring_.rbegin(); chunk != ring_.rend(); ++chunk)
    OffsetOf(begin, chunk->stream) = chunk->offset;
  return begin;
}

std::unique_ptr<ProcessFeed::Subscription> ProcessFeed::Subscribe(Pace pace, FeedOffsets from) {
  return std::unique_ptr<Subscription>(new Subscription(shared_from_this(), pace, from));
}

Task<ExecOutcome> ProcessFeed::Wait() {
  while (!outcome_) co_await changed_.Wait();
  co_return *outcome_;
}

Status ProcessFeed::Alive() const {
  if (!outcome_) return {};
  return Error(ErrorCode::kGone,
               "process " + std::to_string(handle()) + " has ended: " + outcome_->reason);
}

Task<Status> ProcessFeed::Write(std::string data) {
  CAISSON_CO_TRY(Alive());
  co_return co_await process_->Write(std::move(data));
}
Task<Status> ProcessFeed::CloseStdin() {
  CAISSON_CO_TRY(Alive());
  co_return co_await process_->CloseStdin();
}
Task<Status> ProcessFeed::Signal(int signo, SignalScope scope) {
  CAISSON_CO_TRY(Alive());
  co_return co_await process_->Signal(signo, scope);
}
Task<Status> ProcessFeed::Resize(uint16_t rows, uint16_t cols) {
  CAISSON_CO_TRY(Alive());
  co_return co_await process_->Resize(rows, cols);
}

ProcessFeed::Subscription::Subscription(std::shared_ptr<ProcessFeed> feed, Pace pace,
                                        FeedOffsets from)
    : feed_(std::move(feed)), pace_(pace), next_(feed_->first_), wanted_(from) {
  place_ = feed_->subscriptions_.insert(feed_->subscriptions_.end(), this);
}

ProcessFeed::Subscription::~Subscription() {
  feed_->subscriptions_.erase(place_);
  feed_->taken_.Wake();
}

// The bytes between what it has and `offset`, when there are any.
std::optional<FeedItem> ProcessFeed::Subscription::GapBefore(Stream stream, uint64_t offset) {
  uint64_t& wanted = OffsetOf(wanted_, stream);
  if (wanted >= offset) return std::nullopt;
  const OutputGap gap{stream, wanted, offset};
  wanted = offset;
  return gap;
}

std::optional<FeedItem> ProcessFeed::Subscription::Poll() {
  ProcessFeed& feed = *feed_;
  next_ = std::max(next_, feed.first_);
  while (next_ < feed.first_ + feed.ring_.size()) {
    const OutputChunk& chunk = feed.ring_[next_ - feed.first_];
    if (auto gap = GapBefore(chunk.stream, chunk.offset)) return gap;
    ++next_;
    if (pace_ == Pace::kHolds) feed.taken_.Wake();
    uint64_t& wanted = OffsetOf(wanted_, chunk.stream);
    const uint64_t end = chunk.offset + chunk.data.size();
    if (wanted >= end) continue;  // it has that already
    const uint64_t skip = wanted - chunk.offset;
    OutputChunk rest{chunk.stream, wanted, chunk.data.substr(skip)};
    wanted = end;
    return FeedItem(std::move(rest));
  }
  if (!feed.outcome_ || ended_) return std::nullopt;
  // What the command wrote and nobody can have any more.
  if (auto gap = GapBefore(Stream::kStdout, feed.outcome_->usage.stdout_bytes)) return gap;
  if (auto gap = GapBefore(Stream::kStderr, feed.outcome_->usage.stderr_bytes)) return gap;
  ended_ = true;
  return FeedItem(*feed.outcome_);
}

Task<std::optional<FeedItem>> ProcessFeed::Subscription::Next() {
  for (;;) {
    if (auto item = Poll()) co_return item;
    if (ended_) co_return std::nullopt;
    co_await feed_->changed_.Wait();
  }
}

}  // namespace caisson::sandbox
