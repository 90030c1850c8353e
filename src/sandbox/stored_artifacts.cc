#include "sandbox/stored_artifacts.h"

#include "base/units.h"
#include "base/utf8.h"
#include "sandbox/ids.h"
#include "store/artifact_records.h"

namespace caisson::sandbox {

class StoredArtifacts::Writer : public ArtifactWriter {
 public:
  Writer(StoredArtifacts& owner, store::BlobWriter blob, store::ArtifactRecord record)
      : owner_(owner),
        blob_(std::make_shared<store::BlobWriter>(std::move(blob))),
        record_(std::move(record)) {}

  // A piece is written while the next one is read only when the caller does so; memory stays flat.
  Task<Status> Write(std::string data) override {
    co_return co_await async::Offload(
        &owner_.loop_, &owner_.disk_,
        [blob = blob_, data = std::move(data)] { return blob->Append(data); });
  }

  Task<Result<std::string>> Commit() override {
    auto committed = co_await async::Offload(&owner_.loop_, &owner_.disk_,
                                             [blob = blob_] { return blob->Commit(); });
    if (!committed) co_return std::move(committed).error();
    record_.size = committed->size;
    record_.sha256 = std::move(committed->sha256);
    record_.created_ms = SystemTime().time_since_epoch().count();
    auto written = co_await owner_.store_.Write(
        store::Durability::kDurable,
        [record = record_](store::Database& database) { return InsertArtifact(database, record); });
    if (written) co_return record_.id;
    // Bytes without a record would be nobody's.
    (void)co_await async::Offload(&owner_.loop_, &owner_.disk_,
                                  [blobs = &owner_.blobs_, id = record_.id] {
                                    return blobs->RemoveAll(store::BlobArea::kArtifacts, id);
                                  });
    co_return std::move(written).error();
  }

 private:
  StoredArtifacts& owner_;
  std::shared_ptr<store::BlobWriter> blob_;
  store::ArtifactRecord record_;
};

Task<Result<std::unique_ptr<ArtifactWriter>>> StoredArtifacts::Open(const SessionRecord* session,
                                                                    std::string path) {
  store::ArtifactRecord record;
  record.id = NewId();
  record.session_id = session->id;
  record.tenant = session->owner.tenant;
  record.path = ToUtf8(path);
  CAISSON_CO_ASSIGN(const int64_t used,
                    co_await store_.Read<int64_t>([tenant = record.tenant](store::Database& db) {
                      return store::ArtifactBytes(db, tenant);
                    }));
  const int64_t room = options_.tenant_bytes - used;
  if (room <= 0)
    co_return Error(ErrorCode::kResourceExhausted,
                    "the artifacts of tenant " + record.tenant + " have all of their " +
                        FormatSize(static_cast<uint64_t>(options_.tenant_bytes)))
        .WithRemedy("remove artifacts that are not needed");
  auto blob = co_await async::Offload(
      &loop_, &disk_,
      [blobs = &blobs_, id = record.id, limit = std::min(room, options_.file_bytes)] {
        return blobs->Create(store::BlobArea::kArtifacts, id, kBlobName, limit);
      });
  if (!blob) co_return std::move(blob).error();
  co_return std::unique_ptr<ArtifactWriter>(new Writer(*this, *std::move(blob), std::move(record)));
}

}  // namespace caisson::sandbox
