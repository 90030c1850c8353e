// InitClient: one sandbox's control socket, and the processes that run behind it.
#pragma once

#include <deque>
#include <memory>
#include <unordered_map>

#include "providers/native/rpc_channel.h"
#include "sandbox/provider.h"
#include "wire/init_protocol.h"

namespace caisson::native {

// What has arrived of one process and was not fetched yet. Shared by the channel, which fills it,
// and the Process object, which empties it.
struct ProcessState {
  explicit ProcessState(async::Loop& loop) : changed(loop) {}
  std::deque<wire::init::Output> output;
  std::optional<wire::init::Exited> exited;
  uint64_t stdout_next = 0, stderr_next = 0;  // offsets delivered so far
  uint64_t ungranted = 0;                     // bytes fetched since the last Credit
  bool lost = false;                          // the sandbox is gone
  async::Event changed;
};

struct WatchState {
  explicit WatchState(async::Loop& loop) : changed(loop) {}
  std::deque<wire::init::WatchEvent> events;
  bool lost = false;
  async::Event changed;
};

class InitClient {
 public:
  // Takes over the control socket: whatever a former owner left unread is skipped (see
  // init_protocol.h). `rlimits` become the defaults of commands when there are any.
  static Task<Result<std::unique_ptr<InitClient>>> Open(async::Loop* loop, sys::UniqueFd control,
                                                        std::vector<wire::init::Rlimit> rlimits);
  ~InitClient();

  async::Loop& loop() const { return loop_; }

  template <typename Reply, typename Message>
  Task<Result<Reply>> Call(Message message) {
    if (!wire::WithinBounds(message)) co_return TooLong();
    auto channel = channel_;
    auto packet = co_await channel->Call(std::move(message));
    if (!packet) co_return std::move(packet).error();
    co_return ParseReply<Reply, wire::init::Failed>(*packet, ToError);
  }
  template <typename Message>
  void Post(const Message& message) {
    (void)channel_->Post(message);  // a channel that has closed tells by itself
  }

  std::shared_ptr<ProcessState> StateOf(uint32_t process);
  void Forget(uint32_t process) { processes_.erase(process); }
  std::shared_ptr<WatchState> WatchOf(uint32_t watch);
  void ForgetWatch(uint32_t watch) { watches_.erase(watch); }
  bool closed() const { return channel_->closed(); }
  void Close() {
    channel_->Close();
    MarkLost();
  }

 private:
  explicit InitClient(async::Loop& loop) : loop_(loop) {}
  static Error ToError(const wire::init::Failed& failed);
  void OnEvent(const wire::Header& header, const sys::Packet& packet);
  void MarkLost();

  async::Loop& loop_;
  std::shared_ptr<RpcChannel> channel_;
  std::unordered_map<uint32_t, std::shared_ptr<ProcessState>> processes_;
  std::unordered_map<uint32_t, std::shared_ptr<WatchState>> watches_;
};

}  // namespace caisson::native
