#include "store/blobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "store/test_directory.h"

namespace caisson::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr BlobArea kArea = BlobArea::kArtifacts;

class BlobsTest : public testing::Test {
 protected:
  Status Put(std::string_view id, std::string_view name, std::string_view bytes,
             int64_t limit = 1 << 20) {
    CAISSON_ASSIGN(BlobWriter writer, blobs_.Create(kArea, id, name, limit));
    CAISSON_TRY(writer.Append(bytes));
    CAISSON_TRY(writer.Commit());
    return {};
  }
  Result<std::string> Get(std::string_view id, std::string_view name) {
    CAISSON_ASSIGN(const BlobReader reader, blobs_.Open(kArea, id, name));
    return reader.ReadAt(0, 1 << 20);
  }
  std::vector<std::string> Names(std::string_view id) {
    std::vector<std::string> names;
    for (const BlobInfo& blob : *blobs_.List(kArea, id)) names.push_back(blob.name);
    return names;
  }

  TestDirectory directory_;
  Result<DataDir> dir_ = DataDir::Open(directory_.path());
  Blobs blobs_{*dir_};
};

TEST_F(BlobsTest, ABlobIsReadAsItWasWrittenInRanges) {
  auto writer = blobs_.Create(kArea, "a1", "out/plot.txt", 100);
  ASSERT_TRUE(writer) << writer.error().message();
  ASSERT_TRUE(writer->Append("hello "));
  ASSERT_TRUE(writer->Append("world"));
  const auto committed = writer->Commit();
  ASSERT_TRUE(committed) << committed.error().message();
  EXPECT_EQ(committed->size, 11);
  EXPECT_EQ(committed->sha256, "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9");
  const auto reader = blobs_.Open(kArea, "a1", "out/plot.txt");
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->size(), 11);
  EXPECT_EQ(*reader->ReadAt(6, 3), "wor");
  EXPECT_EQ(*reader->ReadAt(6, 1000), "world");
  EXPECT_EQ(*reader->ReadAt(11, 10), "");
  EXPECT_EQ(*reader->ReadAt(INT64_MAX, 10), "");
  EXPECT_FALSE(reader->ReadAt(-1, 10));
}

TEST_F(BlobsTest, ABlobIsWholeOrAbsent) {
  {
    auto writer = blobs_.Create(kArea, "a1", "f", 100);
    ASSERT_TRUE(writer->Append("half"));
    EXPECT_EQ(Get("a1", "f").error().code(), ErrorCode::kNotFound);
    EXPECT_THAT(Names("a1"), IsEmpty());
  }
  ASSERT_TRUE(Put("a1", "f", "old"));
  {
    auto writer = blobs_.Create(kArea, "a1", "f", 100);
    ASSERT_TRUE(writer->Append("new"));
    EXPECT_EQ(*Get("a1", "f"), "old");
    ASSERT_TRUE(writer->Commit());
    EXPECT_FALSE(writer->Commit());
  }
  EXPECT_EQ(*Get("a1", "f"), "new");
  EXPECT_THAT(Names("a1"), ElementsAre("f"));
}

TEST_F(BlobsTest, ABlobStaysBelowItsLimit) {
  auto writer = blobs_.Create(kArea, "a1", "f", 10);
  ASSERT_TRUE(writer->Append("0123456789"));
  EXPECT_EQ(writer->Append("x").error().code(), ErrorCode::kResourceExhausted);
}

TEST_F(BlobsTest, ListsAndRemoves) {
  ASSERT_TRUE(Put("a1", "b", "1"));
  ASSERT_TRUE(Put("a1", "a/x", "22"));
  ASSERT_TRUE(Put("a2", "c", "333"));
  EXPECT_THAT(Names("a1"), ElementsAre("a/x", "b"));
  EXPECT_EQ(blobs_.List(kArea, "a1")->front().size, 2);
  EXPECT_THAT(*blobs_.Ids(kArea), ElementsAre("a1", "a2"));
  EXPECT_THAT(*blobs_.Ids(BlobArea::kSessions), IsEmpty());
  ASSERT_TRUE(blobs_.Remove(kArea, "a1", "b"));
  EXPECT_EQ(blobs_.Remove(kArea, "a1", "b").error().code(), ErrorCode::kNotFound);
  EXPECT_THAT(Names("a1"), ElementsAre("a/x"));
  ASSERT_TRUE(blobs_.RemoveAll(kArea, "a1"));
  ASSERT_TRUE(blobs_.RemoveAll(kArea, "a1"));
  EXPECT_THAT(Names("a1"), IsEmpty());
  EXPECT_EQ(*Get("a2", "c"), "333");
}

