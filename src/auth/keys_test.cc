#include "auth/keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "async/loop.h"
#include "store/test_directory.h"

namespace caisson::auth {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class KeyRingTest : public testing::Test {
 protected:
  KeyRingTest() { Restart(); }

  void Restart() {
    ring_.reset();
    store_.reset();
    auto store = store::Store::Open(loop_, directory_.path());
    EXPECT_TRUE(store) << store.error().message();
    store_ = *std::move(store);
    auto ring = Load();
    EXPECT_TRUE(ring) << ring.error().message();
    ring_ = *std::move(ring);
  }
  Result<std::unique_ptr<KeyRing>> Load() {
    return loop_.RunUntilDone(KeyRing::Load(
        store_.get(), {.now_ms = [this] { return now_; },
                       .on_revoked = [this](const std::string& id) { revoked_.push_back(id); },
                       .rotation_grace_ms = 1000}));
  }
  IssuedKey Create(NewKey key = {.name = "ci", .tenant = "acme", .role = Role::kDeveloper}) {
    auto issued = loop_.RunUntilDone(ring_->Create(std::move(key)));
    EXPECT_TRUE(issued) << issued.error().message();
    return *std::move(issued);
  }

  store::TestDirectory directory_;
  int64_t now_ = 1'000'000;
  std::vector<std::string> revoked_;
  async::Loop loop_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<KeyRing> ring_;
};

TEST_F(KeyRingTest, AKeyIsRecognisedAlsoAfterARestart) {
  const IssuedKey issued = Create({.name = "ci",
                                   .tenant = "acme",
                                   .role = Role::kDeveloper,
                                   .scopes = *ParseScopes("read:sessions")});
  for (int i = 0; i < 2; ++i) {
    const auto principal = ring_->Check(issued.key);
    ASSERT_TRUE(principal) << principal.error().message();
    EXPECT_EQ(principal->tenant, "acme");
    EXPECT_EQ(principal->key_id, issued.record.id);
    EXPECT_EQ(principal->role, Role::kDeveloper);
    EXPECT_TRUE(principal->Allows(Verb::kRead, Resource::kSessions));
    EXPECT_FALSE(principal->Allows(Verb::kCreate, Resource::kSessions));
    Restart();
  }
}

TEST_F(KeyRingTest, AKeyHasTheFormThatScannersKnow) {
  const std::string key = Create().key;
  EXPECT_EQ(key.size(), 4U + 8 + 1 + 43 + 6);
  EXPECT_TRUE(key.starts_with("csn_"));
  const auto parts = ParseKey(key);
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->secret.size(), 43U);
}

TEST_F(KeyRingTest, EveryChangedCharacterIsRefused) {
  const std::string key = Create().key;
  for (size_t i = 0; i < key.size(); ++i) {
    std::string changed = key;
    changed[i] = changed[i] == 'a' ? 'b' : 'a';
    const auto principal = ring_->Check(changed);
    ASSERT_FALSE(principal) << i;
    EXPECT_EQ(principal.error().code(), ErrorCode::kPermissionDenied);
  }
  for (const std::string& text : {std::string(), key + "a", key.substr(1), std::string(62, '\0')}) {
    EXPECT_FALSE(ring_->Check(text));
  }
}

TEST_F(KeyRingTest, ThatAKeyWasRevokedIsToldOnlyToThoseWhoKnowItsSecret) {
  const IssuedKey issued = Create();
  const auto rotated = loop_.RunUntilDone(ring_->Rotate(issued.record.id));
  ASSERT_TRUE(loop_.RunUntilDone(ring_->FinishRotation(issued.record.id)));
  ASSERT_TRUE(loop_.RunUntilDone(ring_->Revoke(issued.record.id)));
  EXPECT_THAT(ring_->Check(rotated->key).error().message(), HasSubstr("revoked"));
  // A well-formed key with the right id and a secret that is not (any more) its own.
  EXPECT_THAT(ring_->Check(issued.key).error().message(), HasSubstr("not valid"));
}

TEST_F(KeyRingTest, ASecretIsNowhereInTheDataDirectory) {
  const IssuedKey issued = Create();
  const std::string secret(ParseKey(issued.key)->secret);
  ring_.reset();
  store_.reset();
  const std::string command = "grep -rqF " + secret + " " + directory_.path();
  EXPECT_NE(system(command.c_str()), 0);
  const std::string known = "grep -rqF " + issued.record.id + " " + directory_.path();
  EXPECT_EQ(system(known.c_str()), 0);  // the search does find what is there
}

