#include "init/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "init/test_client.h"

namespace caisson::init {
namespace {

using namespace wire::init;  // NOLINT: the requests and replies of this protocol
using testing::HasSubstr;

constexpr const char* kOther = "4711";  // a user without any rights of its own

std::optional<std::string> ReadAll(TestClient& client, const std::string& path,
                                   const std::string& user = "") {
  const auto opened = client.Call<Opened>(Open{.path = path, .user = user});
  if (!opened) return std::nullopt;
  std::string text;
  while (true) {
    const auto data = client.Call<Data>(
        Read{.handle = opened->handle, .offset = text.size(), .size = wire::kMaxData});
    if (!data) return std::nullopt;
    text += data->data;
    if (data->eof != 0) break;
  }
  EXPECT_TRUE(client.Call<Done>(Close{.handle = opened->handle}));
  return text;
}

bool WriteAll(TestClient& client, const Open& open, const std::string& text,
              CloseMode close = CloseMode::kCommit) {
  const auto opened = client.Call<Opened>(open);
  if (!opened) return false;
  for (size_t at = 0; at < text.size(); at += wire::kMaxData) {
    const auto written = client.Call<Written>(
        Write{.handle = opened->handle, .offset = at, .data = text.substr(at, wire::kMaxData)});
    if (!written || written->size != text.substr(at, wire::kMaxData).size()) return false;
  }
  return client.Call<Done>(Close{.handle = opened->handle, .mode = close}).has_value();
}

bool Exists(const std::string& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0;
}

size_t EntriesIn(TestClient& client, const std::string& path) {
  return client.Call<Entries>(ListDir{.path = path})->entries.size();
}

TEST(Files, WhatIsWrittenReadsBackWhateverTheBytes) {
  ScratchDir dir;
  TestClient client;
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += static_cast<char>(i * 31 >> 3);
  const std::string name = dir / "sub/deep/name\n\xff\xfe with spaces";
  ASSERT_TRUE(WriteAll(
      client, {.path = name, .mode = OpenMode::kWrite, .permissions = 0640, .parents = 1}, text));
  EXPECT_EQ(ReadAll(client, name), text);
  const auto stat = client.Call<StatReply>(Stat{.path = name});
  EXPECT_EQ(stat->info.size, text.size());
  EXPECT_EQ(stat->info.mode & 07777, 0640u);
  ASSERT_TRUE(WriteAll(client, {.path = name, .mode = OpenMode::kWrite}, "short"));
  EXPECT_EQ(ReadAll(client, name), "short");
}

TEST(Files, OpenModes) {
  ScratchDir dir;
  TestClient client;
  const std::string name = dir / "f";
  ASSERT_TRUE(WriteAll(client, {.path = name, .mode = OpenMode::kCreateNew}, "12345"));
  EXPECT_FALSE(client.Call<Opened>(Open{.path = name, .mode = OpenMode::kCreateNew}));
  EXPECT_EQ(client.failure.error_number, EEXIST);
  ASSERT_TRUE(WriteAll(client, {.path = name, .mode = OpenMode::kResume}, "ab"));
  EXPECT_EQ(ReadAll(client, name), "ab345");
  EXPECT_FALSE(client.Call<Opened>(Open{.path = dir / "absent"}));
  EXPECT_EQ(client.failure.error_number, ENOENT);
  EXPECT_FALSE(client.Call<Opened>(Open{.path = "relative"}));
  EXPECT_EQ(client.failure.error_number, EINVAL);
  EXPECT_FALSE(client.Call<Opened>(Open{.path = std::string("/tmp\0x", 6)}));
  EXPECT_EQ(client.failure.error_number, EINVAL);
  EXPECT_FALSE(client.Call<Opened>(Open{.path = name, .mode = static_cast<OpenMode>(9)}));
  EXPECT_EQ(client.failure.error_number, EINVAL);
}

TEST(Files, AReplacementIsAllOrNothing) {
  ScratchDir dir;
  TestClient client;
  const std::string name = dir / "f";
  ASSERT_TRUE(WriteAll(client, {.path = name, .mode = OpenMode::kWrite}, "old"));
  const Open replace{.path = name, .mode = OpenMode::kReplace, .permissions = 0600};
  const auto opened = client.Call<Opened>(replace);
  ASSERT_TRUE(client.Call<Written>(Write{.handle = opened->handle, .data = "new"}));
  EXPECT_EQ(ReadAll(client, name), "old");
  ASSERT_TRUE(client.Call<Done>(Close{.handle = opened->handle, .mode = CloseMode::kCommit}));
  EXPECT_EQ(ReadAll(client, name), "new");
  ASSERT_TRUE(WriteAll(client, replace, "unwanted", CloseMode::kDiscard));
  EXPECT_EQ(ReadAll(client, name), "new");
  EXPECT_EQ(EntriesIn(client, dir.path()), 1u);  // no temporary is left

  ASSERT_TRUE(client.Call<Opened>(replace));  // and its owner goes away
  EXPECT_EQ(EntriesIn(client, dir.path()), 2u);
  client.Hello(2);
  EXPECT_EQ(EntriesIn(client, dir.path()), 1u);
}

TEST(Files, AReplacementDoesNotWriteThroughALink) {
  ScratchDir dir;
  TestClient client;
  ASSERT_TRUE(WriteAll(client, {.path = dir / "target", .mode = OpenMode::kWrite}, "precious"));
  ASSERT_TRUE(client.Call<Done>(Symlink{.target = "target", .path = dir / "link"}));
  ASSERT_TRUE(WriteAll(client, {.path = dir / "link", .mode = OpenMode::kReplace}, "new"));
  EXPECT_EQ(ReadAll(client, dir / "target"), "precious");
  EXPECT_EQ(ReadAll(client, dir / "link"), "new");
}

TEST(Files, OnlyRegularFilesAreOpened) {
  ScratchDir dir;
  TestClient client;
  ASSERT_EQ(mkfifo((dir / "fifo").c_str(), 0666), 0);
  const int socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  strncpy(address.sun_path, (dir / "socket").c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(bind(socket_fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const std::pair<std::string, const char*> cases[] = {{dir / "fifo", "FIFO"},
                                                       {dir / "socket", "socket"},
                                                       {"/dev/null", "device"},
                                                       {dir.path(), "directory"}};
  for (const auto& [path, kind] : cases) {
    for (const OpenMode mode :
         {OpenMode::kRead, OpenMode::kWrite, OpenMode::kReplace, OpenMode::kResume}) {
      EXPECT_FALSE(client.Call<Opened>(Open{.path = path, .mode = mode})) << path;
      EXPECT_EQ(client.failure.error_number, EINVAL) << path << " mode " << static_cast<int>(mode);
      EXPECT_THAT(client.failure.what, HasSubstr(kind)) << path;
    }
  }
  close(socket_fd);
}

TEST(Files, ProcIsReadableButNotInitsOwnMemory) {
  TestClient client;
  EXPECT_THAT(ReadAll(client, "/proc/self/status").value_or(""), HasSubstr("caisson-init"));
  EXPECT_THAT(ReadAll(client, "/proc/meminfo").value_or(""), HasSubstr("MemTotal"));
  for (const char* path : {"/proc/self/mem", "/proc/self/maps", "/proc/thread-self/environ",
                           "/proc/self/task/../maps"}) {
    EXPECT_FALSE(client.Call<Opened>(Open{.path = path})) << path;
    EXPECT_EQ(client.failure.error_number, EACCES) << path;
  }
  EXPECT_FALSE(
      client.Call<Opened>(Open{.path = "/proc/self/oom_score_adj", .mode = OpenMode::kResume}));
  EXPECT_EQ(client.failure.error_number, EACCES);
}

TEST(Files, MagicLinksAreNotFollowed) {
  TestClient client;
  for (const char* path :
       {"/proc/self/root/etc/passwd", "/proc/self/cwd/etc/passwd", "/proc/self/exe"}) {
    EXPECT_FALSE(client.Call<Opened>(Open{.path = path})) << path;
    EXPECT_EQ(client.failure.error_number, ELOOP) << path;
    EXPECT_FALSE(client.Call<StatReply>(Stat{.path = path, .follow = 1})) << path;
  }
}

TEST(Files, HandlesAreBoundedAndUnknownOnesRefused) {
  TestClient client;
  for (size_t i = 0; i < kMaxHandles; ++i)
    ASSERT_TRUE(client.Call<Opened>(Open{.path = "/etc/passwd"}));
  EXPECT_FALSE(client.Call<Opened>(Open{.path = "/etc/passwd"}));
  EXPECT_EQ(client.failure.error_number, EMFILE);
  client.Hello(3);
  EXPECT_TRUE(client.Call<Opened>(Open{.path = "/etc/passwd"}));
  EXPECT_FALSE(client.Call<Data>(Read{.handle = 1, .size = 1}));
  EXPECT_EQ(client.failure.error_number, EBADF);
}

TEST(Files, ListingIsPagedAndComplete) {
  ScratchDir dir;
  TestClient client;
  std::set<std::string> expected;
  for (int i = 0; i < 1500; ++i) {
    const std::string name =
        "file-" + std::to_string(i) + std::string(static_cast<size_t>(i % 200), 'x');
    close(open((dir / name).c_str(), O_CREAT | O_WRONLY, 0644));
    expected.insert(name);
  }
  ASSERT_EQ(symlink("somewhere", (dir / "link").c_str()), 0);
  expected.insert("link");
  for (const uint32_t max : {1u, 7u, 256u, 100'000u}) {
    std::set<std::string> seen;
    uint64_t cursor = 0;
    do {
      const auto page =
          client.Call<Entries>(ListDir{.path = dir.path(), .cursor = cursor, .max = max});
      ASSERT_TRUE(page);
      EXPECT_LE(page->entries.size(), max);
      for (const FileInfo& info : page->entries) {
        EXPECT_TRUE(seen.insert(info.name).second) << "twice: " << info.name;
        if (info.name == "link") EXPECT_EQ(info.target, "somewhere");
      }
      cursor = page->next;
    } while (cursor != 0);
    EXPECT_EQ(seen, expected) << max;
  }
  EXPECT_FALSE(client.Call<Entries>(ListDir{.path = "/etc/passwd"}));
  EXPECT_EQ(client.failure.error_number, ENOTDIR);
}

TEST(Files, MakesMovesAndRemoves) {
  ScratchDir dir;
  TestClient client;
  ASSERT_TRUE(client.Call<Done>(Mkdir{.path = dir / "a", .permissions = 06711}));
  EXPECT_EQ(client.Call<StatReply>(Stat{.path = dir / "a"})->info.mode & 07777,
            0711u);  // no set-id bits
  EXPECT_FALSE(client.Call<Done>(Mkdir{.path = dir / "a"}));
  EXPECT_EQ(client.failure.error_number, EEXIST);
  ASSERT_TRUE(client.Call<Done>(Mkdir{.path = dir / "a//b/./c/", .parents = 1}));
  ASSERT_TRUE(client.Call<Done>(Mkdir{.path = dir / "a/b/c", .parents = 1}));
  ASSERT_TRUE(WriteAll(client, {.path = dir / "f", .mode = OpenMode::kWrite}, "f"));
  ASSERT_TRUE(WriteAll(client, {.path = dir / "g", .mode = OpenMode::kWrite}, "g"));
  EXPECT_FALSE(client.Call<Done>(Move{.from = dir / "f", .to = dir / "g"}));
  EXPECT_EQ(client.failure.error_number, EEXIST);
  ASSERT_TRUE(client.Call<Done>(Move{.from = dir / "f", .to = dir / "g", .replace = 1}));
  EXPECT_EQ(ReadAll(client, dir / "g"), "f");
  ASSERT_TRUE(client.Call<Done>(SetMode{.path = dir / "g", .permissions = 04755}));
  EXPECT_EQ(client.Call<StatReply>(Stat{.path = dir / "g"})->info.mode & 07777, 0755u);
  EXPECT_FALSE(client.Call<Done>(Remove{.path = dir / "a"}));
  EXPECT_EQ(client.failure.error_number, ENOTEMPTY);
  ASSERT_TRUE(client.Call<Done>(Remove{.path = dir / "a/b/c"}));
  ASSERT_TRUE(client.Call<Done>(Remove{.path = dir / "g"}));
  EXPECT_FALSE(client.Call<Done>(Remove{.path = dir / "g"}));
  EXPECT_EQ(client.failure.error_number, ENOENT);
  for (const char* path : {"/", "/..", "/tmp/."}) {
    EXPECT_FALSE(client.Call<Done>(Remove{.path = path, .recursive = 1})) << path;
    EXPECT_EQ(client.failure.error_number, EINVAL) << path;
  }
}

TEST(Files, ActsWithTheRightsOfTheUser) {
  if (getuid() != 0) GTEST_SKIP() << "needs root";
  ScratchDir dir;
  TestClient client;
  ASSERT_TRUE(WriteAll(
      client, {.path = dir / "secret", .mode = OpenMode::kWrite, .permissions = 0600}, "s"));
  EXPECT_FALSE(ReadAll(client, dir / "secret", kOther));
  EXPECT_EQ(client.failure.error_number, EACCES);
  EXPECT_EQ(ReadAll(client, dir / "secret"), "s");
  ASSERT_TRUE(WriteAll(
      client,
      {.path = dir / "own", .user = kOther, .mode = OpenMode::kReplace, .permissions = 0600}, "o"));
  EXPECT_EQ(client.Call<StatReply>(Stat{.path = dir / "own"})->info.uid, 4711u);
  EXPECT_EQ(client.Call<StatReply>(Stat{.path = dir / "own"})->info.gid, 4711u);
  EXPECT_EQ(ReadAll(client, dir / "own"), "o");  // root of the sandbox may read it
  ASSERT_TRUE(client.Call<Done>(Mkdir{.path = dir / "closed", .permissions = 0700}));
  ASSERT_TRUE(client.Call<Done>(Mkdir{.path = dir / "closed/x"}));
  for (const uint8_t recursive : {0, 1}) {
    EXPECT_FALSE(client.Call<Done>(
        Remove{.path = dir / "closed/x", .user = kOther, .recursive = recursive}));
    EXPECT_EQ(client.failure.error_number, EACCES);
  }
  EXPECT_FALSE(
      client.Call<Done>(SetMode{.path = dir / "secret", .user = kOther, .permissions = 0777}));
  EXPECT_EQ(client.failure.error_number, EPERM);
  EXPECT_FALSE(client.Call<Entries>(ListDir{.path = dir / "closed", .user = kOther}));
  EXPECT_EQ(client.failure.error_number, EACCES);
}

TEST(Files, RemovesADeepTree) {
  ScratchDir dir;
  rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{.rlim_cur = 100, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);  // for init: the depth must not cost descriptors
  TestClient client;
  setrlimit(RLIMIT_NOFILE, &before);
  // 10 000 levels, each with a file and a link to the outside; far beyond PATH_MAX.
  const std::string outside = dir / "outside";
  ASSERT_EQ(mkdir(outside.c_str(), 0755), 0);
  close(open((outside + "/keep").c_str(), O_CREAT | O_WRONLY, 0644));
  ASSERT_EQ(mkdir((dir / "deep").c_str(), 0755), 0);
  int at = open((dir / "deep").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; i < 10'000; ++i) {
    if (i % 100 == 0) {
      close(openat(at, "file", O_CREAT | O_WRONLY, 0644));
      ASSERT_EQ(symlinkat(outside.c_str(), at, "link"), 0);
      ASSERT_EQ(mkdirat(at, "sibling", 0755), 0);
    }
    ASSERT_EQ(mkdirat(at, "d", 0755), 0);
    const int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(at);
    at = next;
  }
  close(at);
  ASSERT_TRUE(client.Call<Done>(Remove{.path = dir / "deep", .recursive = 1}))
      << client.failure.what;
  EXPECT_FALSE(Exists(dir / "deep"));
  EXPECT_TRUE(Exists(outside + "/keep"));
}

TEST(Files, RemovesAWideTreeAndSingleEntries) {
  ScratchDir dir;
  TestClient client;
  ASSERT_EQ(mkdir((dir / "wide").c_str(), 0755), 0);
  for (int i = 0; i < 3000; ++i) {
    const std::string name = dir / ("wide/d" + std::to_string(i));
    ASSERT_EQ(mkdir(name.c_str(), 0755), 0);
    if (i % 3 == 0) close(open((name + "/f").c_str(), O_CREAT | O_WRONLY, 0644));
  }
  ASSERT_TRUE(client.Call<Done>(Remove{.path = dir / "wide", .recursive = 1}))
      << client.failure.what;
  EXPECT_FALSE(Exists(dir / "wide"));
  ASSERT_EQ(symlink("/etc", (dir / "etc").c_str()), 0);
  ASSERT_TRUE(client.Call<Done>(Remove{.path = dir / "etc", .recursive = 1}));
  EXPECT_TRUE(Exists("/etc/passwd"));
  EXPECT_FALSE(client.Call<Done>(Remove{.path = dir / "absent", .recursive = 1}));
  EXPECT_EQ(client.failure.error_number, ENOENT);
}

}  // namespace
}  // namespace caisson::init
