// Gate: who is calling, and may they go on. What a server is configured with decides which one it
// has.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "api/route.h"
#include "async/task.h"
#include "auth/roles.h"
#include "net/message.h"

namespace caisson::api {

class Gate {
 public:
  virtual ~Gate() = default;
  // Whether a request like this may be looked at here at all: the host it names, the page it comes
  // from.
  struct Look {
    std::optional<net::Response> refusal;  // the answer, when it may not
    net::Headers headers;                  // for the answer that it gets otherwise
  };
  virtual Look LookAt(const net::Request& request) const = 0;
  // Who it comes from. kUnauthenticated when that is not shown; `request` lives until the end.
  virtual Task<Result<auth::Principal>> Identify(const net::Request* request) = 0;
  // Takes a call from the principal's share. kRateLimited when there is none left. `headers` are
  // for the answer, whichever it is.
  struct Share {
    Status allowed;
    net::Headers headers;
  };
  virtual Share Take(const auth::Principal& principal, Cost cost) = 0;
};

}  // namespace caisson::api