TEST_F(KeyRingTest, AKeyExpires) {
  const IssuedKey issued = Create({.name = "short", .tenant = "t", .expires_ms = now_ + 10});
  EXPECT_TRUE(ring_->Check(issued.key));
  now_ += 10;
  EXPECT_THAT(ring_->Check(issued.key).error().message(), HasSubstr("expired"));
}

TEST_F(KeyRingTest, ARevokedKeyIsRefusedForGoodAndStreamsAreTold) {
  const IssuedKey issued = Create();
  ASSERT_TRUE(loop_.RunUntilDone(ring_->Revoke(issued.record.id)));
  ASSERT_TRUE(loop_.RunUntilDone(ring_->Revoke(issued.record.id)));
  EXPECT_THAT(revoked_, ElementsAre(issued.record.id));
  EXPECT_FALSE(ring_->Check(issued.key));
  EXPECT_EQ(loop_.RunUntilDone(ring_->Rotate(issued.record.id)).error().code(),
            ErrorCode::kConflict);
  Restart();
  EXPECT_FALSE(ring_->Check(issued.key));
  EXPECT_EQ(loop_.RunUntilDone(ring_->Revoke("nobody00")).error().code(), ErrorCode::kNotFound);
}

TEST_F(KeyRingTest, WhileAKeyIsRotatedBothSecretsAreValid) {
  const IssuedKey old = Create();
  const auto rotated = loop_.RunUntilDone(ring_->Rotate(old.record.id));
  ASSERT_TRUE(rotated) << rotated.error().message();
  EXPECT_TRUE(ring_->Check(old.key));
  EXPECT_TRUE(ring_->Check(rotated->key));
  Restart();
  EXPECT_TRUE(ring_->Check(old.key));
  ASSERT_TRUE(loop_.RunUntilDone(ring_->FinishRotation(old.record.id)));
  EXPECT_FALSE(ring_->Check(old.key));
  EXPECT_TRUE(ring_->Check(rotated->key));
  EXPECT_EQ(loop_.RunUntilDone(ring_->FinishRotation(old.record.id)).error().code(),
            ErrorCode::kConflict);
}

TEST_F(KeyRingTest, TheOldSecretEndsWithTheGracePeriodOrTheNextRotation) {
  const IssuedKey first = Create();
  const auto second = loop_.RunUntilDone(ring_->Rotate(first.record.id));
  now_ += 999;
  EXPECT_TRUE(ring_->Check(first.key));
  now_ += 1;
  EXPECT_FALSE(ring_->Check(first.key));
  EXPECT_TRUE(ring_->Check(second->key));
  const auto third = loop_.RunUntilDone(ring_->Rotate(first.record.id));
  EXPECT_FALSE(ring_->Check(first.key));
  EXPECT_TRUE(ring_->Check(second->key));
  EXPECT_TRUE(ring_->Check(third->key));
}

TEST_F(KeyRingTest, TheListShowsUseAndNoHashes) {
  const IssuedKey issued = Create();
  EXPECT_EQ(ring_->List().front().last_used_ms, std::nullopt);
  ASSERT_TRUE(ring_->Check(issued.key));
  EXPECT_EQ(ring_->List().front().last_used_ms, now_);
  EXPECT_EQ(ring_->List().front().hash, "");
  EXPECT_EQ(issued.record.hash, "");
  ASSERT_TRUE(loop_.RunUntilDone(ring_->SaveUses()));
  Restart();
  EXPECT_EQ(ring_->Find(issued.record.id)->last_used_ms, now_);
  EXPECT_EQ(ring_->Find("nobody00"), std::nullopt);
}

TEST_F(KeyRingTest, KeysWithoutTheirPepperAreAnErrorAndNotANewPepper) {
  Create();
  ASSERT_EQ(unlink(directory_.PathOf("pepper").c_str()), 0);
  const auto ring = Load();
  ASSERT_FALSE(ring);
  EXPECT_THAT(ring.error().message(), HasSubstr("pepper"));
  EXPECT_NE(access(directory_.PathOf("pepper").c_str(), F_OK), 0);
}

}  // namespace
}  // namespace caisson::auth
