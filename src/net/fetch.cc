#include "net/fetch.h"

#include <arpa/inet.h>
#include <curl/curl.h>

#include <array>
#include <atomic>
#include <cstring>
#include <mutex>
#include <optional>

#include "async/thread_pool.h"
#include "base/text.h"
#include "net/socket.h"
#include "net/url.h"

namespace caisson::net {
namespace {

// --- addresses --------------------------------------------------------------------------------

using Bytes16 = std::array<uint8_t, 16>;

// Every address as v6: v4 is mapped.
std::optional<Bytes16> ToBytes(std::string_view address) {
  const std::string text(address.substr(0, address.find('%')));
  Bytes16 bytes{};
  if (inet_pton(AF_INET6, text.c_str(), bytes.data()) == 1) return bytes;
  bytes[10] = bytes[11] = 0xff;
  if (inet_pton(AF_INET, text.c_str(), bytes.data() + 12) == 1) return bytes;
  return std::nullopt;
}

bool InRange(const Bytes16& address, const Bytes16& prefix, int bits) {
  for (int i = 0; i < bits; ++i)
    if (((address[i / 8] ^ prefix[i / 8]) >> (7 - i % 8) & 1) != 0) return false;
  return true;
}

struct NamedRange {
  const char* prefix;
  int bits;  // of 32 for v4
  std::string_view what;
};

// IANA's special-purpose registries for v4 and v6.
constexpr std::array<NamedRange, 17> kV4 = {{
    {"0.0.0.0", 8, "this network"},
    {"10.0.0.0", 8, "private"},
    {"100.64.0.0", 10, "shared"},
    {"127.0.0.0", 8, "loopback"},
    {"169.254.0.0", 16, "link-local"},
    {"172.16.0.0", 12, "private"},
    {"192.0.0.0", 24, "reserved"},
    {"192.0.2.0", 24, "documentation"},
    {"192.31.196.0", 24, "reserved"},
    {"192.52.193.0", 24, "reserved"},
    {"192.88.99.0", 24, "reserved"},
    {"192.168.0.0", 16, "private"},
    {"198.18.0.0", 15, "benchmarking"},
    {"198.51.100.0", 24, "documentation"},
    {"203.0.113.0", 24, "documentation"},
    {"224.0.0.0", 4, "multicast"},
    {"240.0.0.0", 4, "reserved"},
}};
// Of v6, global unicast alone is public, less these.
constexpr std::array<NamedRange, 3> kV6 = {{
    {"2001::", 23, "reserved"},
    {"2001:db8::", 32, "documentation"},
    {"3fff::", 20, "documentation"},
}};

std::optional<std::string_view> WhyNotPublicV4(const Bytes16& mapped) {
  for (const NamedRange& range : kV4)
    if (InRange(mapped, *ToBytes(range.prefix), 96 + range.bits)) return range.what;
  return std::nullopt;
}

// The v4 address inside a v6 one, mapped; nothing when there is none.
std::optional<Bytes16> EmbeddedV4(const Bytes16& address) {
  Bytes16 mapped{};
  mapped[10] = mapped[11] = 0xff;
  const auto take = [&](size_t at) {
    memcpy(mapped.data() + 12, address.data() + at, 4);
    return mapped;
  };
  if (InRange(address, *ToBytes("::ffff:0:0"), 96)) return take(12);
  if (InRange(address, *ToBytes("64:ff9b::"), 96)) return take(12);
  if (InRange(address, *ToBytes("2002::"), 16)) return take(2);
  return std::nullopt;
}

std::optional<std::string_view> WhyNotPublic(const Bytes16& address) {
  if (const auto v4 = EmbeddedV4(address)) return WhyNotPublicV4(*v4);
  for (const NamedRange& range : kV6)
    if (InRange(address, *ToBytes(range.prefix), range.bits)) return range.what;
  if (!InRange(address, *ToBytes("2000::"), 3)) return "not global";
  return std::nullopt;
}

// --- curl -------------------------------------------------------------------------------------
struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
using Easy = std::unique_ptr<CURL, FreeEasy>;
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using List = std::unique_ptr<curl_slist, FreeList>;

void Append(List& list, const std::string& text) {
  curl_slist* longer = curl_slist_append(list.get(), text.c_str());
  if (longer == nullptr) return;
  static_cast<void>(list.release());
  list.reset(longer);
}

// One hop on its way.
struct Transfer {
  FetchResponse response;
  size_t max_body = 0;
  size_t head_bytes = 0;
  bool too_large = false;
  const std::atomic<bool>* cancelled = nullptr;
};

size_t TakeBody(char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const size_t bytes = size * count;
  if (bytes > transfer.max_body - transfer.response.body.size()) {
    transfer.too_large = true;
    return 0;
  }
  transfer.response.body.append(data, bytes);
  return bytes;
}

size_t TakeHeader(char* data, size_t size, size_t count, void* user) {
  constexpr size_t kMaxHeadBytes = 65536;
  auto& transfer = *static_cast<Transfer*>(user);
  const std::string_view line(data, size * count);
  transfer.head_bytes += line.size();
  if (transfer.head_bytes > kMaxHeadBytes) {
    transfer.too_large = true;
    return 0;
  }
  if (line.starts_with("HTTP/")) transfer.response.headers = {};
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return line.size();
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && (value.back() == '\n' || value.back() == '\r')) value.remove_suffix(1);
  transfer.response.headers.Add(std::string(line.substr(0, colon)), std::string(TrimBlanks(value)));
  return line.size();
}

int CheckCancelled(void* user, curl_off_t /*down*/, curl_off_t /*d*/, curl_off_t /*up*/,
                   curl_off_t /*u*/) {
  return static_cast<Transfer*>(user)->cancelled->load(std::memory_order_relaxed) ? 1 : 0;
}

Error FetchError(CURLcode code, const Transfer& transfer, const std::string& url,
                 const char* detail) {
  const std::string message =
      Concat({"calling ", Quoted(url), ": ", *detail != '\0' ? detail : curl_easy_strerror(code)});
  if (transfer.too_large)
    return {ErrorCode::kTooLarge, Concat({"the answer of ", Quoted(url), " is too large"})};
  if (code == CURLE_OPERATION_TIMEDOUT) return {ErrorCode::kDeadlineExceeded, message};
  if (code == CURLE_ABORTED_BY_CALLBACK) return {ErrorCode::kCancelled, message};
  return {ErrorCode::kUnavailable, message};
}

}  // namespace

