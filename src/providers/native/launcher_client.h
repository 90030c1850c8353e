// LauncherClient: starts or finds a caisson-launcher and speaks to it.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "providers/native/rpc_channel.h"
#include "wire/launcher_protocol.h"

namespace caisson::native {

enum class Keeping {
  kEphemeral,  // the launcher and its sandboxes end with this client
  kKeep,       // they go on; the next client finds them at the socket
};

enum class Pooling {
  kOn,   // the launcher makes parts of sandboxes ahead of need
  kOff,  // for one sandbox and the end
};

struct LauncherPaths {
  std::string run_dir;    // locks of all instances of this user on the host, so that a sweep finds
                          // every dead one
  std::string state_dir;  // disks and caches, on a real file system
  std::string socket() const { return state_dir + "/launcher.sock"; }

  // From CAISSON_HOME, or the usual places for root and for an ordinary user.
  static LauncherPaths FromEnvironment();
};

class LauncherClient {
 public:
  // With Keeping::kKeep, joins the launcher at paths.socket() when one lives there; otherwise
  // starts one.
  static Task<Result<std::unique_ptr<LauncherClient>>> Start(async::Loop* loop, LauncherPaths paths,
                                                             Keeping keeping, Pooling pooling);
  // Lets a launcher go on. One that we started and that never answered is ended.
  ~LauncherClient();

  const wire::launcher::HelloReply& hello() const { return hello_; }
  pid_t pid() const { return pid_; }  // of the launcher, if we started it; else -1

  // `Reply` is what the protocol answers with; a Failed becomes its Error. `fds` of the reply come
  // along.
  template <typename Reply>
  struct Answer {
    Reply reply;
    std::vector<sys::UniqueFd> fds;
  };
  template <typename Reply, typename Message>
  Task<Result<Answer<Reply>>> Call(Message message, std::vector<int> fds = {}) {
    if (!wire::WithinBounds(message)) co_return TooLong();
    auto packet = co_await channel_->Call(std::move(message), std::move(fds));
    if (!packet) co_return std::move(packet).error();
    auto reply = ParseReply<Reply, wire::launcher::Failed>(*packet, ToError);
    if (!reply) co_return std::move(reply).error();
    co_return Answer<Reply>{*std::move(reply), std::move(packet->fds)};
  }

  // Whether the launcher has gone, and every sandbox it made with it.
  bool closed() const { return channel_->closed(); }

  // `on_closed` runs once, when the launcher has gone; it must not let go of this object. `on_lost`
  // runs for each sandbox that ended without being asked to.
  void Observe(std::function<void()> on_closed,
               std::function<void(const wire::launcher::Lost&)> on_lost) {
    on_closed_ = std::move(on_closed);
    on_lost_ = std::move(on_lost);
  }

  // Roots that this launcher has been told about.
  bool KnowsRoot(const std::string& key) const { return roots_.contains(key); }
  void NoteRoot(std::string key) { roots_.insert(std::move(key)); }

 private:
  LauncherClient() = default;
  static Error ToError(const wire::launcher::Failed& failed);

  std::shared_ptr<RpcChannel> channel_;
  wire::launcher::HelloReply hello_;
  pid_t pid_ = -1;
  bool answered_ = false;
  std::set<std::string> roots_;
  std::function<void()> on_closed_;
  std::function<void(const wire::launcher::Lost&)> on_lost_;
};

struct SweepResult {
  std::vector<std::string> swept, problems;
};
// Runs the launcher's sweep of what dead instances left below `run_dir`. Blocks.
Result<SweepResult> Sweep(const LauncherPaths& paths);

}  // namespace caisson::native
