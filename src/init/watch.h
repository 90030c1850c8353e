// Watches: changes below directories, by inotify(7).
//
// Each watch has an inotify instance of its own. A recursive one follows new directories; what
// appeared in them before they were watched is reported as created. Renaming reports kRenamed for
// the old name and kCreated for the new one. Equal consecutive events are reported once. When the
// kernel's queue or the bound on watched directories overflows, kOverflow says so: list again.
#pragma once

#include <sys/inotify.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "init/files.h"
#include "init/outbox.h"
#include "init/poller.h"

namespace caisson::init {

inline constexpr size_t kMaxWatches = 32;               // requests
inline constexpr size_t kMaxWatchedDirectories = 8192;  // over all of them

class Watches {
 public:
  Watches(const Privileges& privileges, Files& files, Poller& poller, Outbox& outbox)
      : privileges_(privileges), files_(files), poller_(poller), outbox_(outbox) {}

  Result<wire::init::Watching> Handle(wire::init::Watch& request);
  Result<wire::init::Done> Handle(wire::init::Unwatch& request);
  void OnEvent(uint32_t id);
  // Reports what has happened, as long as the owner takes it; the rest stays in the kernel. True
  // when there is more to do at once.
  bool Step();
  void CloseAll();

 private:
  struct Tree {
    sys::UniqueFd inotify;
    User user;
    std::string root;
    bool recursive = false;
    bool readable = false;
    std::unordered_map<int, std::string> paths;  // of the inotify watches, relative to root
    std::optional<wire::init::WatchEvent> last;
  };

  Result<Tree> Open(const wire::init::Watch& request);
  // Watches `relative` and, if recursive, what is below. `announce` reports what is found there.
  enum class Announce { kNothing, kEntries };
  Status Cover(uint32_t id, Tree& tree, const std::string& relative, Announce announce);
  Status AddOne(Tree& tree, const std::string& relative, int fd);
  void Uncover(Tree& tree, const std::string& relative);
  void ReadBatch(uint32_t id, Tree& tree);
  void Translate(uint32_t id, Tree& tree, const inotify_event& event, std::string_view name);
  void Report(uint32_t id, Tree& tree, wire::init::Change change, const std::string& path);

  const Privileges& privileges_;
  Files& files_;
  Poller& poller_;
  Outbox& outbox_;
  std::unordered_map<uint32_t, Tree> trees_;
  size_t directories_ = 0;
  uint32_t last_id_ = 0;
};

}  // namespace caisson::init
