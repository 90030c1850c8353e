#include "cli/tar_pipe.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace caisson::cli {
namespace {

namespace fs = std::filesystem;

class TarPipeTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/caisson-tar-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    dir_ = path;
    fs::create_directories(dir_ / "from");
    fs::create_directories(dir_ / "to");
  }
  void TearDown() override { fs::remove_all(dir_); }

  static std::string ReadAll(int fd) {
    std::string all;
    char buffer[65536];
    for (;;) {
      pollfd ready{fd, POLLIN, 0};
      ::poll(&ready, 1, -1);
      const ssize_t got = ::read(fd, buffer, sizeof buffer);
      if (got <= 0) return all;
      all.append(buffer, static_cast<size_t>(got));
    }
  }
  Status Unpack(const std::string& archive) {
    auto pipe = TarPipe::Unpack(dir_ / "to");
    EXPECT_TRUE(pipe);
    for (size_t at = 0; at < archive.size();) {
      const ssize_t wrote = ::write((*pipe)->fd(), archive.data() + at, archive.size() - at);
      if (wrote <= 0) break;
      at += static_cast<size_t>(wrote);
    }
    return (*pipe)->Finish();
  }
  // An archive of one entry, after a symbolic link `link` that leads to `leads_to`.
  static std::string Archive(const char* name, unsigned type, const char* leads_to) {
    std::string bytes(1 << 20, '\0');
    size_t used = 0;
    archive* out = archive_write_new();
    archive_write_set_format_pax_restricted(out);
    archive_write_open_memory(out, bytes.data(), bytes.size(), &used);
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, "link");
    archive_entry_set_filetype(entry, AE_IFLNK);
    archive_entry_set_symlink(entry, leads_to);
    archive_write_header(out, entry);
    archive_entry_clear(entry);
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, type);
    archive_entry_set_perm(entry, 04755);
    archive_entry_set_size(entry, 0);
    archive_write_header(out, entry);
    archive_entry_free(entry);
    archive_write_close(out);
    archive_write_free(out);
    bytes.resize(used);
    return bytes;
  }

  fs::path dir_;
};

TEST_F(TarPipeTest, ATreeComesOutAsItWentIn) {
  fs::create_directories(dir_ / "from/a/b");
  const std::string big(3 << 20, 'x');
  std::ofstream(dir_ / "from/a/b/big") << big;
  std::ofstream(dir_ / ("from/" + std::string(200, 'n'))) << "long";
  fs::create_symlink("b/big", dir_ / "from/a/link");
  auto packed = TarPipe::Pack(dir_ / "from");
  ASSERT_TRUE(packed);
  const std::string archive = ReadAll((*packed)->fd());
  ASSERT_TRUE((*packed)->Finish());
  const auto unpacked = Unpack(archive);
  ASSERT_TRUE(unpacked) << unpacked.error().message();
  EXPECT_EQ(fs::file_size(dir_ / "to/a/b/big"), big.size());
  EXPECT_EQ(fs::read_symlink(dir_ / "to/a/link"), "b/big");
  EXPECT_TRUE(fs::exists(dir_ / ("to/" + std::string(200, 'n'))));
}

TEST_F(TarPipeTest, WhatCannotBePackedIsAnError) {
  auto packed = TarPipe::Pack(dir_ / "nothing");
  ASSERT_TRUE(packed);
  ReadAll((*packed)->fd());
  EXPECT_FALSE((*packed)->Finish());
}

TEST_F(TarPipeTest, APackingThatNobodyReadsEnds) {
  std::ofstream(dir_ / "from/big") << std::string(8 << 20, 'x');
  auto packed = TarPipe::Pack(dir_ / "from");
  ASSERT_TRUE(packed);
  ::signal(SIGPIPE, SIG_IGN);
  EXPECT_FALSE((*packed)->Finish());
}

TEST_F(TarPipeTest, NothingIsUnpackedOutsideOfTheDirectory) {
  const std::string outside = dir_ / "outside";
  fs::create_directories(outside);
  EXPECT_FALSE(Unpack(Archive("../outside/a", AE_IFREG, "x")));
  EXPECT_FALSE(Unpack(Archive((outside + "/b").c_str(), AE_IFREG, "x")));
  // A link in the way is replaced by a directory.
  EXPECT_TRUE(Unpack(Archive("link/c", AE_IFREG, outside.c_str())));
  EXPECT_TRUE(fs::is_directory(fs::symlink_status(dir_ / "to/link")));
  EXPECT_TRUE(fs::is_empty(outside));
}

TEST_F(TarPipeTest, DevicesAreRefusedAndSetIdBitsDropped) {
  EXPECT_FALSE(Unpack(Archive("fifo", AE_IFIFO, "x")));
  EXPECT_FALSE(Unpack(Archive("device", AE_IFCHR, "x")));
  ASSERT_TRUE(Unpack(Archive("program", AE_IFREG, "x")));
  struct stat info{};
  ASSERT_EQ(::stat((dir_ / "to/program").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07000, 0u);
}

TEST_F(TarPipeTest, AnArchiveThatIsCutOffIsAnError) {
  std::ofstream(dir_ / "from/file") << std::string(100'000, 'x');
  auto packed = TarPipe::Pack(dir_ / "from");
  const std::string archive = ReadAll((*packed)->fd());
  EXPECT_FALSE(Unpack(archive.substr(0, 50'000)));
}

}  // namespace
}  // namespace caisson::cli
