#include "store/store.h"

namespace caisson::store {
namespace {

// Shared by the task that waits and the Writer, which may finish after the task has gone. The last
// reference goes on the loop's thread.
struct Pending {
  explicit Pending(async::Loop& loop) : done(loop) {}
  Status result;
  async::Event done;
};

}  // namespace

Result<std::unique_ptr<Store>> Store::Open(async::Loop& loop, const std::string& path,
                                           Options options) {
  CAISSON_ASSIGN(DataDir opened, DataDir::Open(path));
  auto dir = std::make_unique<DataDir>(std::move(opened));
  CAISSON_ASSIGN(auto anchor, AuditAnchor::Open(*dir));
  CAISSON_ASSIGN(auto writer, Writer::Open(*dir, {.vfs = options.vfs, .observer = anchor.get()}));
  CAISSON_ASSIGN(Database reading,
                 Database::Open(dir->PathOf("caisson.db"),
                                {.mode = Database::Mode::kReader, .vfs = options.vfs}));
  return std::unique_ptr<Store>(new Store(loop, std::move(dir), std::move(anchor),
                                          std::move(writer),
                                          std::make_unique<Database>(std::move(reading))));
}

Store::Store(async::Loop& loop, std::unique_ptr<DataDir> dir, std::unique_ptr<AuditAnchor> anchor,
             std::unique_ptr<Writer> writer, std::unique_ptr<Database> reading)
    : loop_(&loop),
      dir_(std::move(dir)),
      anchor_(std::move(anchor)),
      writer_(std::move(writer)),
      reading_(std::move(reading)) {}

Task<Status> Store::Write(Durability durability, Writer::Work work, Purpose purpose) {
  auto pending = std::make_shared<Pending>(*loop_);
  writer_->Submit(durability, purpose, std::move(work),
                  [loop = loop_, pending](Status result) mutable {
                    pending->result = std::move(result);
                    loop->Post([pending = std::move(pending)] { pending->done.Set(); });
                  });
  co_await pending->done.Wait();
  co_return std::move(pending->result);
}

}  // namespace caisson::store
