#include "sys/text_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace caisson::sys {
namespace {

class TextFileTest : public ::testing::Test {
 protected:
  TextFileTest() {
    char path[] = "/tmp/text_file_test.XXXXXX";
    dir_ = ::mkdtemp(path);
    fd_ = *TryOpenDir(AT_FDCWD, dir_.c_str());
  }
  ~TextFileTest() override {
    ::unlinkat(fd_.get(), "f", 0);
    ::rmdir(dir_.c_str());
  }
  void Put(std::string_view text) {
    UniqueFd file(::openat(fd_.get(), "f", O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
    ASSERT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::string dir_;
  UniqueFd fd_;
};

TEST_F(TextFileTest, WhatIsWrittenIsReadBackThroughTheSameDescriptor) {
  Put("max\n");
  char buffer[16];
  EXPECT_EQ(TryExchangeText(fd_.get(), "f", "12345\n", buffer), "12345\n");
}

TEST_F(TextFileTest, AMissingFileIsAnErrorThatNamesIt) {
  const auto text = ReadText(fd_.get(), "absent");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().sys_errno(), ENOENT);
  EXPECT_NE(text.error().message().find("absent"), std::string::npos);
  EXPECT_EQ(TryWriteText(fd_.get(), "absent", "x"), ENOENT);
}

TEST_F(TextFileTest, AFileAboveTheBoundIsAnErrorAndNotCut) {
  Put(std::string(5000, 'x'));
  EXPECT_TRUE(ReadText(fd_.get(), "f", 5000));
  EXPECT_FALSE(ReadText(fd_.get(), "f", 4999));
}

TEST(ShortTextTest, WhatDoesNotFitLeavesNothingToActOn) {
  ShortText text("abc");
  text.Add(std::string(253, 'x'));
  EXPECT_TRUE(text.overflowed());
  EXPECT_EQ(text.view(), "");
  text.Add("y");
  EXPECT_STREQ(text.c_str(), "");
  EXPECT_EQ(TryWriteText(AT_FDCWD, text.c_str(), "x"), ENAMETOOLONG);
}

TEST(ShortTextTest, HoldsUpTo255Bytes) {
  ShortText text(std::string(255, 'x'));
  EXPECT_FALSE(text.overflowed());
  EXPECT_EQ(text.view().size(), 255u);
}

TEST(TextTest, NumbersEndAtWhiteSpaceOrTheEnd) {
  EXPECT_EQ(ParseNumber("12\n"), 12u);
  EXPECT_EQ(ParseNumber("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(ParseNumber("18446744073709551616"), std::nullopt);
  EXPECT_EQ(ParseNumber("12x"), std::nullopt);
  EXPECT_EQ(ParseNumber("-1"), std::nullopt);
  EXPECT_EQ(ParseNumber(""), std::nullopt);
}

TEST(TextTest, AKeyIsAWholeWordAtTheStartOfALine) {
  constexpr std::string_view kText = "oom 1\noom_kill 3\nxoom_kill_disable 9\n";
  EXPECT_EQ(NumberOf(kText, "oom_kill"), 3u);
  EXPECT_EQ(NumberOf(kText, "oom"), 1u);
  EXPECT_EQ(NumberOf(kText, "kill"), std::nullopt);
}

TEST(TextTest, WordsAreFoundWhole) {
  EXPECT_TRUE(HasWord("rw,cpu,cpuacct", "cpu"));
  EXPECT_FALSE(HasWord("rw,cpuacct", "cpu"));
  EXPECT_TRUE(HasWord("cpuset cpu io\n", "io"));
}

}  // namespace
}  // namespace caisson::sys
