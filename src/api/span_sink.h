// FetchSpanSink: spans to a collector over HTTP (OTLP).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "log/secret.h"
#include "net/fetch.h"
#include "telemetry/otlp.h"

namespace caisson::api {

class FetchSpanSink final : public telemetry::SpanSink {
 public:
  // `headers` as OTEL_EXPORTER_OTLP_HEADERS names them. The fetcher outlives it; collectors stand
  // on the same machine or network, so its policy allows any address.
  FetchSpanSink(net::Fetcher& fetcher, std::string endpoint,
                const std::vector<std::pair<std::string, log::Secret>>& headers);

  // kUnavailable, to be tried again, for 429, 502, 503 and 504 (as the OTLP specification has it);
  // kProtocol for any other answer that is no success.
  Task<Status> Send(std::string body) override;

 private:
  net::Fetcher& fetcher_;
  const std::string endpoint_;
  net::Headers headers_;
};

}  // namespace caisson::api
