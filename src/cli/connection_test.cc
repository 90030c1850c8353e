#include "cli/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "cli/api_client.h"
#include "cli/verbs.h"

namespace caisson::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

// A configuration directory of the test's own, and no variable that means a server.
class ConnectionTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/caisson-connection-XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    dir_ = path;
    ::setenv("XDG_CONFIG_HOME", path, 1);
    for (const Option& option : kConnectionOptions) ::unsetenv(std::string(option.env).c_str());
  }
  void TearDown() override {
    ::unlink(LoginPath().c_str());
    ::rmdir((dir_ + "/caisson").c_str());
    ::rmdir(dir_.c_str());
    ::unsetenv("XDG_CONFIG_HOME");
  }
  Connection Resolved(std::vector<std::string_view> args) {
    args.insert(args.begin(), "ls");
    auto invocation = Parse(TheTestProgram(), args, Surroundings::OfThisProcess());
    EXPECT_TRUE(invocation) << invocation.error().message();
    auto connection = ResolveConnection(invocation->parsed);
    EXPECT_TRUE(connection) << connection.error().message();
    return *connection;
  }
  static const Program& TheTestProgram() {
    static const Verb kVerbs[] = {LsVerb()};
    static const Program kProgram = {
        .name = "caisson", .version = "1", .summary = "boxes", .verbs = kVerbs};
    return kProgram;
  }
  std::string dir_;
};

TEST_F(ConnectionTest, NobodyLoggedInMeansTheDefault) {
  const Connection connection = Resolved({});
  EXPECT_EQ(connection.url.value, kDefaultUrl);
  EXPECT_EQ(connection.url.source, "default");
  EXPECT_EQ(connection.key.value, "");
}

TEST_F(ConnectionTest, TheCommandLineGoesBeforeTheEnvironmentAndThatBeforeTheLogin) {
  ASSERT_TRUE(StoreLogin({"http://stored:1", "stored-key", ""}));
  EXPECT_EQ(Resolved({}).url.value, "http://stored:1");
  EXPECT_EQ(Resolved({}).key.value, "stored-key");
  EXPECT_EQ(Resolved({}).key.source, LoginPath());
  ::setenv("CAISSON_API_KEY", "from-environment", 1);
  EXPECT_EQ(Resolved({}).key.source, "CAISSON_API_KEY");
  EXPECT_EQ(Resolved({"--key", "from-line"}).key.value, "from-line");
  EXPECT_EQ(Resolved({"--key", "from-line"}).key.source, "--key");
}

TEST_F(ConnectionTest, AStoredKeyGoesToNoOtherServer) {
  ASSERT_TRUE(StoreLogin({"http://stored:1", "stored-key", ""}));
  EXPECT_EQ(Resolved({"--url", "http://other:1"}).key.value, "");
  EXPECT_EQ(Resolved({"--url", "http://stored:1"}).key.value, "stored-key");
}

TEST_F(ConnectionTest, TheLoginIsForItsOwnerAlone) {
  ASSERT_TRUE(StoreLogin({"http://stored:1", "stored-key", ""}));
  struct stat info{};
  ASSERT_EQ(::stat(LoginPath().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ::chmod(LoginPath().c_str(), 0640);
  const auto login = LoadLogin();
  ASSERT_FALSE(login);
  EXPECT_EQ(login.error().code(), ErrorCode::kPermissionDenied);
  EXPECT_THAT(login.error().message(), Not(HasSubstr("stored-key")));
}

TEST_F(ConnectionTest, ALoginThatIsNoneIsRefusedAndCanBeForgotten) {
  ASSERT_TRUE(StoreLogin({"http://stored:1", "", ""}));
  std::ofstream(LoginPath()) << "{\"url\": 3}";
  EXPECT_FALSE(LoadLogin());
  EXPECT_TRUE(*ForgetLogin());
  EXPECT_FALSE(*ForgetLogin());
  EXPECT_FALSE(LoadLogin()->has_value());
}

TEST(Answers, AProblemBecomesTheErrorThatItNames) {
  const Error error = ErrorOfAnswer(
      410, R"({"code":"gone","detail":"session x has ended","remediation":"create another"})");
  EXPECT_EQ(error.code(), ErrorCode::kGone);
  EXPECT_EQ(error.message(), "session x has ended (gone)");
  EXPECT_EQ(error.remedy(), "create another");
  EXPECT_THAT(
      ErrorOfAnswer(500, R"({"code":"internal","detail":"broke","request_id":"r1"})").message(),
      HasSubstr("request r1"));
}

TEST(Answers, WhatIsNoProblemIsToldByItsStatus) {
  EXPECT_EQ(ErrorOfAnswer(502, "<html>").code(), ErrorCode::kUnavailable);
  EXPECT_EQ(ErrorOfAnswer(404, "").code(), ErrorCode::kNotFound);
  EXPECT_EQ(ErrorOfAnswer(400, R"({"code":"from_the_future"})").code(),
            ErrorCode::kInvalidArgument);
  EXPECT_THAT(ErrorOfAnswer(502, "<html>").message(), HasSubstr("502 Bad Gateway"));
}

TEST(Targets, AreEncoded) {
  EXPECT_EQ(SessionTarget("a/b ?", "/exec"), "/api/sessions/a%2Fb%20%3F/exec");
  EXPECT_EQ(Query({{"path", "/a b"}, {"none", std::nullopt}, {"x", "1"}}), "?path=%2Fa%20b&x=1");
}

}  // namespace
}  // namespace caisson::cli
