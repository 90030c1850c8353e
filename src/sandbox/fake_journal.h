// A journal in memory that can be made to fail: for tests of what writes to one.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "async/loop.h"
#include "sandbox/session_journal.h"

namespace caisson::sandbox {

class FakeJournal : public SessionJournal {
 public:
  explicit FakeJournal(async::Loop& loop) : loop_(loop) {}

  Task<Status> Insert(SessionRecord record, std::optional<IdempotentCreate> key) override {
    co_await loop_.Yield();
    if (failure) co_return *failure;
    if (key) keys[{key->tenant, key->key}] = {key->digest, record.id};
    log.push_back(record.id + " " + std::string(NameOf(record.state)));
    order.push_back(record.id);
    records[record.id] = std::move(record);
    co_return Status();
  }
  Task<Status> Save(SessionRecord record) override {
    co_await loop_.Yield();
    if (failure) co_return *failure;
    if (!records.contains(record.id)) co_return Error(ErrorCode::kNotFound, "no such record");
    log.push_back(record.id + " " + std::string(NameOf(record.state)));
    if (record.state == SessionState::kFailed)
      std::erase_if(keys, [&](const auto& key) { return key.second.second == record.id; });
    records[record.id] = std::move(record);
    co_return Status();
  }
  Task<Result<std::optional<SessionRecord>>> Find(std::string id) override {
    co_await loop_.Yield();
    const auto found = records.find(id);
    if (found == records.end()) co_return std::optional<SessionRecord>();
    co_return std::optional<SessionRecord>(found->second);
  }
  Task<Result<std::optional<SessionRecord>>> FindNamed(std::string tenant,
                                                       std::string name) override {
    co_await loop_.Yield();
    for (auto id = order.rbegin(); id != order.rend(); ++id)
      if (records[*id].owner.tenant == tenant && records[*id].spec.name == name)
        co_return std::optional<SessionRecord>(records[*id]);
    co_return std::optional<SessionRecord>();
  }
  Task<Result<std::optional<std::string>>> FindIdempotent(IdempotentCreate key) override {
    co_await loop_.Yield();
    const auto found = keys.find({key.tenant, key.key});
    if (found == keys.end()) co_return std::optional<std::string>();
    if (found->second.first != key.digest)
      co_return Error(ErrorCode::kConflict, "the key was used for another request");
    co_return std::optional<std::string>(found->second.second);
  }
  Task<Result<std::vector<SessionRecord>>> Live() override {
    co_await loop_.Yield();
    std::vector<SessionRecord> live;
    for (const auto& id : order)
      if (!HasEnded(records[id].state)) live.push_back(records[id]);
    co_return live;
  }
  Task<Result<SessionPage>> List(SessionQuery query) override {
    co_await loop_.Yield();
    SessionPage page;
    for (const auto& id : order)
      if (query.access.Sees(records[id]) &&
          std::ranges::find(query.states, records[id].state) != query.states.end())
        page.sessions.push_back(records[id]);
    co_return page;
  }

  std::optional<Error> failure;
  std::map<std::string, SessionRecord> records;
  std::vector<std::string> order;
  std::map<std::pair<std::string, std::string>, std::pair<std::string, std::string>> keys;
  std::vector<std::string> log;  // "ID STATE", as written

 private:
  async::Loop& loop_;
};

}  // namespace caisson::sandbox
