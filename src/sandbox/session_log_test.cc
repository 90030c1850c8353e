#include "sandbox/session_log.h"

#include "sandbox/test_manager.h"
#include "store/test_directory.h"

namespace caisson::sandbox {
namespace {

class SessionLogTest : public ManagerTest {
 protected:
  std::string ReadAll(SessionLog& log, const std::string& id) {
    Run(log.Flush());
    std::string all;
    for (;;) {
      auto piece = Run(log.Read(id, all.size(), 1000));
      EXPECT_TRUE(piece) << piece.error().message();
      if (!piece || piece->empty()) return all;
      all += *piece;
    }
  }
  static size_t Lines(const std::string& text) {
    return static_cast<size_t>(std::ranges::count(text, '\n'));
  }
  store::TestDirectory directory;
  store::DataDir data = *store::DataDir::Open(directory.path() + "/data");
  store::Blobs blobs{data};
};

TEST_F(SessionLogTest, HoldsCommandsOutputAndOutcomes) {
  SessionLog log(loop, blobs);
  auto session = Create();
  auto process = *Run(session->Start({.argv = {"echo", "hi"}}));
  log.Follow(*session, process);
  provider.Command(session->id()).Out("hi\n");
  provider.Command(session->id()).Err("\xff");
  provider.Command(session->id()).Exit(3);
  Run(process->Wait());
  Settle();
  const std::string text = ReadAll(log, session->id());
  EXPECT_EQ(Lines(text), 4u) << text;
  EXPECT_NE(text.find(R"("command":"echo hi")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("data":"hi\n")"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("exit_code":3)"), std::string::npos) << text;
  EXPECT_EQ(*Run(log.Read("0123456789", 0, 10)), "");
  EXPECT_FALSE(Run(log.Read("../etc", 0, 10)));
}

TEST_F(SessionLogTest, AnAdoptedCommandGoesOnWhereItsLogEnds) {
  auto session = Create();
  const std::string id = session->id();
  uint32_t handle = 0;
  {
    SessionLog log(loop, blobs);
    auto process = *Run(session->Start({.argv = {"count"}}));
    handle = process->handle();
    log.Follow(*session, process);
    provider.Command(id).Out("one\xff\n");
    provider.Command(id).Err("oops\n");
    Settle();
    Run(log.Flush());
  }
  provider.Command(id).Out("two\n");
  session.reset();
  Restart();
  SessionLog log(loop, blobs);
  session = *Run(manager->Get(mine, id));
  auto adopted = *session->FindProcess(handle);
  log.Follow(*session, adopted);
  provider.Command(id).Out("three\n");
  provider.Command(id).Exit(0);
  Run(adopted->Wait());
  std::string text;
  ASSERT_TRUE(Until([&] { return (text = ReadAll(log, id)).contains(R"("event":"ended")"); }));
  const auto count = [&](std::string_view word) {
    size_t found = 0;
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(count(R"("event":"started")"), 1u) << text;
  EXPECT_EQ(count("one"), 1u) << text;
  EXPECT_EQ(count("oops"), 1u) << text;
  EXPECT_EQ(count("two"), 1u) << text;
  EXPECT_EQ(count("three"), 1u) << text;
  EXPECT_EQ(count(R"("event":"gap")"), 0u) << text;
  // And when it is taken over once more, it has ended in the log already.
  log.Follow(*session, adopted);
  Settle();
  EXPECT_EQ(ReadAll(log, id), text);
}

TEST_F(SessionLogTest, OfOneCommandOnlyTheFirstOutputIsKept) {
  SessionLog log(loop, blobs, {.command_bytes = 10});
  auto session = Create();
  auto process = *Run(session->Start({.argv = {"yes"}}));
  log.Follow(*session, process);
  for (int i = 0; i < 10; ++i) provider.Command(session->id()).Out("123456");
  provider.Command(session->id()).Exit(0);
  Run(process->Wait());
  Settle();
  const std::string text = ReadAll(log, session->id());
  EXPECT_EQ(Lines(text), 4u) << text;
  EXPECT_NE(text.find(R"("data":"1234","cut":true)"), std::string::npos) << text;
}

TEST_F(SessionLogTest, AFullFileIsTurnedOverOnce) {
  SessionLog log(loop, blobs, {.file_bytes = 1000});
  auto session = Create();
  for (int i = 0; i < 30; ++i) {
    auto process = *Run(session->Start({.argv = {"true"}}));
    log.Follow(*session, process);
    provider.Command(session->id(), process->handle()).Exit(0);
    Run(process->Wait());
    Settle();
  }
  Run(log.Flush());
  const auto files = blobs.List(store::BlobArea::kSessions, session->id());
  ASSERT_TRUE(files);
  int64_t bytes = 0;
  for (const auto& file : *files) bytes += file.size;
  EXPECT_EQ(files->size(), 2u);
  EXPECT_LE(bytes, 2000);
  EXPECT_EQ(log.dropped_lines(), 0u);
}

}  // namespace
}  // namespace caisson::sandbox
