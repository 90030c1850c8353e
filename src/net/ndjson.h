// NdjsonWriter: a stream of JSON texts, one a line (application/x-ndjson), over an Exchange.
#pragma once

#include <string>

#include "net/exchange.h"

namespace caisson::net {

class NdjsonWriter {
 public:
  explicit NdjsonWriter(Exchange* exchange) : exchange_(exchange) {}

  Task<Status> Begin(Headers headers = {});
  // One JSON text without line breaks outside of strings (as every compact writer gives it);
  // otherwise kInternal.
  Task<Status> Send(std::string json);
  // An empty line, which readers skip.
  Task<Status> Heartbeat();
  Task<Status> Finish();

 private:
  Exchange* exchange_;
};

}  // namespace caisson::net
