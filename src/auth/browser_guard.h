// BrowserGuard: keeps web pages from using a server they have no business with.
//
// A page of any site can make its visitor's browser send requests to a server on the visitor's own
// machine. Three things give it away: the Host it was led to by (DNS rebinding), the Origin it
// comes from, and Sec-Fetch-Site, which the browser sets and a page cannot. Programs that are no
// browsers send only Host. Pure, thread-safe after construction.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace caisson::auth {

struct BrowserGuardConfig {
  // Names this server answers to, besides localhost and loopback addresses: "box.example.com",
  // "10.0.0.5", "*.box.example.com" (any names below). Ports do not matter.
  std::vector<std::string> hosts;
  // Pages that may use the API from a browser (CORS): "https://app.example.com". "*" is refused.
  std::vector<std::string> origins;
};

// The headers that matter; empty when absent.
struct BrowserRequest {
  std::string_view host;
  std::string_view origin;
  std::string_view sec_fetch_site;
};

struct GuardVerdict {
  enum class Kind {
    kPass,
    kMisdirected,  // 421: not a name of this server
    kForbidden,    // 403: a page that may not
  };
  Kind kind = Kind::kPass;
  std::string reason;        // why not, for the answer
  std::string allow_origin;  // for Access-Control-Allow-Origin; empty: no CORS headers at all
};

class BrowserGuard {
 public:
  // kInvalidArgument for a host or origin that is none.
  static Result<BrowserGuard> Create(const BrowserGuardConfig& config);

  GuardVerdict Judge(const BrowserRequest& request) const;

 private:
  explicit BrowserGuard(BrowserGuardConfig config) : config_(std::move(config)) {}
  bool KnowsHost(std::string_view name) const;

  BrowserGuardConfig config_;  // lower case
};

}  // namespace caisson::auth
