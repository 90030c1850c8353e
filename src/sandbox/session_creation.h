// A create under way. For the .cc files of the SessionManager alone.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "sandbox/session_manager.h"

namespace caisson::sandbox {

struct SessionManager::Creation {
  Creation(async::Loop& loop, Owner owner, SessionSpec spec, Provider& provider,
           std::optional<IdempotentCreate> key)
      : owner(std::move(owner)),
        spec(std::move(spec)),
        provider(provider),
        key(std::move(key)),
        done(loop) {}

  const Owner owner;
  const SessionSpec spec;
  Provider& provider;
  const std::optional<IdempotentCreate> key;
  async::Event done;
  std::optional<Result<std::shared_ptr<Session>>> result;
  int waiting = 0;
  bool taken = false;  // by one who waited
};

}  // namespace caisson::sandbox
