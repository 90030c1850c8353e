// StoreJournal: the sessions' journal in the server's database.
#pragma once

#include "sandbox/session_journal.h"
#include "store/store.h"

namespace caisson::sandbox {

class StoreJournal : public SessionJournal {
 public:
  // The store outlives it.
  explicit StoreJournal(store::Store& store) : store_(store) {}

  Task<Status> Insert(SessionRecord record, std::optional<IdempotentCreate> key) override;
  Task<Status> Save(SessionRecord record) override;
  Task<Result<std::optional<SessionRecord>>> Find(std::string id) override;
  Task<Result<std::optional<SessionRecord>>> FindNamed(std::string tenant,
                                                       std::string name) override;
  Task<Result<std::optional<std::string>>> FindIdempotent(IdempotentCreate key) override;
  Task<Result<std::vector<SessionRecord>>> Live() override;
  Task<Result<SessionPage>> List(SessionQuery query) override;

 private:
  store::Store& store_;
};

}  // namespace caisson::sandbox