TEST_F(BlobsTest, BadNamesAreRefused) {
  for (const std::string& name :
       {std::string(), std::string("/etc/passwd"), std::string("../x"), std::string("a/../../x"),
        std::string("a//b"), std::string("a/"), std::string("."), std::string("a\nb"),
        std::string("a\0b", 3), std::string(".new-x"), std::string(300, 'a')}) {
    EXPECT_EQ(Put("a1", name, "x").error().code(), ErrorCode::kInvalidArgument) << name;
    EXPECT_EQ(Get("a1", name).error().code(), ErrorCode::kInvalidArgument) << name;
    EXPECT_FALSE(blobs_.Remove(kArea, "a1", name)) << name;
  }
  std::string deep = "a";
  for (int i = 0; i < 16; ++i) deep += "/a";
  EXPECT_FALSE(CheckBlobName(deep));
  EXPECT_TRUE(CheckBlobName(deep.substr(2)));
  for (const char* id : {"", "..", ".", "a/b", "a b", "a\n"}) {
    EXPECT_FALSE(Put(id, "x", "x")) << id;
    EXPECT_FALSE(blobs_.List(kArea, id)) << id;
    EXPECT_FALSE(blobs_.RemoveAll(kArea, id)) << id;
  }
}

TEST_F(BlobsTest, LinksAreNeverFollowed) {
  const std::string outside = directory_.PathOf("outside");
  ASSERT_EQ(mkdir(outside.c_str(), 0700), 0);
  std::ofstream(outside + "/secret") << "secret";
  ASSERT_TRUE(Put("a1", "real", "x"));
  const std::string base = directory_.PathOf("storage/artifacts/a1/");
  ASSERT_EQ(symlink(outside.c_str(), (base + "dir").c_str()), 0);
  ASSERT_EQ(symlink((outside + "/secret").c_str(), (base + "file").c_str()), 0);
  EXPECT_FALSE(Get("a1", "file"));
  EXPECT_FALSE(Get("a1", "dir/secret"));
  EXPECT_FALSE(Put("a1", "dir/new", "x"));
  EXPECT_FALSE(blobs_.Remove(kArea, "a1", "dir/secret"));
  EXPECT_FALSE(blobs_.AppendLog(kArea, "a1", "file", "x", 100));
  EXPECT_THAT(Names("a1"), ElementsAre("real"));
  ASSERT_TRUE(Put("a1", "file", "mine"));  // takes the link's place, not its target's
  EXPECT_EQ(*Get("a1", "file"), "mine");
  ASSERT_TRUE(blobs_.RemoveAll(kArea, "a1"));
  std::string kept;
  std::getline(std::ifstream(outside + "/secret"), kept);
  EXPECT_EQ(kept, "secret");
}

TEST_F(BlobsTest, LogsGrowAndRotate) {
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(blobs_.AppendLog(kArea, "s1", "log", "0123456789", 35));
  EXPECT_EQ(Get("s1", "log")->size(), 10U);
  EXPECT_EQ(Get("s1", "log.1")->size(), 30U);
  EXPECT_THAT(Names("s1"), ElementsAre("log", "log.1"));
}

TEST_F(BlobsTest, APipeInABlobsPlaceIsNoBlobAndBlocksNobody) {
  ASSERT_TRUE(Put("a1", "f", "x"));
  ASSERT_EQ(mkfifo(directory_.PathOf("storage/artifacts/a1/pipe").c_str(), 0600), 0);
  EXPECT_FALSE(Get("a1", "pipe"));
}

}  // namespace
}  // namespace caisson::store
