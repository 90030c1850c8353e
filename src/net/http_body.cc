#include "net/http_body.h"

#include <algorithm>

namespace caisson::net {
namespace {

constexpr size_t kMaxSizeLine = 256;       // with chunk extensions
constexpr size_t kMaxTrailerBytes = 8192;  // all of them
constexpr size_t kMaxSizeDigits = 15;      // below 2^60: nothing overflows

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

BodyDecoder::BodyDecoder(Framing framing) : left_(framing.length) {
  switch (framing.kind) {
    case Framing::Kind::kNone:
      state_ = State::kEnd;
      break;
    case Framing::Kind::kLength:
      state_ = left_ == 0 ? State::kEnd : State::kData;
      break;
    case Framing::Kind::kChunked:
      state_ = State::kSize;
      break;
    case Framing::Kind::kUntilClose:
      state_ = State::kUntilClose;
      break;
  }
}

BodyDecoder::Step BodyDecoder::Fail(size_t consumed, std::string_view why) {
  state_ = State::kFault;
  why_ = why;
  return {.kind = Step::Kind::kFault, .consumed = consumed, .why = why};
}

BodyDecoder::Step BodyDecoder::TakeData(std::string_view in, size_t consumed, size_t max,
                                        State after) {
  const size_t size = static_cast<size_t>(std::min<uint64_t>({left_, in.size(), max}));
  if (size == 0) return {.kind = Step::Kind::kMore, .consumed = consumed};
  left_ -= size;
  if (left_ == 0) state_ = after;
  return {.kind = Step::Kind::kData, .consumed = consumed + size, .data = in.substr(0, size)};
}

// Empty, or what is wrong.
std::string_view BodyDecoder::ParseSize(std::string_view line) {
  size_t digits = 0;
  left_ = 0;
  while (digits < line.size() && HexDigit(line[digits]) >= 0) {
    if (digits == kMaxSizeDigits) return "a chunk size with too many digits";
    left_ = left_ * 16 + static_cast<uint64_t>(HexDigit(line[digits++]));
  }
  if (digits == 0) return "a chunk without a size";
  const std::string_view extension = TrimBlanks(line.substr(digits));
  if (!extension.empty() && (!extension.starts_with(';') || !IsFieldValue(extension)))
    return "a chunk size that is not a hexadecimal number";
  if (extension.empty() && digits != line.size()) return "blanks after a chunk size";
  return {};
}

std::string_view BodyDecoder::CheckTrailer(std::string_view line) {
  trailer_bytes_ += line.size() + 2;
  if (trailer_bytes_ > kMaxTrailerBytes) return "the trailer is too long";
  if (std::holds_alternative<HttpFault>(ParseHeaderLine(line))) return "a malformed trailer";
  return {};
}

BodyDecoder::Step BodyDecoder::Next(std::string_view in, size_t max) {
  size_t consumed = 0;
  while (true) {
    const std::string_view rest = in.substr(consumed);
    switch (state_) {
      case State::kEnd:
        return {.kind = Step::Kind::kEnd, .consumed = consumed};
      case State::kFault:
        return {.kind = Step::Kind::kFault, .consumed = consumed, .why = why_};
      case State::kData:
        return TakeData(rest, consumed, max, State::kEnd);
      case State::kChunk:
        return TakeData(rest, consumed, max, State::kChunkEnd);
      case State::kUntilClose: {
        const size_t size = std::min(rest.size(), max);
        if (size == 0) return {.kind = Step::Kind::kMore, .consumed = consumed};
        return {
            .kind = Step::Kind::kData, .consumed = consumed + size, .data = rest.substr(0, size)};
      }
      case State::kChunkEnd:
        if (!kChunkEnd.starts_with(rest.substr(0, 2)))
          return Fail(consumed, "a chunk that does not end where its size says");
        if (rest.size() < 2) return {.kind = Step::Kind::kMore, .consumed = consumed};
        consumed += 2;
        state_ = State::kSize;
        break;
      case State::kSize:
      case State::kTrailer: {
        const size_t limit = state_ == State::kSize ? kMaxSizeLine : kMaxTrailerBytes;
        const size_t feed = rest.substr(0, limit).find('\n');
        if (feed == std::string_view::npos) {
          if (rest.size() >= limit)
            return Fail(consumed, "a line of the chunked framing is too long");
          return {.kind = Step::Kind::kMore, .consumed = consumed};
        }
        if (feed == 0 || rest[feed - 1] != '\r')
          return Fail(consumed, "a line of the chunked framing that does not end in CR LF");
        const std::string_view line = rest.substr(0, feed - 1);
        consumed += feed + 1;
        if (state_ == State::kTrailer && line.empty()) {
          state_ = State::kEnd;
          break;
        }
        const std::string_view why = state_ == State::kSize ? ParseSize(line) : CheckTrailer(line);
        if (!why.empty()) return Fail(consumed, why);
        if (state_ == State::kSize) state_ = left_ == 0 ? State::kTrailer : State::kChunk;
        break;
      }
    }
  }
}

bool BodyDecoder::EndsHere() {
  if (state_ == State::kUntilClose) state_ = State::kEnd;
  return state_ == State::kEnd;
}

std::string ChunkHead(size_t size) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string digits;
  for (; size != 0; size >>= 4) digits += kHex[size & 15];
  std::ranges::reverse(digits);
  return digits += kChunkEnd;
}

}  // namespace caisson::net
