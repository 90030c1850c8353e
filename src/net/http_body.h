// BodyDecoder: takes a body out of the bytes of a connection, as its framing says. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/http_head.h"

namespace caisson::net {

class BodyDecoder {
 public:
  BodyDecoder() = default;
  explicit BodyDecoder(Framing framing);

  struct Step {
    enum class Kind { kMore, kData, kEnd, kFault };
    Kind kind = Kind::kMore;
    size_t consumed = 0;    // of the input, in every case
    std::string_view data;  // kData: a part of the input, inside what was consumed
    std::string_view why;   // kFault
  };
  // Looks at `in`, which starts where the last step's `consumed` ended; gives at most `max` bytes
  // of data. After kEnd it stays there, consuming nothing; so it does after kFault.
  Step Next(std::string_view in, size_t max);
  // The connection has ended, with nothing left to look at: whether that is the body's end.
  bool EndsHere();
  bool ended() const { return state_ == State::kEnd; }

 private:
  enum class State { kData, kUntilClose, kSize, kChunk, kChunkEnd, kTrailer, kEnd, kFault };
  Step Fail(size_t consumed, std::string_view why);
  Step TakeData(std::string_view in, size_t consumed, size_t max, State after);
  std::string_view ParseSize(std::string_view line);
  std::string_view CheckTrailer(std::string_view line);

  State state_ = State::kEnd;
  uint64_t left_ = 0;  // of the body or chunk
  size_t trailer_bytes_ = 0;
  std::string_view why_;
};

// A chunk's first line: "1a\r\n". No chunk is empty.
std::string ChunkHead(size_t size);
inline constexpr std::string_view kChunkEnd = "\r\n";
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

}  // namespace caisson::net
