#include "auth/browser_guard.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "auth/address_policy.h"
#include "base/text.h"

namespace caisson::auth {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

bool IsNameChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' || c == '_';
}

// The name of "name", "name:80", "[::1]" or "[::1]:80", lower case, without brackets and a dot at
// the end. Nothing when it is none of these.
std::optional<std::string> HostName(std::string_view host) {
  std::string_view name = host;
  std::string_view port;
  if (host.starts_with('[')) {
    const size_t close = host.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    name = host.substr(1, close - 1);
    port = host.substr(close + 1);
    if (!IpAddress::Parse(name)) return std::nullopt;
  } else {
    const size_t colon = host.find(':');
    name = host.substr(0, colon);
    if (colon != std::string_view::npos) port = host.substr(colon);
    if (!std::ranges::all_of(name, IsNameChar)) return std::nullopt;
  }
  if (!port.empty()) {
    if (port[0] != ':' || port.size() < 2 || port.size() > 6) return std::nullopt;
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    if (!std::ranges::all_of(port.substr(1), is_digit)) return std::nullopt;
  }
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.empty()) return std::nullopt;
  return Lower(name);
}

bool IsLoopback(std::string_view name) {
  if (name == "localhost") return true;
  const auto address = IpAddress::Parse(name);
  return address && address->IsLoopback();
}

// "https://app.example.com:8443" → "app.example.com:8443"; empty when it is no origin.
std::string_view AuthorityOf(std::string_view origin) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (!origin.starts_with(scheme)) continue;
    const std::string_view authority = origin.substr(scheme.size());
    return authority.find('/') == std::string_view::npos ? authority : std::string_view();
  }
  return {};
}

// An authority with its port, so that "http://box" and "box:80" are the same.
std::string WithPort(std::string_view authority, std::string_view scheme_of) {
  const size_t bracket = authority.rfind(']');
  const size_t colon = authority.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket);
  if (has_port) return Lower(authority);
  return Lower(authority) + (scheme_of.starts_with("https:") ? ":443" : ":80");
}

}  // namespace

Result<BrowserGuard> BrowserGuard::Create(const BrowserGuardConfig& config) {
  BrowserGuardConfig clean;
  for (const std::string& host : config.hosts) {
    const std::string_view name = host.starts_with("*.") ? std::string_view(host).substr(2) : host;
    const auto parsed = HostName(name);
    if (!parsed) {
      return Error(ErrorCode::kInvalidArgument, Concat({Quoted(host), " is no host name"}))
          .WithRemedy(
              "write a name or an address, e.g. box.example.com, 10.0.0.5 or *.example.com");
    }
    clean.hosts.push_back(host.starts_with("*.") ? "*." + *parsed : *parsed);
  }
  for (const std::string& origin : config.origins) {
    const std::string_view authority = AuthorityOf(origin);
    if (authority.empty() || !HostName(authority)) {
      return Error(ErrorCode::kInvalidArgument, Concat({Quoted(origin), " is no origin"}))
          .WithRemedy("write scheme and host of the page, e.g. https://app.example.com");
    }
    clean.origins.push_back(Lower(origin));
  }
  return BrowserGuard(std::move(clean));
}

bool BrowserGuard::KnowsHost(std::string_view name) const {
  if (IsLoopback(name)) return true;
  return std::ranges::any_of(config_.hosts, [name](const std::string& host) {
    if (!host.starts_with("*.")) return host == name;
    return name.size() > host.size() - 1 && name.ends_with(std::string_view(host).substr(1));
  });
}

GuardVerdict BrowserGuard::Judge(const BrowserRequest& request) const {
  using enum GuardVerdict::Kind;
  const auto name = HostName(request.host);
  if (!name || !KnowsHost(*name)) {
    return {kMisdirected,
            Concat({"this server does not answer to the host ", Quoted(request.host)}),
            {}};
  }
  const std::string origin = Lower(request.origin);
  if (std::ranges::find(config_.origins, origin) != config_.origins.end()) {
    return {kPass, {}, std::string(request.origin)};
  }
  if (!origin.empty()) {
    const std::string_view authority = AuthorityOf(origin);
    if (authority.empty() || WithPort(authority, origin) != WithPort(request.host, origin)) {
      return {kForbidden,
              Concat({"pages of ", Quoted(request.origin), " may not use this server"}),
              {}};
    }
  }
  const std::string_view site = request.sec_fetch_site;
  if (!site.empty() && site != "same-origin" && site != "none") {
    return {kForbidden, "pages of other sites may not use this server", {}};
  }
  return {};
}

}  // namespace caisson::auth
