#include "sandbox/stored_keeper.h"

#include "sandbox/test_manager.h"
#include "store/artifact_records.h"
#include "store/test_directory.h"

namespace caisson::sandbox {
namespace {

class StoredKeeperTest : public ManagerTest {
 protected:
  StoredKeeperTest() {
    auto opened = store::Store::Open(loop, directory.path() + "/data");
    EXPECT_TRUE(opened) << opened.error().message();
    store = *std::move(opened);
    blobs = std::make_unique<store::Blobs>(store->data_dir());
    stored = std::make_unique<StoredKeeper>(loop, *store, *blobs, disk);
    keeper = stored.get();
    Restart();
  }
  ~StoredKeeperTest() override { manager.reset(); }

  store::TestDirectory directory;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<store::Blobs> blobs;
  async::ThreadPool disk{1};
  std::unique_ptr<StoredKeeper> stored;
};

TEST_F(StoredKeeperTest, ArtifactsAndLogOutliveTheSession) {
  auto session = Create({.artifacts = {"*.csv"}});
  const std::string id = session->id();
  const std::string content(200'000, 'x');
  provider.Box(id).files = {{"/workspace/a.csv", content}};
  auto process = *Run(session->Start({.argv = {"make"}}));
  provider.Command(id).Out("made it\n");
  provider.Command(id).Exit(0);
  Run(process->Wait());
  session.reset();
  ASSERT_TRUE(Run(manager->Destroy(mine, id, "")));
  ASSERT_TRUE(Until([&] { return manager->sessions().size() == 0; }));
  using Records = std::vector<store::ArtifactRecord>;
  auto records = Run(store->Read<Records>(
      [id](store::Database& database) { return store::ListArtifacts(database, id); }));
  ASSERT_TRUE(records);
  ASSERT_EQ(records->size(), 1u);
  EXPECT_EQ(records->at(0).path, "/workspace/a.csv");
  EXPECT_EQ(records->at(0).tenant, "acme");
  EXPECT_EQ(records->at(0).size, 200'000);
  auto blob =
      blobs->Open(store::BlobArea::kArtifacts, records->at(0).id, StoredArtifacts::kBlobName);
  ASSERT_TRUE(blob) << blob.error().message();
  EXPECT_EQ(blob->size(), 200'000);
  Run(stored->log().Flush());
  const auto log = Run(stored->log().Read(id, 0, 100'000));
  ASSERT_TRUE(log);
  EXPECT_NE(log->find("made it"), std::string::npos);
}

TEST_F(StoredKeeperTest, ATenantThatHasItsShareGetsNoMore) {
  StoredArtifacts small(loop, *store, *blobs, disk, {.file_bytes = 100, .tenant_bytes = 100});
  SessionRecord record;
  record.id = "session1";
  record.owner.tenant = "acme";
  auto writer = Run(small.Open(&record, "/a"));
  ASSERT_TRUE(writer);
  ASSERT_TRUE(Run((*writer)->Write(std::string(100, 'x'))));
  EXPECT_EQ(Run((*writer)->Write("y")).error().code(), ErrorCode::kResourceExhausted);
  ASSERT_TRUE(Run(small.Open(&record, "/b")));  // nothing was committed yet
  auto whole = Run(small.Open(&record, "/c"));
  ASSERT_TRUE(Run((*whole)->Write(std::string(100, 'x'))));
  ASSERT_TRUE(Run((*whole)->Commit()));
  EXPECT_EQ(Run(small.Open(&record, "/d")).error().code(), ErrorCode::kResourceExhausted);
}

}  // namespace
}  // namespace caisson::sandbox
