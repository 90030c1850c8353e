#include "init/watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace caisson::init {
namespace {

using wire::init::Change;

constexpr uint32_t kMask = IN_CREATE | IN_MODIFY | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF |
                           IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DONT_FOLLOW |
                           IN_EXCL_UNLINK;

struct CloseDir {
  void operator()(DIR* dir) const { closedir(dir); }
};

std::string Join(const std::string& directory, std::string_view name) {
  if (directory.empty()) return std::string(name);
  return name.empty() ? directory : directory + "/" + std::string(name);
}

struct Entry {
  std::string name;
  bool directory = false;
};

std::vector<Entry> EntriesOf(int fd) {
  std::vector<Entry> entries;
  const int list = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
  const std::unique_ptr<DIR, CloseDir> dir(list >= 0 ? fdopendir(list) : nullptr);
  if (!dir) return entries;
  while (const dirent* entry = readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    bool directory = entry->d_type == DT_DIR;
    if (entry->d_type == DT_UNKNOWN) {
      struct stat info;
      directory =
          fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode);
    }
    entries.push_back({std::string(name), directory});
    if (entries.size() >= 4 * kMaxWatchedDirectories) break;
  }
  return entries;
}

}  // namespace

Result<Watches::Tree> Watches::Open(const wire::init::Watch& request) {
  CAISSON_TRY(CheckPath(request.path));
  Tree tree;
  CAISSON_ASSIGN(tree.user, files_.UserOf(request.user));
  tree.root = request.path;
  tree.recursive = request.recursive != 0;
  tree.inotify.Reset(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!tree.inotify) return Error::FromErrno("making a watch");
  return tree;
}

Result<wire::init::Watching> Watches::Handle(wire::init::Watch& request) {
  if (trees_.size() >= kMaxWatches) return Error::FromErrno("too many watches", ENOSPC);
  auto opened = Open(request);
  if (!opened) return std::move(opened).error();
  Tree& tree = *opened;
  const uint32_t id = last_id_ + 1;
  Status covered;
  {
    const ScopedIdentity identity(privileges_, tree.user);
    covered = Cover(id, tree, "", Announce::kNothing);
  }
  if (covered && !poller_.Add(tree.inotify.get(), EPOLLIN | EPOLLET, {Source::kWatch, id})) {
    covered = Error::FromErrno("waiting for the watch");
  }
  if (!covered) {
    directories_ -= tree.paths.size();
    return covered.error();
  }
  last_id_ = id;
  trees_.emplace(id, *std::move(opened));
  return wire::init::Watching{.watch = id};
}

Result<wire::init::Done> Watches::Handle(wire::init::Unwatch& request) {
  const auto found = trees_.find(request.watch);
  if (found == trees_.end()) return Error::FromErrno("there is no such watch", EBADF);
  directories_ -= found->second.paths.size();
  trees_.erase(found);
  return wire::init::Done{};
}

void Watches::CloseAll() {
  trees_.clear();
  directories_ = 0;
}

Status Watches::AddOne(Tree& tree, const std::string& relative, int fd) {
  if (directories_ >= kMaxWatchedDirectories)
    return Error::FromErrno("too many directories are watched", ENOSPC);
  // By descriptor: the link of /proc must be followed, so IN_DONT_FOLLOW is left out.
  const int wd =
      inotify_add_watch(tree.inotify.get(), DescriptorPath(fd).c_str(), kMask & ~IN_DONT_FOLLOW);
  if (wd < 0) return Error::FromErrno("watching " + tree.root);
  if (tree.paths.insert_or_assign(wd, relative).second) ++directories_;
  return {};
}

