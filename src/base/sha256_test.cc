#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace caisson {
namespace {

std::string Of(std::string_view text, Sha256::Engine engine = Sha256::Engine::kFastest) {
  Sha256 sha(engine);
  sha.Update(text);
  return sha.HexDigest();
}

TEST(Sha256, GivesThePublishedDigests) {
  EXPECT_EQ(Of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Of(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, IsTheSameWithAndWithoutTheProcessorsInstructions) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * i + 13 * i);
  for (size_t length = 0; length <= text.size(); length += 7) {
    const std::string_view part = std::string_view(text).substr(0, length);
    EXPECT_EQ(Of(part), Of(part, Sha256::Engine::kPortable)) << length;
  }
}

TEST(Sha256, DoesNotDependOnHowTheInputIsCut) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (size_t length : {55u, 56u, 57u, 63u, 64u, 65u, 119u, 120u, 128u, 300u}) {
    const std::string_view part = std::string_view(text).substr(0, length);
    for (size_t step : {1u, 3u, 64u}) {
      Sha256 sha;
      for (size_t at = 0; at < length; at += step) sha.Update(part.substr(at, step));
      EXPECT_EQ(sha.HexDigest(), Of(part)) << length << " in steps of " << step;
    }
  }
}

}  // namespace
}  // namespace caisson
