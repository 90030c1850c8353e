#include "init/ring.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <string_view>

namespace caisson::init {
namespace {

void Append(Ring& ring, std::string_view text) {
  const Ring::Spans spans = ring.Prepare(text.size());
  ASSERT_EQ(spans.size, text.size());
  size_t done = 0;
  for (int i = 0; i < spans.count; ++i) {
    memcpy(spans.parts[i].iov_base, text.data() + done, spans.parts[i].iov_len);
    done += spans.parts[i].iov_len;
  }
  ring.Commit(done);
}

std::string ReadFrom(const Ring& ring, uint64_t offset, size_t max = SIZE_MAX) {
  std::string text;
  const Ring::Spans spans = ring.View(offset, max);
  for (int i = 0; i < spans.count; ++i) {
    text.append(static_cast<const char*>(spans.parts[i].iov_base), spans.parts[i].iov_len);
  }
  EXPECT_EQ(text.size(), spans.size);
  return text;
}

TEST(Ring, ReplaysWhatItKeeps) {
  Ring ring(16);
  Append(ring, "hello ");
  Append(ring, "world");
  EXPECT_EQ(ring.begin(), 0u);
  EXPECT_EQ(ring.end(), 11u);
  EXPECT_EQ(ReadFrom(ring, 0), "hello world");
  EXPECT_EQ(ReadFrom(ring, 6), "world");
  EXPECT_EQ(ReadFrom(ring, 2, 3), "llo");
  EXPECT_EQ(ReadFrom(ring, 11), "");
}

TEST(Ring, WrapsAndForgetsTheOldest) {
  Ring ring(8);
  Append(ring, "abcdef");
  Append(ring, "ghijk");
  EXPECT_EQ(ring.begin(), 3u);
  EXPECT_EQ(ReadFrom(ring, 3), "defghijk");
  EXPECT_EQ(ReadFrom(ring, 0), "");  // gone
  EXPECT_EQ(ring.View(7, 8).count, 2);
}

TEST(Ring, PreparesAtMostItsCapacity) {
  Ring ring(8);
  EXPECT_EQ(ring.Prepare(100).size, 8u);
}

TEST(Ring, OffsetsOutliveItsMemory) {
  Ring ring(8);
  Append(ring, "abcdef");
  ring.Free();
  EXPECT_EQ(ring.begin(), 6u);
  EXPECT_EQ(ring.end(), 6u);
  EXPECT_EQ(ReadFrom(ring, 0), "");
  Append(ring, "gh");
  EXPECT_EQ(ReadFrom(ring, 6), "gh");
}

TEST(Ring, EveryOffsetOfALongStreamReadsBack) {
  Ring ring(4099);
  std::string all;
  for (int i = 0; i < 500; ++i) {
    const std::string piece(static_cast<size_t>(i % 97 + 1), static_cast<char>('a' + i % 26));
    Append(ring, piece);
    all += piece;
    EXPECT_EQ(ReadFrom(ring, ring.begin()), all.substr(ring.begin()));
  }
  EXPECT_EQ(ring.end() - ring.begin(), 4099u);
}

}  // namespace
}  // namespace caisson::init
