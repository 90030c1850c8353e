// Fetcher: calls to the world (webhooks, OTLP, JWKS), under rules.
//
// A name is looked up once; every address it has is shown to the policy, and the connection goes to
// those addresses and nowhere else: a name that changes its mind in between gains nothing.
// Redirects are refused unless asked for, and each hop is vetted alike. Runs on threads of its own;
// used from the Loop's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "async/loop.h"
#include "net/message.h"

namespace caisson::net {

// Says whether an address ("10.0.0.1", "::1") may be called; an Error tells why not. Called on the
// Fetcher's threads.
using AddressPolicy = std::function<Status(std::string_view host, std::string_view address)>;
// Refuses loopback, private, link-local, shared, multicast, reserved and documentation ranges,
// v4 and v6, also those embedded in v6 (mapped, NAT64, 6to4).
Status PublicAddressesOnly(std::string_view host, std::string_view address);
Status AnyAddress(std::string_view host, std::string_view address);

struct FetchRequest {
  std::string method = "GET";
  std::string url;  // http or https
  Headers headers;
  std::string body;
  std::chrono::milliseconds timeout{10'000};  // for all of it
  size_t max_body = 1 << 20;
  int max_redirects = 0;
};

struct FetchResponse {
  int status = 0;
  Headers headers;
  std::string body;
  std::string address;  // that answered
};

class Fetcher {
 public:
  // `roots`: a PEM file of trusted certificates, or empty for the system's. `threads`: calls at
  // once.
  Fetcher(async::Loop& loop, AddressPolicy policy, unsigned threads, std::string roots = {});
  ~Fetcher();
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  // Any status is an answer. Errors: kInvalidArgument (URL), kPermissionDenied (the policy, or a
  // redirect), kUnavailable (no such name, no connection, TLS), kDeadlineExceeded,
  // kTooLarge (larger than max_body).
  Task<Result<FetchResponse>> Fetch(FetchRequest request);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace caisson::net
