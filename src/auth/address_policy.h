// Which addresses the server may dial on behalf of others (webhooks, registries, web tools).
//
// Everything that is not plainly public is denied: the host itself, private networks, link-local
// (where clouds keep their metadata), carrier NAT, multicast, reserved ranges, and the IPv6 forms
// that carry an IPv4 address inside. Check the address that is dialled, after the name was
// resolved, and every redirect anew. Pure values, thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace caisson::auth {

// IPv4 addresses are kept as ::ffff:a.b.c.d.
class IpAddress {
 public:
  // "127.0.0.1", "::1". No ports, brackets, zones, or short forms such as 127.1.
  static std::optional<IpAddress> Parse(std::string_view text);
  static IpAddress FromBytes(const std::array<uint8_t, 16>& bytes) { return IpAddress(bytes); }

  bool IsIpv4() const;
  // Also of an IPv4 address in an IPv6 form.
  bool IsLoopback() const;
  std::string ToText() const;
  const std::array<uint8_t, 16>& bytes() const { return bytes_; }

 private:
  explicit IpAddress(const std::array<uint8_t, 16>& bytes) : bytes_(bytes) {}
  std::array<uint8_t, 16> bytes_;
};

struct Network {
  IpAddress address;
  int bits;  // of the 128
  bool Contains(const IpAddress& other) const;
};
// "10.0.0.0/8", "fd00::/8", or one address. kInvalidArgument, also when bits beyond the prefix are
// set.
Result<Network> ParseNetwork(std::string_view text);

// What kind of address this is when it is not public ("loopback", "private network"); else empty.
std::string_view WhyNotPublic(const IpAddress& address);

class AddressPolicy {
 public:
  AddressPolicy() = default;
  // Networks that may be dialled although they are not public.
  explicit AddressPolicy(std::vector<Network> allowed) : allowed_(std::move(allowed)) {}

  // kPermissionDenied, naming the address and its kind.
  Status Check(const IpAddress& address) const;

 private:
  std::vector<Network> allowed_;
};

}  // namespace caisson::auth
