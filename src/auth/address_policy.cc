#include "auth/address_policy.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/text.h"

namespace caisson::auth {
namespace {

constexpr int kV4Offset = 96;

struct Range {
  const char* network;
  std::string_view kind;
};

// IANA's special-purpose registries (RFC 6890 and updates). Addresses that carry an IPv4 address
// inside are judged by that one as well; see Inner.
constexpr Range kDenied[] = {
    {"0.0.0.0/8", "this host"},
    {"10.0.0.0/8", "private network"},
    {"100.64.0.0/10", "carrier NAT"},
    {"127.0.0.0/8", "loopback"},
    {"169.254.0.0/16", "link-local"},
    {"172.16.0.0/12", "private network"},
    {"192.0.0.0/24", "reserved"},
    {"192.0.2.0/24", "documentation"},
    {"192.88.99.0/24", "6to4 relay"},
    {"192.168.0.0/16", "private network"},
    {"198.18.0.0/15", "benchmarking"},
    {"198.51.100.0/24", "documentation"},
    {"203.0.113.0/24", "documentation"},
    {"224.0.0.0/4", "multicast"},
    {"240.0.0.0/4", "reserved"},
    {"168.63.129.16/32", "cloud metadata"},
    {"::/128", "this host"},
    {"::1/128", "loopback"},
    {"64:ff9b:1::/48", "local NAT64"},
    {"100::/64", "discard"},
    {"2001::/23", "protocol assignment"},
    {"2001:db8::/32", "documentation"},
    {"3fff::/20", "documentation"},
    {"5f00::/16", "segment routing"},
    {"fc00::/7", "private network"},
    {"fe80::/10", "link-local"},
    {"fec0::/10", "site-local"},
    {"ff00::/8", "multicast"},
};

struct Carrier {
  const char* network;
  size_t offset;  // of the IPv4 address among the 16 bytes
};
constexpr Carrier kCarriers[] = {
    {"::/96", 12},            // IPv4-compatible (deprecated)
    {"::ffff:0:0:0/96", 12},  // IPv4-translated (RFC 2765)
    {"64:ff9b::/96", 12},     // NAT64
    {"2002::/16", 2},         // 6to4
};

IpAddress FromV4(const uint8_t* bytes) {
  std::array<uint8_t, 16> all{};
  all[10] = all[11] = 0xff;
  std::memcpy(all.data() + 12, bytes, 4);
  return IpAddress::FromBytes(all);
}

// The IPv4 address that an IPv6 form carries.
std::optional<IpAddress> Inner(const IpAddress& address) {
  static const auto carriers = [] {
    std::vector<std::pair<Network, size_t>> list;
    for (const Carrier& carrier : kCarriers) {
      list.emplace_back(*ParseNetwork(carrier.network), carrier.offset);
    }
    return list;
  }();
  for (const auto& [network, offset] : carriers) {
    if (network.Contains(address)) return FromV4(address.bytes().data() + offset);
  }
  return std::nullopt;
}

std::string_view KindOf(const IpAddress& address) {
  static const auto denied = [] {
    std::vector<std::pair<Network, std::string_view>> list;
    for (const Range& range : kDenied) list.emplace_back(*ParseNetwork(range.network), range.kind);
    return list;
  }();
  for (const auto& [network, kind] : denied) {
    if (network.Contains(address)) return kind;
  }
  return {};
}

}  // namespace

std::optional<IpAddress> IpAddress::Parse(std::string_view text) {
  const std::string copy(text);
  if (copy.size() != std::strlen(copy.c_str())) return std::nullopt;
  std::array<uint8_t, 16> bytes{};
  if (inet_pton(AF_INET6, copy.c_str(), bytes.data()) == 1) return IpAddress(bytes);
  uint8_t v4[4];
  if (inet_pton(AF_INET, copy.c_str(), v4) == 1) return FromV4(v4);
  return std::nullopt;
}

bool IpAddress::IsIpv4() const {
  return std::all_of(bytes_.begin(), bytes_.begin() + 10, [](uint8_t b) { return b == 0; }) &&
         bytes_[10] == 0xff && bytes_[11] == 0xff;
}

bool IpAddress::IsLoopback() const {
  if (IsIpv4()) return bytes_[12] == 127;
  return std::all_of(bytes_.begin(), bytes_.begin() + 15, [](uint8_t b) { return b == 0; }) &&
         bytes_[15] == 1;
}

std::string IpAddress::ToText() const {
  char text[INET6_ADDRSTRLEN];
  const bool v4 = IsIpv4();
  inet_ntop(v4 ? AF_INET : AF_INET6, bytes_.data() + (v4 ? 12 : 0), text, sizeof text);
  return text;
}

bool Network::Contains(const IpAddress& other) const {
  const auto whole = static_cast<size_t>(bits / 8);
  if (std::memcmp(address.bytes().data(), other.bytes().data(), whole) != 0) return false;
  if (bits % 8 == 0) return true;
  const auto mask = static_cast<uint8_t>(0xff00 >> (bits % 8));
  return ((address.bytes()[whole] ^ other.bytes()[whole]) & mask) == 0;
}

Result<Network> ParseNetwork(std::string_view text) {
  const auto refuse = [text] {
    return Error(ErrorCode::kInvalidArgument, Concat({Quoted(text), " is no network"}))
        .WithRemedy("write an address and a prefix, e.g. 10.0.0.0/8 or fd00::/8");
  };
  const size_t slash = text.find('/');
  const auto address = IpAddress::Parse(text.substr(0, slash));
  if (!address) return refuse();
  // "::ffff:…" in the IPv6 spelling counts its prefix in 128 bits.
  const bool v4 = text.substr(0, slash).find(':') == std::string_view::npos;
  const int width = v4 ? 32 : 128;
  int bits = width;
  if (slash != std::string_view::npos) {
    const std::string_view prefix = text.substr(slash + 1);
    const char* end = prefix.data() + prefix.size();
    const auto [rest, failure] = std::from_chars(prefix.data(), end, bits);
    if (failure != std::errc{} || rest != end || bits < 0 || bits > width) return refuse();
  }
  Network network{*address, bits + (v4 ? kV4Offset : 0)};
  for (int bit = network.bits; bit < 128; ++bit) {
    if ((address->bytes()[static_cast<size_t>(bit / 8)] >> (7 - bit % 8) & 1) != 0) return refuse();
  }
  return network;
}

std::string_view WhyNotPublic(const IpAddress& address) {
  if (const std::string_view kind = KindOf(address); !kind.empty()) return kind;
  if (const auto inner = Inner(address)) return KindOf(*inner);
  return {};
}

Status AddressPolicy::Check(const IpAddress& address) const {
  const std::string_view kind = WhyNotPublic(address);
  if (kind.empty()) return {};
  const auto inner = Inner(address);
  for (const Network& network : allowed_) {
    if (network.Contains(inner.value_or(address))) return {};
  }
  return Error(ErrorCode::kPermissionDenied,
               Concat({"the address ", address.ToText(), " is not public (", kind, ")"}))
      .WithRemedy("allow its network in the server's configuration if it is meant to be reached");
}

}  // namespace caisson::auth
