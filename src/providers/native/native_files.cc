#include "providers/native/native_files.h"

namespace caisson::native {

namespace w = wire::init;
using sandbox::FileInfo;

namespace {

FileInfo FromWire(w::FileInfo info) {
  return {std::move(info.name),
          info.mode,
          info.uid,
          info.gid,
          info.links,
          info.size,
          info.inode,
          info.mtime_ns,
          info.ctime_ns,
          info.atime_ns,
          std::move(info.target)};
}

template <typename Message>
Task<Status> CallDone(std::shared_ptr<InitClient> init, Message message) {
  auto done = co_await init->Call<w::Done>(std::move(message));
  if (!done) co_return std::move(done).error();
  co_return Status();
}

class NativeFile : public sandbox::File {
 public:
  NativeFile(std::shared_ptr<InitClient> init, w::Opened opened)
      : init_(std::move(init)), handle_(opened.handle), info_(FromWire(std::move(opened.info))) {}
  ~NativeFile() override {
    if (handle_ != 0) init_->Post(w::Close{handle_, w::CloseMode::kDiscard});
  }
  const FileInfo& info() const override { return info_; }

  Task<Result<std::string>> Read(uint64_t offset, uint32_t size) override {
    auto data = co_await init_->Call<w::Data>(
        w::Read{handle_, offset, std::min<uint32_t>(size, wire::kMaxData)});
    if (!data) co_return std::move(data).error();
    co_return std::move(data->data);
  }
  Task<Status> Write(uint64_t offset, std::string data) override {
    for (size_t at = 0; at < data.size();) {
      auto written = co_await init_->Call<w::Written>(
          w::Write{handle_, offset + at, data.substr(at, wire::kMaxData)});
      if (!written) co_return std::move(written).error();
      if (written->size == 0)
        co_return Error(ErrorCode::kIo, "the sandbox wrote nothing to " + info_.name);
      at += written->size;
    }
    co_return Status();
  }
  Task<Status> Commit() override {
    return CallDone(init_, w::Close{std::exchange(handle_, 0), w::CloseMode::kCommit});
  }

 private:
  std::shared_ptr<InitClient> init_;
  uint32_t handle_;
  FileInfo info_;
};

class NativeWatch : public sandbox::FileWatch {
 public:
  NativeWatch(std::shared_ptr<InitClient> init, uint32_t watch)
      : init_(std::move(init)), watch_(watch), state_(init_->WatchOf(watch)) {}
  ~NativeWatch() override {
    init_->ForgetWatch(watch_);
    init_->Post(w::Unwatch{watch_});
  }
  Task<Result<sandbox::FileEvent>> Next() override {
    for (;;) {
      if (!state_->events.empty()) {
        w::WatchEvent event = std::move(state_->events.front());
        state_->events.pop_front();
        co_return sandbox::FileEvent{static_cast<sandbox::FileChange>(event.change),
                                     std::move(event.path)};
      }
      if (state_->lost) co_return Error(ErrorCode::kGone, "the sandbox has ended");
      state_->changed.Clear();
      co_await state_->changed.Wait();
    }
  }

 private:
  std::shared_ptr<InitClient> init_;
  uint32_t watch_;
  std::shared_ptr<WatchState> state_;
};

Task<Result<std::unique_ptr<sandbox::File>>> OpenFile(std::shared_ptr<InitClient> init,
                                                      w::Open open) {
  auto opened = co_await init->Call<w::Opened>(std::move(open));
  if (!opened) co_return std::move(opened).error();
  co_return std::unique_ptr<sandbox::File>(new NativeFile(init, *std::move(opened)));
}

uint8_t Flag(bool value) { return value ? 1 : 0; }

}  // namespace

Task<Result<FileInfo>> NativeFiles::Stat(std::string path, std::string user,
                                         sandbox::Follow follow) {
  auto init = init_;
  auto reply = co_await init->Call<w::StatReply>(
      w::Stat{std::move(path), std::move(user), Flag(follow == sandbox::Follow::kYes)});
  if (!reply) co_return std::move(reply).error();
  co_return FromWire(std::move(reply->info));
}

Task<Result<sandbox::FilePage>> NativeFiles::List(std::string path, std::string user,
                                                  uint64_t cursor, uint32_t max) {
  auto init = init_;
  auto reply =
      co_await init->Call<w::Entries>(w::ListDir{std::move(path), std::move(user), cursor, max});
  if (!reply) co_return std::move(reply).error();
  sandbox::FilePage page;
  page.next = reply->next;
  for (auto& entry : reply->entries) page.entries.push_back(FromWire(std::move(entry)));
  co_return page;
}

Task<Result<std::unique_ptr<sandbox::File>>> NativeFiles::OpenRead(std::string path,
                                                                   std::string user) {
  return OpenFile(init_, w::Open{std::move(path), std::move(user), w::OpenMode::kRead, 0, 0});
}

Task<Result<std::unique_ptr<sandbox::File>>> NativeFiles::OpenWrite(std::string path,
                                                                    std::string user,
                                                                    sandbox::WriteMode mode,
                                                                    uint32_t permissions,
                                                                    sandbox::Parents parents) {
  constexpr w::OpenMode kModes[] = {w::OpenMode::kWrite, w::OpenMode::kReplace,
                                    w::OpenMode::kCreateNew, w::OpenMode::kResume};
  return OpenFile(init_,
                  w::Open{std::move(path), std::move(user), kModes[static_cast<size_t>(mode)],
                          permissions, Flag(parents == sandbox::Parents::kMake)});
}

Task<Status> NativeFiles::Mkdir(std::string path, std::string user, uint32_t permissions,
                                sandbox::Parents parents) {
  return CallDone(init_, w::Mkdir{std::move(path), std::move(user), permissions,
                                  Flag(parents == sandbox::Parents::kMake)});
}

Task<Status> NativeFiles::Move(std::string from, std::string to, std::string user,
                               sandbox::Existing existing) {
  return CallDone(init_, w::Move{std::move(from), std::move(to), std::move(user),
                                 Flag(existing == sandbox::Existing::kReplace)});
}

Task<Status> NativeFiles::Remove(std::string path, std::string user, sandbox::Recursion recursion) {
  return CallDone(init_, w::Remove{std::move(path), std::move(user),
                                   Flag(recursion == sandbox::Recursion::kYes)});
}

Task<Status> NativeFiles::SetMode(std::string path, std::string user, uint32_t permissions) {
  return CallDone(init_, w::SetMode{std::move(path), std::move(user), permissions});
}

Task<Status> NativeFiles::Symlink(std::string target, std::string path, std::string user) {
  return CallDone(init_, w::Symlink{std::move(target), std::move(path), std::move(user)});
}

Task<Result<std::unique_ptr<sandbox::FileWatch>>> NativeFiles::Watch(std::string path,
                                                                     std::string user,
                                                                     sandbox::Recursion recursion) {
  auto init = init_;
  auto reply = co_await init->Call<w::Watching>(
      w::Watch{std::move(path), std::move(user), Flag(recursion == sandbox::Recursion::kYes)});
  if (!reply) co_return std::move(reply).error();
  co_return std::unique_ptr<sandbox::FileWatch>(new NativeWatch(init, reply->watch));
}

}  // namespace caisson::native
