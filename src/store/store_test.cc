#include "store/store.h"

#include <gtest/gtest.h>

#include "async/loop.h"
#include "async/task_set.h"
#include "store/session_records.h"
#include "store/test_directory.h"

namespace caisson::store {
namespace {

SessionRecord Session(std::string id) {
  SessionRecord record;
  record.id = std::move(id);
  record.tenant = "acme";
  return record;
}

Task<Status> WriteThenRead(Store* store) {
  SessionRecord record = Session("s1");
  CAISSON_CO_TRY(co_await store->Write(
      Durability::kSoon, [record](Database& database) { return InsertSession(database, record); }));
  CAISSON_CO_ASSIGN(const auto found,
                    co_await store->Read<std::optional<SessionRecord>>(
                        [](Database& database) { return FindSession(database, "s1"); }));
  if (!found) co_return Error(ErrorCode::kInternal, "the session is not there");
  co_return co_await store->Write(
      Durability::kDurable,
      [](Database& database) {
        return SetSessionState(database, "s1", SessionState::kRunning, "", 1);
      },
      Purpose::kShrink);
}

TEST(Store, WhatWasWrittenIsReadFromTheLoop) {
  const TestDirectory directory;
  async::Loop loop;
  auto store = Store::Open(loop, directory.PathOf("data"));
  ASSERT_TRUE(store) << store.error().message();
  const Status status = loop.RunUntilDone(WriteThenRead(store->get()));
  EXPECT_TRUE(status) << status.error().message();
}

TEST(Store, ASecondOneOnTheSameDirectoryIsRefused) {
  const TestDirectory directory;
  async::Loop loop;
  auto first = Store::Open(loop, directory.path());
  ASSERT_TRUE(first);
  EXPECT_EQ(Store::Open(loop, directory.path()).error().code(), ErrorCode::kConflict);
}

Task<void> WriteAndForget(Store* store) {
  (void)co_await store->Write(Durability::kDurable, [](Database& database) {
    return InsertSession(database, Session("s1"));
  });
}

TEST(Store, AWriteWhoseTaskWasCancelledIsStillDone) {
  const TestDirectory directory;
  async::Loop loop;
  {
    auto store = Store::Open(loop, directory.path());
    async::TaskSet tasks(loop);
    tasks.Spawn(WriteAndForget(store->get()));
    tasks.Cancel();
  }
  auto database = Database::Open(directory.PathOf("caisson.db"));
  EXPECT_EQ(*database->Number("SELECT count(*) FROM sessions"), 1);
}

}  // namespace
}  // namespace caisson::store
