#include "sandbox/artifact_keeper.h"

#include "sandbox/test_manager.h"

namespace caisson::sandbox {
namespace {

class FakeArtifacts : public ArtifactStore {
 public:
  class Writer : public ArtifactWriter {
   public:
    Writer(FakeArtifacts& store, std::string path) : store_(store), path_(std::move(path)) {}
    Task<Status> Write(std::string data) override {
      if (store_.failure) co_return *store_.failure;
      data_ += data;
      co_return Status();
    }
    Task<Result<std::string>> Commit() override {
      store_.kept[path_] = data_;
      co_return std::string("artifact" + std::to_string(store_.kept.size()));
    }

   private:
    FakeArtifacts& store_;
    std::string path_, data_;
  };
  Task<Result<std::unique_ptr<ArtifactWriter>>> Open(const SessionRecord*,
                                                     std::string path) override {
    co_return std::unique_ptr<ArtifactWriter>(new Writer(*this, std::move(path)));
  }
  std::map<std::string, std::string> kept;
  std::optional<Error> failure;
};

// The keeper as the manager sees it.
class Keeping : public SessionKeeper {
 public:
  explicit Keeping(ArtifactKeeper& keeper) : keeper_(keeper) {}
  Task<Result<std::vector<KeptArtifact>>> Keep(Session* session,
                                               std::vector<std::string> globs) override {
    return keeper_.Keep(session, std::move(globs));
  }
  void Log(Session&, std::shared_ptr<ProcessFeed>) override {}

 private:
  ArtifactKeeper& keeper_;
};

class ArtifactTest : public ManagerTest {
 protected:
  ArtifactTest() {
    keeper = &keeping;
    Restart();
  }
  ~ArtifactTest() override { manager.reset(); }

  std::vector<std::string> Found(std::vector<std::string> patterns, GlobBounds bounds = {}) {
    auto box = std::make_shared<FakeBox>();
    for (const char* path :
         {"/workspace/a.csv", "/workspace/b.txt", "/workspace/.hidden.csv", "/workspace/out/c.csv",
          "/workspace/out/deep/d.csv", "/workspace/out/deep/e.log", "/etc/passwd"})
      box->files[path] = "x";
    FakeFiles files(box);
    auto result = Run(FindFiles(&files, std::move(patterns), "", bounds));
    EXPECT_TRUE(result);
    complete = result->complete;
    std::vector<std::string> paths;
    for (const auto& file : result->files) paths.push_back(file.path);
    return paths;
  }

  using Paths = std::vector<std::string>;
  bool complete = false;
  FakeArtifacts artifacts;
  ArtifactKeeper artifact_keeper{artifacts, {.file_bytes = 1000, .total_bytes = 1500}};
  Keeping keeping{artifact_keeper};
};

TEST_F(ArtifactTest, PatternsFindWhatTheySay) {
  EXPECT_EQ(Found({"*.csv"}), (Paths{"/workspace/a.csv"}));
  EXPECT_EQ(Found({"**/*.csv"}),
            (Paths{"/workspace/a.csv", "/workspace/out/c.csv", "/workspace/out/deep/d.csv"}));
  EXPECT_EQ(Found({"out"}), (Paths{"/workspace/out/c.csv", "/workspace/out/deep/d.csv",
                                   "/workspace/out/deep/e.log"}));
  EXPECT_EQ(Found({"out/**"}), Found({"out"}));
  EXPECT_EQ(Found({"o?t/*/[de].*", "b.txt", "b.txt"}),
            (Paths{"/workspace/b.txt", "/workspace/out/deep/d.csv", "/workspace/out/deep/e.log"}));
  EXPECT_EQ(Found({"/etc/passwd"}), (Paths{"/etc/passwd"}));
  EXPECT_EQ(Found({"/nothing/*", "a.csv/b"}), Paths{});
  EXPECT_TRUE(complete);
}

TEST_F(ArtifactTest, BoundsStopTheSearchAndItSaysSo) {
  EXPECT_EQ(Found({"/**"}, {.files = 2}).size(), 2u);
  EXPECT_FALSE(complete);
  Found({"/**"}, {.entries = 2});
  EXPECT_FALSE(complete);
  Found({"/**"}, {.depth = 1});
  EXPECT_FALSE(complete);
}

TEST_F(ArtifactTest, FilesAreKeptBeforeTheSandboxGoes) {
  auto session = Create({.artifacts = {"*.csv"}});
  provider.Box(session->id()).files = {{"/workspace/a.csv", "1,2"}, {"/workspace/b.txt", "no"}};
  ASSERT_TRUE(Run(manager->Destroy(mine, session->id(), "")));
  ASSERT_TRUE(Until([&] { return manager->sessions().size() == 0; }));
  EXPECT_EQ(artifacts.kept, (std::map<std::string, std::string>{{"/workspace/a.csv", "1,2"}}));
  const auto heard = Heard();
  EXPECT_EQ(std::ranges::count(heard, "artifact.kept"), 1);
}

TEST_F(ArtifactTest, AnExecCanDeclareItsOwn) {
  auto session = Create();
  auto& box = provider.Box(session->id());
  box.files = {{"/workspace/plot.png", "png"}};
  async::TaskSet tasks(loop);
  std::optional<Result<ExecReport>> report;
  tasks.Spawn([](std::shared_ptr<Session> s, auto* out) -> Task<void> {
    *out = co_await s->Exec({.spec = {.argv = {"draw"}}, .input = "", .artifacts = {"*.png"}});
  }(session, &report));
  ASSERT_TRUE(Until([&] { return box.commands.size() == 1; }));
  box.commands.at(1)->Exit(0);
  ASSERT_TRUE(Until([&] { return report.has_value(); }));
  ASSERT_EQ((*report)->artifacts.size(), 1u);
  EXPECT_EQ((*report)->artifacts[0].path, "/workspace/plot.png");
  EXPECT_EQ((*report)->artifacts[0].size, 3u);
}

TEST_F(ArtifactTest, WhatDoesNotFitIsLeftOutWithAnAlertAndTheEndComesAllTheSame) {
  auto session = Create({.artifacts = {"*"}});
  provider.Box(session->id()).files = {{"/workspace/1big", std::string(1001, 'x')},
                                       {"/workspace/2fits", std::string(900, 'x')},
                                       {"/workspace/3toomuch", std::string(700, 'x')}};
  ASSERT_TRUE(Run(manager->Destroy(mine, session->id(), "")));
  ASSERT_TRUE(Until([&] { return manager->sessions().size() == 0; }));
  EXPECT_EQ(artifacts.kept.size(), 1u);
  auto heard = Heard();
  EXPECT_EQ(std::ranges::count(heard, "alert"), 1);
  session = Create({.artifacts = {"*"}});
  provider.Box(session->id()).files = {{"/workspace/a", "x"}};
  artifacts.failure = Error(ErrorCode::kResourceExhausted, "disk full");
  ASSERT_TRUE(Run(manager->Destroy(mine, session->id(), "")));
  ASSERT_TRUE(Until([&] { return manager->sessions().size() == 0; }));
  EXPECT_TRUE(provider.boxes.empty());
  heard = Heard();
  EXPECT_EQ(std::ranges::count(heard, "alert"), 1);
}

}  // namespace
}  // namespace caisson::sandbox
