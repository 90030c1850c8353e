#include "providers/native/import_tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "providers/native/tar_extract.h"
#include "providers/native/tar_jail.h"

namespace caisson::native {
namespace {

namespace fs = std::filesystem;

// --- making archives, hostile ones included ---------------------------------------------------

struct Entry {
  std::string name;
  char type = '0';  // '0' file, '1' hard link, '2' link, '3' device, '5' directory, '6' FIFO
  std::string content = {};
  std::string link = {};
  unsigned mode = 0644;
  unsigned uid = 0;
  uint64_t claimed_size = UINT64_MAX;  // instead of the content's
};

std::string Header(const Entry& entry, uint64_t size) {
  std::string block(512, '\0');
  const auto put = [&](size_t at, const std::string& text) {
    block.replace(at, text.size(), text);
  };
  const auto octal = [](uint64_t value, int digits) {
    char text[32];
    std::snprintf(text, sizeof text, "%0*llo", digits, static_cast<unsigned long long>(value));
    return std::string(text);
  };
  put(0, entry.name.substr(0, 100));
  put(100, octal(entry.mode, 7));
  put(108, octal(entry.uid, 7));
  put(116, octal(entry.uid, 7));
  put(124, octal(size, 11));
  put(136, octal(1'700'000'000, 11));
  block[156] = entry.type;
  put(157, entry.link.substr(0, 100));
  put(257, std::string("ustar\0"
                       "00",
                       8));
  put(148, "        ");
  unsigned sum = 0;
  for (const unsigned char c : block) sum += c;
  put(148, octal(sum, 6) + std::string("\0 ", 2));
  return block;
}

std::string Tar(const std::vector<Entry>& entries) {
  std::string tar;
  for (const Entry& entry : entries) {
    tar +=
        Header(entry, entry.claimed_size == UINT64_MAX ? entry.content.size() : entry.claimed_size);
    tar += entry.content;
    tar.resize((tar.size() + 511) / 512 * 512);
  }
  return tar + std::string(1024, '\0');
}

// A pax extended header that sets `key` for the entry that follows.
Entry Pax(const std::string& key, const std::string& value) {
  std::string record = " " + key + "=" + value + "\n";
  size_t length = record.size() + 1;
  while (std::to_string(length).size() + record.size() != length) ++length;
  return {.name = "pax", .type = 'x', .content = std::to_string(length) + record};
}

std::string Compress(const std::string& data, int (*add_filter)(archive*)) {
  archive* writer = archive_write_new();
  std::string out(data.size() + (1 << 20), '\0');
  size_t used = 0;
  archive_write_set_format_raw(writer);
  add_filter(writer);
  archive_write_set_bytes_in_last_block(writer, 1);
  archive_write_open_memory(writer, out.data(), out.size(), &used);
  archive_entry* entry = archive_entry_new();
  archive_entry_set_filetype(entry, AE_IFREG);
  archive_write_header(writer, entry);
  archive_write_data(writer, data.data(), data.size());
  archive_write_close(writer);
  archive_entry_free(entry);
  archive_write_free(writer);
  out.resize(used);
  return out;
}

const std::vector<Entry> kGood = {
    {.name = "./", .type = '5', .mode = 0700},
    {.name = "./usr/", .type = '5', .mode = 0755},
    {.name = "./usr/bin/", .type = '5', .mode = 0555},
    {.name = "./usr/bin/tool", .content = "#!/bin/sh\n", .mode = 04755},
    {.name = "./usr/bin/same", .type = '1', .link = "./usr/bin/tool"},
    {.name = "./bin", .type = '2', .link = "usr/bin", .mode = 0777},
    {.name = "./home/me/file", .content = "mine", .mode = 0600, .uid = 1000},
    {.name = "./dev/null", .type = '3', .mode = 0666},
    {.name = "./run/pipe", .type = '6', .mode = 0666},
    {.name = "./etc/names-\xc3\xa4-\xff", .content = "bytes"},
};

class ImportTarTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/caisson-import-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    base_ = path;
    cache_ = base_ / "cache";
  }
  void TearDown() override {
    for (const char* dir : {"cache", "cache/roots"}) {
      if (!fs::exists(base_ / dir)) continue;
      for (const auto& entry : fs::directory_iterator(base_ / dir))
        EXPECT_FALSE(entry.path().filename().string().starts_with(".draft-"))
            << "left: " << entry.path();
    }
    fs::remove_all(base_);
  }
  std::string Write(const std::string& name, const std::string& bytes) {
    std::ofstream(base_ / name, std::ios::binary) << bytes;
    return base_ / name;
  }
  Result<RootPlan> Import(const std::string& bytes, const ImportLimits& limits = {}) {
    return ImportTar(Write("root.tar", bytes), cache_, limits);
  }
  void ExpectInvalid(const std::string& bytes, std::string_view word,
                     const ImportLimits& limits = {}) {
    auto plan = Import(bytes, limits);
    ASSERT_FALSE(plan) << "accepted what should say " << word;
    EXPECT_EQ(plan.error().code(), ErrorCode::kImageInvalid) << plan.error().message();
    EXPECT_TRUE(plan.error().message().contains(word)) << plan.error().message();
    EXPECT_FALSE(plan.error().remedy().empty());
  }

  fs::path base_;
  fs::path cache_;
};

std::string Slurp(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct stat Stat(const fs::path& path) {
  struct stat info{};
  EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
  return info;
}

std::vector<Entry> With(std::vector<Entry> more) {
  std::vector<Entry> all = {{.name = "usr/bin/", .type = '5', .mode = 0755}};
  std::ranges::move(more, std::back_inserter(all));
  return all;
}

TEST_F(ImportTarTest, UnpacksARootFromEveryCompression) {
  const std::string tar = Tar(kGood);
  for (const std::string& bytes :
       {tar, Compress(tar, archive_write_add_filter_gzip),
        Compress(tar, archive_write_add_filter_xz), Compress(tar, archive_write_add_filter_zstd)}) {
    auto plan = Import(bytes);
    ASSERT_TRUE(plan) << plan.error().message();
    const fs::path root = plan->overlays.at(0).outside;
    EXPECT_EQ(plan->overlays[0].inside, "/");
    EXPECT_EQ(Slurp(root / "usr/bin/tool"), "#!/bin/sh\n");
    EXPECT_EQ(Stat(root / "usr/bin/tool").st_mode, static_cast<mode_t>(S_IFREG | 0755))
        << "set-id bits are dropped";
    EXPECT_EQ(Stat(root / "usr/bin/tool").st_ino, Stat(root / "usr/bin/same").st_ino);
    EXPECT_EQ(Stat(root / "usr/bin").st_mode, static_cast<mode_t>(S_IFDIR | 0555));
    EXPECT_EQ(Stat(root).st_mode, static_cast<mode_t>(S_IFDIR | 0755));
    EXPECT_EQ(fs::read_symlink(root / "bin"), "usr/bin");
    EXPECT_EQ(Slurp(root / "etc/names-\xc3\xa4-\xff"), "bytes");
    EXPECT_FALSE(fs::exists(fs::symlink_status(root / "dev/null")));
    EXPECT_FALSE(fs::exists(fs::symlink_status(root / "run/pipe")));
    if (::geteuid() == 0) EXPECT_EQ(Stat(root / "home/me/file").st_uid, 1000u);
  }
}

TEST_F(ImportTarTest, TheSameContentIsUnpackedOnceAndTheSameFileNotEvenRead) {
  const std::string path = Write("a.tar", Tar(kGood));
  std::this_thread::sleep_for(std::chrono::milliseconds(2100));  // old enough to be remembered
  auto first = ImportTar(path, cache_);
  ASSERT_TRUE(first) << first.error().message();
  const auto start = std::chrono::steady_clock::now();
  auto second = ImportTar(path, cache_);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(5));
  ASSERT_TRUE(second);
  EXPECT_EQ(*first, *second);
  const auto made = fs::last_write_time(first->overlays[0].outside);
  auto copy = ImportTar(Write("b.tar", Tar(kGood)), cache_);
  ASSERT_TRUE(copy);
  EXPECT_EQ(*first, *copy);
  EXPECT_EQ(fs::last_write_time(first->overlays[0].outside), made);
  auto other = ImportTar(Write("a.tar", Tar(With({{.name = "new", .content = "x"}}))), cache_);
  ASSERT_TRUE(other);
  EXPECT_NE(first->key, other->key);
}

TEST_F(ImportTarTest, RefusesNamesThatLeaveTheArchive) {
  ExpectInvalid(Tar(With({{.name = "/etc/cron.d/x", .content = "evil"}})), "absolute");
  ExpectInvalid(Tar(With({{.name = "../x", .content = "evil"}})), "..");
  ExpectInvalid(Tar(With({{.name = "usr/../../x", .content = "evil"}})), "..");
  ExpectInvalid(Tar(With({Pax("path", "/abs"), {.name = "x", .content = "evil"}})), "absolute");
  ExpectInvalid(Tar(With({Pax("path", std::string(300, 'n')), {.name = "x"}})), "too long");
  std::string deep;
  while (deep.size() < 5000) deep += "d/";
  ExpectInvalid(Tar(With({Pax("path", deep + "x"), {.name = "x"}})), "too long");
}

TEST_F(ImportTarTest, RefusesFilesThroughLinks) {
  const std::string outside = base_ / "outside";
  fs::create_directories(outside);
  for (const std::string& target : {outside, std::string("../../outside"), std::string("usr")}) {
    ExpectInvalid(
        Tar(With({{.name = "a", .type = '2', .link = target}, {.name = "a/x", .content = "evil"}})),
        "through a link");
    ExpectInvalid(
        Tar(With({{.name = "a", .type = '2', .link = target}, {.name = "a/d/", .type = '5'}})),
        "through a link");
  }
  EXPECT_TRUE(fs::is_empty(outside));
  // A file that takes the place of a link replaces the link, not what it leads to.
  Write("victim", "precious");
  auto plan = Import(Tar(With(
      {{.name = "a", .type = '2', .link = base_ / "victim"}, {.name = "a", .content = "new"}})));
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(Slurp(fs::path(plan->overlays[0].outside) / "a"), "new");
  EXPECT_EQ(Slurp(base_ / "victim"), "precious");
}

TEST_F(ImportTarTest, RefusesHardLinksToAnythingButItsOwnFiles) {
  ExpectInvalid(Tar(With({{.name = "a", .type = '1', .link = "/etc/passwd"}})), "hard link");
  ExpectInvalid(Tar(With({{.name = "a", .type = '1', .link = "../../etc/passwd"}})), "hard link");
  ExpectInvalid(Tar(With({{.name = "a", .type = '1', .link = "etc/passwd"}})), "hard link");
  ExpectInvalid(Tar(With({{.name = "l", .type = '2', .link = "/etc/passwd"},
                          {.name = "a", .type = '1', .link = "l"}})),
                "hard link");
  ExpectInvalid(Tar(With({{.name = "l", .type = '2', .link = "/etc"},
                          {.name = "a", .type = '1', .link = "l/passwd"}})),
                "hard link");
  ExpectInvalid(Tar(With({{.name = "a", .type = '1', .link = "usr"}})), "hard link");
}

TEST_F(ImportTarTest, DropsExtendedAttributes) {
  auto plan = Import(Tar(With({Pax("SCHILY.xattr.user.overlay.opaque", "y"),
                               {.name = "usr/bin/a", .content = "x"},
                               Pax("SCHILY.xattr.security.capability", "\1\0\0\2"),
                               {.name = "usr/bin/b", .content = "x"},
                               Pax("SCHILY.xattr.trusted.overlay.redirect", "/x"),
                               {.name = "usr/lib/", .type = '5', .mode = 0755}})));
  ASSERT_TRUE(plan) << plan.error().message();
  for (const char* name : {"usr/bin/a", "usr/bin/b", "usr/lib"}) {
    const std::string path = fs::path(plan->overlays[0].outside) / name;
    EXPECT_LE(::llistxattr(path.c_str(), nullptr, 0), 0) << name;
  }
}

TEST_F(ImportTarTest, HoldsTheLimits) {
  const std::string tar = Tar(kGood);
  ExpectInvalid(tar, "entries", {.max_entries = 3});
  ExpectInvalid(tar, "bytes", {.max_bytes = 5});
  ExpectInvalid(Tar(With({{.name = "big", .content = std::string(100'000, 'x')}})), "larger",
                {.max_file_bytes = 50'000});
  // A file that claims 28 GiB.
  ExpectInvalid(Tar(With({{.name = "sparse", .claimed_size = uint64_t{7} << 32}})), "larger");
  auto late = Import(tar, {.deadline_seconds = 0});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::kDeadlineExceeded);
}

TEST_F(ImportTarTest, RefusesCompressionBombs) {
  const std::string zeros = Tar(With({{.name = "zeros", .content = std::string(16 << 20, '\0')}}));
  ExpectInvalid(Compress(zeros, archive_write_add_filter_zstd), "times its size");
  ExpectInvalid(Compress(zeros, archive_write_add_filter_xz), "times its size");
  const std::string once = Compress(Tar(kGood), archive_write_add_filter_gzip);
  ExpectInvalid(Compress(once, archive_write_add_filter_gzip), "more than once");
  // zstd: a frame that asks for a window of 2 GiB.
  ExpectInvalid(std::string("\x28\xb5\x2f\xfd\x00\xa8", 6) + std::string(100, '\0'), "window");
}

TEST_F(ImportTarTest, RefusesWhatIsNoRoot) {
  ExpectInvalid("this is not a tar at all, whatever its name says", "");
  ExpectInvalid(Tar(kGood).substr(0, 700), "");
  ExpectInvalid(Tar({}), "");
  ExpectInvalid(Tar({{.name = "readme.txt", .content = "hello"}}), "none of /usr");
  ExpectInvalid(Tar(With({{.name = "manifest.json", .content = "[]"}})), "image archive");
  ExpectInvalid(Tar(With({{.name = "proc", .type = '2', .link = "/etc"}})),
                "/proc is a symbolic link");
  ExpectInvalid(Tar(With({{.name = "dev", .content = "x"}})), "/dev is a file");
  for (const std::string& path :
       {std::string("/nonexistent.tar"), base_.string(), std::string("/dev/null")}) {
    auto plan = ImportTar(path, cache_);
    ASSERT_FALSE(plan) << path;
    EXPECT_EQ(plan.error().code(), ErrorCode::kImageInvalid);
    EXPECT_TRUE(plan.error().message().contains(path));
  }
}

TEST_F(ImportTarTest, SurvivesEveryTruncationAndManyFlippedBytes) {
  const std::string good = Compress(Tar(kGood), archive_write_add_filter_gzip);
  for (size_t size = 1; size < good.size(); size += 23) {
    auto plan = Import(good.substr(0, size));
    if (!plan) EXPECT_EQ(plan.error().code(), ErrorCode::kImageInvalid) << plan.error().message();
  }
  const std::string plain = Tar(kGood);
  for (size_t at = 0; at < plain.size(); at += 331) {
    std::string bad = plain;
    bad[at] = static_cast<char>(bad[at] ^ 0x55);
    auto plan = Import(bad);
    if (!plan) EXPECT_EQ(plan.error().code(), ErrorCode::kImageInvalid) << plan.error().message();
  }
}

TEST_F(ImportTarTest, WorksForAnOrdinaryUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "runs as one already";
  const std::string path = Write("root.tar", Tar(kGood));
  ASSERT_EQ(::chmod(base_.c_str(), 0777), 0);
  const pid_t pid = ::fork();
  if (pid == 0) {
    if (::setresgid(12345, 12345, 12345) != 0 || ::setresuid(12345, 12345, 12345) != 0) ::_exit(2);
    auto plan = ImportTar(path, cache_);
    if (!plan) {
      std::fprintf(stderr, "%s\n", plan.error().message().c_str());
      ::_exit(plan.error().code() == ErrorCode::kIsolationFailed ? 3 : 1);
    }
    struct stat info{};
    const bool ours = ::stat((plan->overlays[0].outside + "/home/me/file").c_str(), &info) == 0 &&
                      info.st_uid == 12345;
    ::_exit(ours ? 0 : 4);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  if (WEXITSTATUS(status) == 3) GTEST_SKIP() << "no user namespaces for ordinary users here";
  EXPECT_EQ(status, 0);
}

// Looks at the child from outside while it waits for its first byte.
TEST_F(ImportTarTest, TheChildIsConfined) {
  fs::create_directories(base_ / "target");
  auto jail = StartTarJail(base_ / "target", {});
  ASSERT_TRUE(jail) << jail.error().message();
  const std::string outer = "/proc/" + std::to_string(jail->child.pid());
  std::string inner;
  std::string status;
  for (int i = 0; i < 500 && !status.contains("Seccomp:\t2"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::string worker = Slurp(outer + "/task/" + outer.substr(6) + "/children");
    worker = worker.substr(0, worker.find(' '));
    if (worker.empty()) continue;
    inner = "/proc/" + worker;
    status = Slurp(inner + "/status");
  }
  ASSERT_TRUE(status.contains("Seccomp:\t2")) << status;
  EXPECT_TRUE(status.contains("NoNewPrivs:\t1"));
  const std::string caps = ::geteuid() == 0 ? "000000000000001b" : "0000000000000000";
  for (const char* set : {"CapPrm:\t", "CapEff:\t", "CapBnd:\t"})
    EXPECT_TRUE(status.contains(set + caps)) << status;
  for (const char* name : {"mnt", "net", "ipc", "pid", "uts"}) {
    EXPECT_NE(fs::read_symlink(inner + "/ns/" + name),
              fs::read_symlink(std::string("/proc/self/ns/") + name))
        << name;
  }
  const std::string mounts = Slurp(inner + "/mountinfo");
  EXPECT_EQ(std::ranges::count(mounts, '\n'), 1) << mounts;
  EXPECT_TRUE(mounts.contains("nosuid,nodev,noexec")) << mounts;
  const auto fds = std::distance(fs::directory_iterator(inner + "/fd"), fs::directory_iterator());
  EXPECT_EQ(fds, 6) << "three standard streams, the archive, the report, the root";
}

TEST_F(ImportTarTest, DirectoriesAreCheckedAndLeftAsTheyAre) {
  const fs::path root = base_ / "root";
  fs::create_directories(root / "usr");
  fs::create_directories(root / "proc");
  auto plan = DirectoryRoot(root);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->overlays, (std::vector<OverlaySource>{{"/", root}}));
  fs::create_directory_symlink(root, base_ / "alias");
  EXPECT_EQ(*DirectoryRoot(base_ / "alias"), *plan);
  for (const char* name : {"dev", "tmp", "workspace", "etc"}) {
    fs::create_symlink("/", root / name);
    auto bad = DirectoryRoot(root);
    ASSERT_FALSE(bad) << name;
    EXPECT_EQ(bad.error().code(), ErrorCode::kImageInvalid);
    EXPECT_TRUE(bad.error().message().contains(std::string("/") + name)) << bad.error().message();
    EXPECT_FALSE(bad.error().remedy().empty());
    fs::remove(root / name);
  }
  for (const std::string& path :
       {std::string("/"), std::string("/nonexistent"), std::string("/etc/passwd"), std::string()}) {
    auto bad = DirectoryRoot(path);
    ASSERT_FALSE(bad) << path;
    EXPECT_EQ(bad.error().code(), ErrorCode::kImageInvalid);
  }
}

TEST(TarExtract, NormalisesNames) {
  EXPECT_EQ(*NormalEntryName("./a//b/./c/"), "a/b/c");
  EXPECT_EQ(*NormalEntryName("./"), "");
  EXPECT_EQ(*NormalEntryName("..a/b.."), "..a/b..");
  EXPECT_FALSE(NormalEntryName("a/.."));
  EXPECT_FALSE(NormalEntryName("/a"));
}

TEST(TarExtract, ReadsWindowsFromHeads) {
  const auto window = [](std::initializer_list<unsigned char> head) {
    return DeclaredWindow({head.begin(), head.size()});
  };
  EXPECT_EQ(window({0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x68, 0}), uint64_t{8} << 20);
  EXPECT_EQ(window({0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40, 0}),
            uint64_t{1} << 30);  // one segment of 1 GiB
  // xz -6: 8 MiB; dictionary byte 40: 4 GiB - 1.
  EXPECT_EQ(window({0xfd, '7', 'z',  'X', 'Z',  0, 0, 4, 0, 0, 0, 0,
                    2,    0,   0x21, 1,   0x16, 0, 0, 0, 0, 0, 0, 0}),
            uint64_t{8} << 20);
  EXPECT_EQ(window({0xfd, '7', 'z',  'X', 'Z', 0, 0, 4, 0, 0, 0, 0,
                    2,    0,   0x21, 1,   40,  0, 0, 0, 0, 0, 0, 0}),
            UINT32_MAX);
  EXPECT_EQ(window({'u', 's', 't', 'a', 'r'}), 0u);
  EXPECT_EQ(window({}), 0u);
}

}  // namespace
}  // namespace caisson::native
