// StoredArtifacts: kept files as blobs of the data directory, with a record each.
//
// The bytes are in storage/artifacts/ID/content; the record says whose they are. A file is there
// when both are, on the disk, or not at all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "async/thread_pool.h"
#include "sandbox/artifact_store.h"
#include "store/blobs.h"
#include "store/store.h"

namespace caisson::sandbox {

struct StoredArtifactsOptions {
  int64_t file_bytes = int64_t{1} << 30;     // of one
  int64_t tenant_bytes = int64_t{10} << 30;  // of all of a tenant
};

class StoredArtifacts : public ArtifactStore {
 public:
  static constexpr const char* kBlobName = "content";

  // Everything given outlives it; `disk` does the writing.
  StoredArtifacts(async::Loop& loop, store::Store& store, store::Blobs& blobs,
                  async::ThreadPool& disk, StoredArtifactsOptions options = {})
      : loop_(loop), store_(store), blobs_(blobs), disk_(disk), options_(options) {}

  Task<Result<std::unique_ptr<ArtifactWriter>>> Open(const SessionRecord* session,
                                                     std::string path) override;

 private:
  class Writer;
  async::Loop& loop_;
  store::Store& store_;
  store::Blobs& blobs_;
  async::ThreadPool& disk_;
  const StoredArtifactsOptions options_;
};

}  // namespace caisson::sandbox
