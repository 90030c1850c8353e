#include "api/span_sink.h"

#include "base/text.h"

namespace caisson::api {

FetchSpanSink::FetchSpanSink(net::Fetcher& fetcher, std::string endpoint,
                             const std::vector<std::pair<std::string, log::Secret>>& headers)
    : fetcher_(fetcher), endpoint_(std::move(endpoint)) {
  for (const auto& [name, value] : headers) headers_.Set(name, std::string(value.Reveal()));
  headers_.Set("Content-Type", "application/json");
  headers_.Set("User-Agent", "caisson");
}

Task<Status> FetchSpanSink::Send(std::string body) {
  net::FetchRequest request{
      .method = "POST", .url = endpoint_, .headers = headers_, .body = std::move(body)};
  CAISSON_CO_ASSIGN(const auto response, co_await fetcher_.Fetch(std::move(request)));
  const int status = response.status;
  if (status >= 200 && status < 300) co_return Status();
  const bool again = status == 429 || status == 502 || status == 503 || status == 504;
  co_return Error(again ? ErrorCode::kUnavailable : ErrorCode::kProtocol,
                  Concat({"the collector answered ", std::to_string(status)}));
}

}  // namespace caisson::api
