#include "auth/address_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace caisson::auth {
namespace {

using testing::HasSubstr;

TEST(AddressPolicy, DeniesEverythingThatIsNotPublic) {
  for (const char* text : {"0.0.0.0",
                           "0.1.2.3",
                           "10.0.0.1",
                           "10.255.255.255",
                           "100.64.0.1",
                           "100.127.255.255",
                           "127.0.0.1",
                           "127.255.255.254",
                           "169.254.169.254",
                           "172.16.0.1",
                           "172.31.255.255",
                           "192.0.0.8",
                           "192.0.2.1",
                           "192.88.99.1",
                           "192.168.1.1",
                           "198.18.0.1",
                           "198.19.255.255",
                           "198.51.100.7",
                           "203.0.113.9",
                           "224.0.0.1",
                           "239.255.255.255",
                           "240.0.0.1",
                           "255.255.255.255",
                           "168.63.129.16",
                           "::",
                           "::1",
                           "::ffff:127.0.0.1",
                           "::ffff:10.1.2.3",
                           "::ffff:a9fe:a9fe",
                           "::127.0.0.1",
                           "::ffff:0:192.168.0.1",
                           "64:ff9b::7f00:1",
                           "64:ff9b::169.254.169.254",
                           "64:ff9b:1::1",
                           "100::1",
                           "2001::1",
                           "2001:db8::1",
                           "2002:7f00:1::",
                           "2002:a00:1::1",
                           "3fff::1",
                           "fc00::1",
                           "fd12:3456::1",
                           "fd00:ec2::254",
                           "fe80::1",
                           "febf::1",
                           "fec0::1",
                           "ff02::1"}) {
    const auto address = IpAddress::Parse(text);
    ASSERT_TRUE(address) << text;
    EXPECT_FALSE(WhyNotPublic(*address).empty()) << text;
    const Status status = AddressPolicy().Check(*address);
    ASSERT_FALSE(status) << text;
    EXPECT_EQ(status.error().code(), ErrorCode::kPermissionDenied);
  }
}

TEST(AddressPolicy, AllowsPublicAddresses) {
  for (const char* text :
       {"1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
        "126.255.255.255", "128.0.0.0", "169.253.0.1", "172.15.255.255", "172.32.0.0",
        "192.167.255.255", "192.169.0.0", "223.255.255.255", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
        "2002:808:808::1", "2606:4700::1111", "2a00:1450::1"}) {
    EXPECT_TRUE(AddressPolicy().Check(*IpAddress::Parse(text))) << text;
  }
}

TEST(AddressPolicy, TextThatIsNoPlainAddressIsNone) {
  for (const char* text : {"", "127.1", "0x7f.0.0.1", "0177.0.0.1", "2130706433", "127.0.0.1:80",
                           "[::1]", "fe80::1%eth0", "localhost", "1.2.3.4 ", "1.2.3.256", ":::"}) {
    EXPECT_FALSE(IpAddress::Parse(text)) << text;
  }
  EXPECT_FALSE(IpAddress::Parse(std::string_view("1.2.3.4\0x", 9)));
}

TEST(AddressPolicy, NamedNetworksAreAllowedAndNothingBeside) {
  const AddressPolicy policy({*ParseNetwork("10.1.0.0/16"), *ParseNetwork("fd00::/64")});
  EXPECT_TRUE(policy.Check(*IpAddress::Parse("10.1.255.255")));
  EXPECT_TRUE(policy.Check(*IpAddress::Parse("::ffff:10.1.2.3")));
  EXPECT_TRUE(policy.Check(*IpAddress::Parse("fd00::5")));
  EXPECT_FALSE(policy.Check(*IpAddress::Parse("10.2.0.0")));
  EXPECT_FALSE(policy.Check(*IpAddress::Parse("fd00:0:0:1::5")));
  EXPECT_THAT(policy.Check(*IpAddress::Parse("127.0.0.1")).error().message(),
              HasSubstr("127.0.0.1 is not public (loopback)"));
}

TEST(AddressPolicy, NetworksAreParsedStrictly) {
  for (const char* text : {"", "/8", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8x",
                           "10.0.0.1/8", "fd00::/129", "fd00::1/64", "box/8"}) {
    EXPECT_FALSE(ParseNetwork(text)) << text;
  }
  EXPECT_TRUE(ParseNetwork("0.0.0.0/0")->Contains(*IpAddress::Parse("9.9.9.9")));
  EXPECT_FALSE(ParseNetwork("0.0.0.0/0")->Contains(*IpAddress::Parse("2001::1")));
  EXPECT_FALSE(ParseNetwork("10.0.0.5")->Contains(*IpAddress::Parse("10.0.0.4")));
}

}  // namespace
}  // namespace caisson::auth