Status AnyAddress(std::string_view /*host*/, std::string_view /*address*/) { return {}; }

Status PublicAddressesOnly(std::string_view host, std::string_view address) {
  const auto bytes = ToBytes(address);
  const auto why = bytes ? WhyNotPublic(*bytes) : std::optional<std::string_view>("not an address");
  if (!why) return {};
  return Error(ErrorCode::kPermissionDenied,
               Concat({"the host ", Quoted(host), " has the address ", address,
                       ", which is not public (", *why, ")"}))
      .WithRemedy("use a public address, or allow private ones in the configuration");
}

struct Fetcher::State {
  State(async::Loop& loop, AddressPolicy policy, std::string roots)
      : loop(loop), policy(std::move(policy)), roots(std::move(roots)) {}

  async::Loop& loop;
  const AddressPolicy policy;
  const std::string roots;
  std::mutex mutex;
  std::vector<Easy> idle;                   // with their connections, to be used again
  std::unique_ptr<async::ThreadPool> pool;  // last: ends first

  // These run on the pool's threads.
  Result<FetchResponse> Run(const FetchRequest& request, const std::atomic<bool>& cancelled);
  Result<FetchResponse> Hop(const FetchRequest& request, const std::string& url,
                            std::chrono::steady_clock::time_point due,
                            const std::atomic<bool>& cancelled);
  Result<std::string> VetAndPin(const Url& url);
  Easy TakeEasy();
  void SetUp(CURL* easy, const FetchRequest& request, const std::string& url,
             Transfer& transfer) const;
};

// What CURLOPT_RESOLVE wants: "host:port:address,address". Every address has passed the policy.
Result<std::string> Fetcher::State::VetAndPin(const Url& url) {
  CAISSON_ASSIGN(const auto addresses, LookUp(url.host, url.port));
  std::string list;
  for (const SocketAddress& address : addresses) {
    const std::string text = AddressText(address);
    CAISSON_TRY(policy(url.host, text));
    if (!list.empty()) list += ',';
    list += text.find(':') != std::string::npos ? Concat({"[", text, "]"}) : text;
  }
  const bool v6 = url.host.find(':') != std::string::npos;
  return Concat(
      {"+", v6 ? "[" : "", url.host, v6 ? "]:" : ":", std::to_string(url.port), ":", list});
}

Easy Fetcher::State::TakeEasy() {
  const std::lock_guard lock(mutex);
  if (idle.empty()) return Easy(curl_easy_init());
  Easy easy = std::move(idle.back());
  idle.pop_back();
  return easy;
}

void Fetcher::State::SetUp(CURL* easy, const FetchRequest& request, const std::string& url,
                           Transfer& transfer) const {
  curl_easy_reset(easy);
  curl_easy_setopt(easy, CURLOPT_URL, url.c_str());
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy, CURLOPT_PROXY, "");  // the environment does not decide where calls go
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  if (request.method == "HEAD") curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
  if (!request.body.empty() || request.method == "POST") {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.c_str());
  }
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, TakeBody);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, TakeHeader);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, CheckCancelled);
  curl_easy_setopt(easy, CURLOPT_XFERINFODATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
  if (!roots.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, roots.c_str());
}

