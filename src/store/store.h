// Store: all state of a server, as coroutines see it.
//
// Owns the data directory, the Writer, and a thread with a connection for reading. Write and Read
// are called on the loop's thread and resume there. A task that is destroyed while it waits leaves
// its work to be done; the result is dropped.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "async/event.h"
#include "async/task.h"
#include "async/thread_pool.h"
#include "store/audit_anchor.h"
#include "store/data_dir.h"
#include "store/writer.h"

namespace caisson::store {

class Store {
 public:
  struct Options {
    std::string vfs;
  };

  // Errors are those of DataDir::Open, Database::Open and Migrate. `loop` outlives the Store.
  static Result<std::unique_ptr<Store>> Open(async::Loop& loop, const std::string& path,
                                             Options options);
  static Result<std::unique_ptr<Store>> Open(async::Loop& loop, const std::string& path) {
    return Open(loop, path, Options{});
  }

  Task<Status> Write(Durability durability, Writer::Work work, Purpose purpose = Purpose::kGrow);

  // Sees every write that was acknowledged before.
  template <typename T>
  Task<Result<T>> Read(std::function<Result<T>(Database&)> work) {
    co_return co_await async::Offload(loop_, &reading_thread_,
                                      [this, work = std::move(work)] { return work(*reading_); });
  }

  DataDir& data_dir() { return *dir_; }
  const AuditAnchor& audit_anchor() const { return *anchor_; }
  Status health() const { return writer_->health(); }
  bool out_of_space() const { return writer_->out_of_space(); }

 private:
  Store(async::Loop& loop, std::unique_ptr<DataDir> dir, std::unique_ptr<AuditAnchor> anchor,
        std::unique_ptr<Writer> writer, std::unique_ptr<Database> reading);

  async::Loop* loop_;
  std::unique_ptr<DataDir> dir_;
  std::unique_ptr<AuditAnchor> anchor_;
  std::unique_ptr<Writer> writer_;
  std::unique_ptr<Database> reading_;
  async::ThreadPool reading_thread_{1};
};

}  // namespace caisson::store
