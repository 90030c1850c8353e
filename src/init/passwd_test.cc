#include "init/passwd.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace caisson::init {
namespace {

constexpr std::string_view kPasswd =
    "root:x:0:0:root:/root:/bin/sh\n"
    "broken line\n"
    "app:x:1000:1001:App,,,:/home/app:/bin/sh\n"
    "app:x:0:0:a second one:/root:/bin/sh\n"
    "far:x:4294967296:0::/:/bin/sh\n"
    "minus:x:-1:0::/:/bin/sh\n"
    "zeros:x:00:0::/:/bin/sh\n"
    "nohome:x:1002:1002::relative:/bin/sh\n"
    "machine$:x:1003:1003::/:/bin/sh";
constexpr std::string_view kGroup =
    "root:x:0:\nwheel:x:10:app,other\nvideo:x:44:other,app\nmore:x:45:apple\nown:x:1001:app\ndup:x:"
    "44:app\nbad:x:99999:app\n";

struct Case {
  const char* description;
  std::string spec;
  int error;  // 0: found
  uint32_t uid = 0, gid = 0;
};

TEST(Passwd, GrammarAndLookup) {
  const Case cases[] = {
      {"a name", "root", 0, 0, 0},
      {"the first line of a name counts", "app", 0, 1000, 1001},
      {"a uid that passwd knows", "1000", 0, 1000, 1001},
      {"a uid that it does not know", "4711", 0, 4711, 4711},
      {"the highest uid", "65534", 0, 65534, 65534},
      {"a trailing dollar", "machine$", 0, 1003, 1003},
      {"the uid above", "65535", EINVAL},
      {"one too many", "65536", EINVAL},
      {"2^32", "4294967296", EINVAL},
      {"2^32-1", "4294967295", EINVAL},
      {"negative", "-1", EINVAL},
      {"plus", "+0", EINVAL},
      {"leading zero", "00", EINVAL},
      {"leading zero of a uid", "01000", EINVAL},
      {"user and group", "0:0", EINVAL},
      {"user and no group", "1000:", EINVAL},
      {"a colon", ":", EINVAL},
      {"hexadecimal", "0x0", EINVAL},
      {"space before", " 0", EINVAL},
      {"space after", "0 ", EINVAL},
      {"full-width digits", "\xef\xbc\x91\xef\xbc\x90", EINVAL},
      {"capitals", "Root", EINVAL},
      {"a NUL", std::string("root\0x", 6), EINVAL},
      {"a newline", "root\n", EINVAL},
      {"too long", std::string(33, 'a'), EINVAL},
      {"dollar in the middle", "a$b", EINVAL},
      {"nothing", "", EINVAL},
      {"a name that is not there", "nobody-here", ENOENT},
      {"an entry beyond 32 bits", "far", EINVAL},
      {"an entry below zero", "minus", EINVAL},
      {"an entry with leading zeros", "zeros", EINVAL},
  };
  for (const Case& c : cases) {
    const auto user = FindUser(c.spec, kPasswd, kGroup);
    EXPECT_EQ(user ? 0 : user.error().sys_errno(), c.error) << c.description;
    if (!user || c.error != 0) continue;
    EXPECT_EQ(user->uid, c.uid) << c.description;
    EXPECT_EQ(user->gid, c.gid) << c.description;
  }
}

TEST(Passwd, GroupsAreThoseThatListTheName) {
  const auto user = FindUser("app", kPasswd, kGroup);
  ASSERT_TRUE(user);
  EXPECT_EQ(user->groups, (std::vector<uint32_t>{10, 44}));
  EXPECT_EQ(user->home, "/home/app");
  EXPECT_TRUE(FindUser("4711", kPasswd, kGroup)->groups.empty());
}

TEST(Passwd, ARelativeHomeIsNone) { EXPECT_EQ(FindUser("nohome", kPasswd, kGroup)->home, ""); }

TEST(Passwd, GroupsAreBounded) {
  std::string group;
  for (int i = 1; i < 5000; ++i) group += "g:x:" + std::to_string(i) + ":app\n";
  EXPECT_EQ(FindUser("app", kPasswd, group)->groups.size(), kMaxGroups);
}

TEST(Passwd, MissingFilesMeanNobodyIsKnown) {
  EXPECT_EQ(ResolveUser("root", "/nonexistent").error().sys_errno(), ENOENT);
  EXPECT_EQ(ResolveUser("0", "/nonexistent")->uid, 0u);
  EXPECT_EQ(ResolveUser("root", "/dev/null").error().sys_errno(), ENOENT);
}

}  // namespace
}  // namespace caisson::init