Result<FetchResponse> Fetcher::State::Hop(const FetchRequest& request, const std::string& text,
                                          std::chrono::steady_clock::time_point due,
                                          const std::atomic<bool>& cancelled) {
  if (cancelled.load(std::memory_order_relaxed))
    return Error(ErrorCode::kCancelled, "nobody waits for the call any more");
  CAISSON_ASSIGN(const Url url, ParseUrl(text));
  if (url.scheme == Url::Scheme::kUnix)
    return Error(ErrorCode::kInvalidArgument, "not an http or https address: " + Quoted(text));
  CAISSON_ASSIGN(const std::string pin, VetAndPin(url));
  Easy easy = TakeEasy();
  if (!easy) return Error(ErrorCode::kInternal, "preparing a call with libcurl");
  Transfer transfer{.max_body = request.max_body, .cancelled = &cancelled};
  SetUp(easy.get(), request, text, transfer);
  List pins, headers;
  Append(pins, pin);
  for (const Header& header : request.headers) {
    if (!IsToken(header.name) || !IsFieldValue(header.value))
      return Error(ErrorCode::kInvalidArgument, "a malformed header: " + Quoted(header.name));
    Append(headers,
           header.value.empty() ? header.name + ";" : Concat({header.name, ": ", header.value}));
  }
  Append(headers, "Expect:");
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(due - std::chrono::steady_clock::now());
  if (left.count() <= 0)
    return Error(ErrorCode::kDeadlineExceeded, "calling " + Quoted(text) + " took too long");
  char detail[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(easy.get(), CURLOPT_RESOLVE, pins.get());
  curl_easy_setopt(easy.get(), CURLOPT_HTTPHEADER, headers.get());
  curl_easy_setopt(easy.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(left.count()));
  curl_easy_setopt(easy.get(), CURLOPT_ERRORBUFFER, detail);
  const CURLcode code = curl_easy_perform(easy.get());
  if (code != CURLE_OK) return FetchError(code, transfer, text, detail);
  long status = 0;
  curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
  transfer.response.status = static_cast<int>(status);
  char* address = nullptr;
  curl_easy_getinfo(easy.get(), CURLINFO_PRIMARY_IP, &address);
  if (address != nullptr) transfer.response.address = address;
  // The name may have other addresses next time; the connection would still go to the old ones,
  // which the policy has seen.
  curl_easy_reset(easy.get());
  const std::lock_guard lock(mutex);
  idle.push_back(std::move(easy));
  return std::move(transfer.response);
}

Result<FetchResponse> Fetcher::State::Run(const FetchRequest& request,
                                          const std::atomic<bool>& cancelled) {
  const auto due = std::chrono::steady_clock::now() + request.timeout;
  FetchRequest hop = request;
  for (int redirects = 0; true; ++redirects) {
    CAISSON_ASSIGN(FetchResponse response, Hop(hop, hop.url, due, cancelled));
    const bool redirect = response.status == 301 || response.status == 302 ||
                          response.status == 303 || response.status == 307 ||
                          response.status == 308;
    const std::string* location = response.headers.Find("location");
    if (!redirect || location == nullptr) return response;
    if (redirects == request.max_redirects)
      return Error(ErrorCode::kPermissionDenied,
                   Concat({"calling ", Quoted(hop.url), ": it redirects to ", Quoted(*location)}))
          .WithRemedy("give the final address");
    CAISSON_ASSIGN(const Url from, ParseUrl(hop.url));
    const std::string origin =
        Concat({from.scheme == Url::Scheme::kHttps ? "https://" : "http://", from.Authority()});
    std::string next =
        location->starts_with('/') && !location->starts_with("//") ? origin + *location : *location;
    CAISSON_ASSIGN(const Url to, ParseUrl(next));
    if (from.scheme == Url::Scheme::kHttps && to.scheme != Url::Scheme::kHttps)
      return Error(ErrorCode::kPermissionDenied,
                   Concat({"calling ", Quoted(hop.url), ": it redirects away from TLS"}));
    // Secrets are for the host they were given for.
    if (to.host != from.host || to.port != from.port || to.scheme != from.scheme) {
      hop.headers.Remove("authorization");
      hop.headers.Remove("cookie");
    }
    if (response.status <= 303 && hop.method != "HEAD") {
      hop.method = "GET";
      hop.body.clear();
    }
    hop.url = std::move(next);
  }
}

Fetcher::Fetcher(async::Loop& loop, AddressPolicy policy, unsigned threads, std::string roots)
    : state_(std::make_unique<State>(loop, std::move(policy), std::move(roots))) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  static_cast<void>(ready);
  state_->pool = std::make_unique<async::ThreadPool>(threads);
}

Fetcher::~Fetcher() = default;

Task<Result<FetchResponse>> Fetcher::Fetch(FetchRequest request) {
  // Tells the thread when nobody waits any more.
  struct Cancel {
    std::shared_ptr<std::atomic<bool>> flag = std::make_shared<std::atomic<bool>>(false);
    ~Cancel() { flag->store(true, std::memory_order_relaxed); }
  };
  const Cancel cancel;
  State* state = state_.get();
  co_return co_await async::Offload(&state->loop, state->pool.get(),
                                    [state, request = std::move(request), flag = cancel.flag] {
                                      return state->Run(request, *flag);
                                    });
}

}  // namespace caisson::net