Status Watches::Cover(uint32_t id, Tree& tree, const std::string& relative, Announce announce) {
  std::vector<std::string> waiting{relative};
  while (!waiting.empty()) {
    const std::string at = std::move(waiting.back());
    waiting.pop_back();
    const bool top = at == relative;
    const bool follow = at.empty();  // only the path that was asked for
    auto fd = OpenPath(AT_FDCWD, at.empty() ? tree.root : tree.root + "/" + at,
                       O_PATH | (follow ? 0 : O_NOFOLLOW));
    if (!fd && (!top || announce == Announce::kEntries)) continue;  // gone again, or not to be seen
    if (!fd) return std::move(fd).error();
    const Status added = AddOne(tree, at, fd->get());
    const bool denied =
        !added && (added.error().sys_errno() == EACCES || added.error().sys_errno() == ENOENT);
    if (!added && !(denied && !at.empty())) return added.error();
    struct stat info;
    if (!added || fstat(fd->get(), &info) != 0 || !S_ISDIR(info.st_mode)) continue;
    if (!tree.recursive) continue;
    for (const Entry& entry : EntriesOf(fd->get())) {
      const std::string path = Join(at, entry.name);
      if (announce == Announce::kEntries) Report(id, tree, Change::kCreated, path);
      if (entry.directory) waiting.push_back(path);
    }
  }
  return {};
}

void Watches::Uncover(Tree& tree, const std::string& relative) {
  for (auto at = tree.paths.begin(); at != tree.paths.end();) {
    if (at->second == relative || at->second.starts_with(relative + "/")) {
      inotify_rm_watch(tree.inotify.get(), at->first);
      at = tree.paths.erase(at);
      --directories_;
    } else {
      ++at;
    }
  }
}

void Watches::Report(uint32_t id, Tree& tree, Change change, const std::string& path) {
  const bool same = tree.last && tree.last->change == change && tree.last->path == path;
  if (same || path.size() > wire::init::kMaxPath) return;
  tree.last = wire::init::WatchEvent{.watch = id, .change = change, .path = path};
  outbox_.Send(*tree.last, 0);
}

void Watches::Translate(uint32_t id, Tree& tree, const inotify_event& event,
                        std::string_view name) {
  if ((event.mask & IN_Q_OVERFLOW) != 0) return Report(id, tree, Change::kOverflow, "");
  const auto found = tree.paths.find(event.wd);
  if (found == tree.paths.end()) return;
  if ((event.mask & IN_IGNORED) != 0) {  // removed, or its file system unmounted
    tree.paths.erase(found);
    --directories_;
    return;
  }
  const std::string path = Join(found->second, name);
  const bool directory = (event.mask & IN_ISDIR) != 0;
  if ((event.mask & (IN_DELETE_SELF | IN_MOVE_SELF)) != 0) {
    // Of directories below, the one above tells.
    if (found->second.empty()) Report(id, tree, Change::kRemoved, "");
    return;
  }
  if ((event.mask & (IN_CREATE | IN_MOVED_TO)) != 0) {
    Report(id, tree, Change::kCreated, path);
    if (!directory || !tree.recursive) return;
    const ScopedIdentity identity(privileges_, tree.user);
    if (!Cover(id, tree, path, Announce::kEntries)) Report(id, tree, Change::kOverflow, path);
    return;
  }
  if ((event.mask & IN_MOVED_FROM) != 0) {
    if (directory) Uncover(tree, path);
    return Report(id, tree, Change::kRenamed, path);
  }
  if ((event.mask & IN_DELETE) != 0) return Report(id, tree, Change::kRemoved, path);
  if ((event.mask & IN_MODIFY) != 0) return Report(id, tree, Change::kWritten, path);
  if ((event.mask & IN_ATTRIB) != 0) Report(id, tree, Change::kAttributes, path);
}

void Watches::OnEvent(uint32_t id) {
  const auto found = trees_.find(id);
  if (found != trees_.end()) found->second.readable = true;
}

bool Watches::Step() {
  bool more = false;
  for (auto& [id, tree] : trees_) {
    if (tree.readable && !outbox_.crowded()) ReadBatch(id, tree);
    more |= tree.readable && !outbox_.crowded();
  }
  return more;
}

void Watches::ReadBatch(uint32_t id, Tree& tree) {
  alignas(inotify_event) char buffer[4096];
  const ssize_t got = read(tree.inotify.get(), buffer, sizeof buffer);
  if (got <= 0) tree.readable = false;
  for (ssize_t at = 0; at < got;) {
    inotify_event event;
    std::memcpy(&event, buffer + at, sizeof event);
    const char* name = buffer + at + sizeof event;
    Translate(id, tree, event, std::string_view(name, strnlen(name, event.len)));
    at += static_cast<ssize_t>(sizeof event + event.len);
  }
}

}  // namespace caisson::init
