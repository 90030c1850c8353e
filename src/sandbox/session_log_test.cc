#include "sandbox/session_log.h"

#include <filesystem>

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
};

TEST_F(SessionLogTest, HoldsCommandsOutputAndOutcomes) {
  SessionLog log(loop, directory.path());
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
  EXPECT_EQ(Run(log.Read("0123456789", 0, 10)).error().code(), ErrorCode::kNotFound);
  EXPECT_EQ(Run(log.Read("../etc", 0, 10)).error().code(), ErrorCode::kNotFound);
}

TEST_F(SessionLogTest, OfOneCommandOnlyTheFirstOutputIsKept) {
  SessionLog log(loop, directory.path(), {.command_bytes = 10});
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
  SessionLog log(loop, directory.path(), {.file_bytes = 1000});
  auto session = Create();
  for (int i = 0; i < 30; ++i) {
    auto process = *Run(session->Start({.argv = {"true"}}));
    log.Follow(*session, process);
    provider.Command(session->id(), process->handle()).Exit(0);
    Run(process->Wait());
    Settle();
  }
  Run(log.Flush());
  uintmax_t bytes = 0;
  size_t files = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(directory.path() + "/" + session->id())) {
    bytes += file.file_size();
    ++files;
  }
  EXPECT_EQ(files, 2u);
  EXPECT_LE(bytes, 2000u);
  EXPECT_EQ(log.dropped_lines(), 0u);
}

}  // namespace
}  // namespace caisson::sandbox
