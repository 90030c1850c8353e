#include "launcher/spares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caisson::launcher {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

wire::launcher::Create Asking(const std::string& id, uint64_t memory = 64 << 20) {
  wire::launcher::Create spec;
  spec.id = id;
  spec.root_key = "host";
  spec.limits.memory_bytes = memory;
  return spec;
}

// As many spares as are wanted, with these serials, all ready.
void Fill(Spares& spares, uint64_t first_serial) {
  while (const auto wanted = spares.Wanted()) {
    spares.Began(*wanted, first_serial);
    spares.Ready(first_serial++);
  }
}

TEST(Spares, AKindIsWorthThemWhenItIsAskedForAgain) {
  Spares spares({.per_kind = 2});
  EXPECT_EQ(spares.Claim(Asking("first")), std::nullopt);
  EXPECT_FALSE(spares.Wanted());
  EXPECT_EQ(spares.Claim(Asking("second")), std::nullopt);
  ASSERT_TRUE(spares.Wanted());
  EXPECT_EQ(spares.Wanted()->id, "");
  EXPECT_EQ(spares.Wanted()->limits.memory_bytes, 64u << 20);
  Fill(spares, 10);
  EXPECT_EQ(spares.ready(), 2u);
  EXPECT_EQ(spares.Claim(Asking("third")), 10u);
  EXPECT_TRUE(spares.Wanted()) << "the one that went is replaced";
}

TEST(Spares, AnythingButTheIdMakesAnotherKind) {
  Spares spares({});
  (void)spares.Claim(Asking("a"));
  (void)spares.Claim(Asking("b"));
  Fill(spares, 1);
  EXPECT_EQ(spares.Claim(Asking("c", 65 << 20)), std::nullopt);
  for (const auto change :
       {+[](wire::launcher::Create& s) { s.user = "user"; },
        +[](wire::launcher::Create& s) { s.hostname = "other"; },
        +[](wire::launcher::Create& s) { s.limits.defaulted = 1; },
        +[](wire::launcher::Create& s) { s.limits.open_files = 9; },
        +[](wire::launcher::Create& s) { s.root_key = "image"; },
        +[](wire::launcher::Create& s) { s.profile = wire::launcher::Profile::kStrict; }}) {
    Spares fresh({});
    (void)fresh.Claim(Asking("a"));
    (void)fresh.Claim(Asking("b"));
    Fill(fresh, 1);
    auto other = Asking("c");
    change(other);
    EXPECT_EQ(fresh.Claim(other), std::nullopt);
  }
}

TEST(Spares, OneThatIsBeingBornIsClaimedWhenNoneIsReady) {
  Spares spares({.per_kind = 3, .births = 2});
  (void)spares.Claim(Asking("a"));
  (void)spares.Claim(Asking("b"));
  spares.Began(*spares.Wanted(), 1);
  spares.Began(*spares.Wanted(), 2);
  EXPECT_FALSE(spares.Wanted()) << "two births at a time";
  spares.Ready(2);
  EXPECT_EQ(spares.Claim(Asking("c")), 2u);
  EXPECT_EQ(spares.Claim(Asking("d")), 1u);
}

TEST(Spares, AFailedBirthIsNotTriedAgainBeforeSomebodyAsks) {
  Spares spares({});
  (void)spares.Claim(Asking("a"));
  (void)spares.Claim(Asking("b"));
  spares.Began(*spares.Wanted(), 1);
  spares.Lost(1);
  EXPECT_FALSE(spares.Wanted());
  EXPECT_EQ(spares.Claim(Asking("c")), std::nullopt);
  EXPECT_TRUE(spares.Wanted());
  spares.GiveUp(*spares.Wanted());
  EXPECT_FALSE(spares.Wanted());
}

TEST(Spares, AKindAskedForOnceMakesRoomBeforeOneWithSpares) {
  Spares spares({.per_kind = 1, .kinds = 2});
  (void)spares.Claim(Asking("a"));
  (void)spares.Claim(Asking("b"));
  Fill(spares, 1);
  (void)spares.Claim(Asking("c", 1));
  (void)spares.Claim(Asking("d", 2));
  EXPECT_THAT(spares.TakeUnwanted(), IsEmpty());
  EXPECT_EQ(spares.Claim(Asking("e")), 1u);
}

TEST(Spares, AKindThatMakesRoomGivesItsSparesUp) {
  Spares spares({.per_kind = 2, .kinds = 1});
  (void)spares.Claim(Asking("a"));
  (void)spares.Claim(Asking("b"));
  Fill(spares, 1);
  (void)spares.Claim(Asking("c", 1));
  EXPECT_THAT(spares.TakeUnwanted(), ElementsAre(1, 2));
  EXPECT_THAT(spares.TakeUnwanted(), IsEmpty());
}

TEST(Spares, ARootThatIsRegisteredAnewTakesItsSparesAlong) {
  Spares spares({.per_kind = 2});
  (void)spares.Claim(Asking("a"));
  (void)spares.Claim(Asking("b"));
  Fill(spares, 1);
  spares.ForgetRoot("other");
  EXPECT_THAT(spares.TakeUnwanted(), IsEmpty());
  spares.ForgetRoot("host");
  EXPECT_THAT(spares.TakeUnwanted(), ElementsAre(1, 2));
  EXPECT_EQ(spares.Claim(Asking("c")), std::nullopt);
}

}  // namespace
}  // namespace caisson::launcher
