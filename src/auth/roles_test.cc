#include "auth/roles.h"

#include <gtest/gtest.h>

namespace caisson::auth {
namespace {

Principal As(Role role) {
  Principal principal;
  principal.role = role;
  return principal;
}

TEST(Roles, OnlyAnAdminMakesKeys) {
  for (const Role role : {Role::kOperator, Role::kDeveloper, Role::kViewer, Role::kAgent})
    EXPECT_FALSE(As(role).Allows(Verb::kCreate, Resource::kKeys)) << NameOf(role);
  EXPECT_TRUE(As(Role::kAdmin).Allows(Verb::kCreate, Resource::kKeys));
}

TEST(Roles, AViewerChangesNothing) {
  for (const Verb verb : {Verb::kCreate, Verb::kUpdate, Verb::kDelete, Verb::kExecute})
    for (int resource = 0; resource <= static_cast<int>(Resource::kSystem); ++resource)
      EXPECT_FALSE(As(Role::kViewer).Allows(verb, static_cast<Resource>(resource)));
  EXPECT_TRUE(As(Role::kViewer).Allows(Verb::kRead, Resource::kSessions));
}

TEST(Roles, AnOperatorRunsNothingAndReadsNoFiles) {
  EXPECT_FALSE(As(Role::kOperator).Allows(Verb::kExecute, Resource::kProcesses));
  EXPECT_FALSE(As(Role::kOperator).Allows(Verb::kRead, Resource::kFiles));
  EXPECT_TRUE(As(Role::kOperator).Allows(Verb::kDelete, Resource::kSessions));
}

TEST(Roles, ScopesNarrowAndNeverWiden) {
  auto developer = As(Role::kDeveloper);
  developer.scopes = *ParseScopes("read:sessions  *:files create:keys");
  EXPECT_TRUE(developer.Allows(Verb::kRead, Resource::kSessions));
  EXPECT_FALSE(developer.Allows(Verb::kCreate, Resource::kSessions));
  EXPECT_TRUE(developer.Allows(Verb::kDelete, Resource::kFiles));
  EXPECT_FALSE(developer.Allows(Verb::kCreate, Resource::kKeys));
  EXPECT_EQ(ToText(developer.scopes), "read:sessions *:files create:keys");
}

TEST(Roles, ATokenOfOneSessionMakesNoOther) {
  auto token = As(Role::kDeveloper);
  token.session = "s1";
  EXPECT_TRUE(token.Allows(Verb::kExecute, Resource::kProcesses));
  EXPECT_TRUE(token.Allows(Verb::kDelete, Resource::kSessions));
  EXPECT_FALSE(token.Allows(Verb::kCreate, Resource::kSessions));
  EXPECT_FALSE(token.Allows(Verb::kRead, Resource::kUsage));
}

TEST(Roles, WhatIsNoScopeIsRefused) {
  for (const char* bad : {"read", "read:", ":files", "look:files", "read:file", "read:files,x"})
    EXPECT_FALSE(ParseScopes(bad)) << bad;
  EXPECT_FALSE(RoleFrom("root"));
  EXPECT_EQ(*RoleFrom("agent"), Role::kAgent);
}

}  // namespace
}  // namespace caisson::auth
