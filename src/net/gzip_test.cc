#include "net/gzip.h"

#include <gtest/gtest.h>

namespace caisson::net {
namespace {

std::string Compressed(const std::string& text) {
  GzipEncoder encoder;
  std::string out;
  for (size_t at = 0; at < text.size(); at += 100'000)
    out += encoder.Add(std::string_view(text).substr(at, 100'000)).value();
  return out + encoder.Finish().value();
}

Result<std::string> Decompressed(const std::string& bytes, size_t piece, GzipLimits limits = {}) {
  GzipDecoder decoder(limits);
  std::string out;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    decoder.Feed(bytes.substr(at, piece));
    for (;;) {
      CAISSON_ASSIGN(const std::string some, decoder.Next());
      EXPECT_LE(some.size(), GzipDecoder::kMostAtOnce);
      if (some.empty()) break;
      out += some;
    }
  }
  CAISSON_TRY(decoder.Finish());
  return out;
}

std::string Text(size_t size) {
  std::string text;
  for (size_t i = 0; text.size() < size; ++i) text += std::to_string(i * 7919) + " ";
  return text;
}

TEST(GzipTest, WhatGoesInComesOutWhateverThePieces) {
  const std::string text = Text(1'000'000), bytes = Compressed(text);
  EXPECT_LT(bytes.size(), text.size() / 2);
  EXPECT_TRUE(bytes.starts_with("\x1f\x8b"));
  for (const size_t piece : {size_t{1000}, size_t{65536}, bytes.size()})
    EXPECT_TRUE(*Decompressed(bytes, piece) == text) << piece;
  const std::string small = Compressed("few");
  EXPECT_EQ(*Decompressed(small, 1), "few");
  EXPECT_EQ(*Decompressed(Compressed(""), 3), "");
}

TEST(GzipTest, OneMemberMayFollowAnother) {
  EXPECT_EQ(*Decompressed(Compressed("one ") + Compressed("two"), 7), "one two");
}

TEST(GzipTest, DamageAndCutsAreRefused) {
  const std::string bytes = Compressed(Text(10'000));
  EXPECT_EQ(Decompressed(bytes.substr(0, bytes.size() - 1), 100).error().code(),
            ErrorCode::kInvalidArgument);
  EXPECT_EQ(Decompressed("", 100).error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(Decompressed("this is no gzip", 100).error().code(), ErrorCode::kInvalidArgument);
  std::string wrong = bytes;
  wrong[wrong.size() - 6] ^= 1;  // of the checksum
  EXPECT_EQ(Decompressed(wrong, 100).error().code(), ErrorCode::kInvalidArgument);
}

TEST(GzipTest, ABombIsRefusedAndWhatIsMerelyEmptyIsNot) {
  const std::string bomb = Compressed(std::string(8 << 20, '\0'));
  EXPECT_TRUE(Decompressed(bomb, 65536));
  EXPECT_EQ(Decompressed(bomb, 65536, {.free_bytes = 1 << 20}).error().code(),
            ErrorCode::kTooLarge);
  EXPECT_TRUE(Decompressed(bomb, 65536, {.free_bytes = 1 << 20, .ratio = 2000}));
}

}  // namespace
}  // namespace caisson::net
