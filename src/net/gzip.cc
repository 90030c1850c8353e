#include "net/gzip.h"

#include <zlib.h>

namespace caisson::net {
namespace {

constexpr int kGzipWindow = 15 + 16;  // the largest window, with gzip's header and trailer
constexpr int kMemory = 8;            // zlib's default
constexpr int kLevel = Z_BEST_SPEED;  // a transfer waits for it

Bytef* BytesOf(const char* text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text));  // zlib does not write to its input
}

}  // namespace

struct GzipDecoder::State {
  explicit State(GzipLimits limits) : limits(limits) {
    sound = inflateInit2(&stream, kGzipWindow) == Z_OK;
  }
  ~State() { inflateEnd(&stream); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const GzipLimits limits;
  z_stream stream{};
  bool sound = false;
  bool between = true;  // before the first member, or after one
  bool seen = false;    // a whole member
  std::string input;
  size_t used = 0;       // of the input
  bool pending = false;  // there was no room for all that the input gave
  uint64_t in = 0, out = 0;
};

GzipDecoder::GzipDecoder(GzipLimits limits) : state_(std::make_unique<State>(limits)) {}
GzipDecoder::~GzipDecoder() = default;
GzipDecoder::GzipDecoder(GzipDecoder&&) noexcept = default;

void GzipDecoder::Feed(std::string bytes) {
  state_->input.erase(0, state_->used);
  state_->used = 0;
  state_->input += bytes;
}

Result<std::string> GzipDecoder::Next() {
  State& state = *state_;
  if (!state.sound) return Error(ErrorCode::kResourceExhausted, "there is no memory to decompress");
  std::string output;
  while (output.empty() && (state.pending || state.used < state.input.size())) {
    if (state.between && state.seen) inflateReset(&state.stream);  // one member may follow another
    state.between = false;
    output.resize(kMostAtOnce);
    const size_t left = state.input.size() - state.used;
    state.stream.next_in = BytesOf(state.input.data() + state.used);
    state.stream.avail_in = static_cast<uInt>(left);
    state.stream.next_out = BytesOf(output.data());
    state.stream.avail_out = static_cast<uInt>(output.size());
    const int result = inflate(&state.stream, Z_NO_FLUSH);
    state.used += left - state.stream.avail_in;
    state.in += left - state.stream.avail_in;
    output.resize(output.size() - state.stream.avail_out);
    state.out += output.size();
    state.pending = state.stream.avail_out == 0;
    if (result == Z_STREAM_END) {
      state.between = state.seen = true;
      state.pending = false;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return Error(ErrorCode::kInvalidArgument,
                   std::string("the gzip stream is damaged: ") +
                       (state.stream.msg != nullptr ? state.stream.msg : "it makes no sense"));
    }
  }
  if (state.out > state.limits.free_bytes && state.out / state.limits.ratio > state.in)
    return Error(ErrorCode::kTooLarge, "the gzip stream expands to more than " +
                                           std::to_string(state.limits.ratio) + " times its size")
        .WithRemedy("send it uncompressed");
  return output;
}

Status GzipDecoder::Finish() const {
  if (state_->between && state_->seen) return {};
  return Error(ErrorCode::kInvalidArgument, "the gzip stream has been cut off");
}

struct GzipEncoder::State {
  State() {
    sound =
        deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) == Z_OK;
  }
  ~State() { deflateEnd(&stream); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  z_stream stream{};
  bool sound = false;
};

GzipEncoder::GzipEncoder() : state_(std::make_unique<State>()) {}
GzipEncoder::~GzipEncoder() = default;
GzipEncoder::GzipEncoder(GzipEncoder&&) noexcept = default;

Result<std::string> GzipEncoder::Run(std::string_view bytes, int flush) {
  if (!state_->sound) return Error(ErrorCode::kResourceExhausted, "there is no memory to compress");
  z_stream& stream = state_->stream;
  stream.next_in = BytesOf(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string output;
  do {
    const size_t before = output.size();
    output.resize(before + 64 * 1024);
    stream.next_out = BytesOf(output.data() + before);
    stream.avail_out = 64 * 1024;
    if (deflate(&stream, flush) == Z_STREAM_ERROR)
      return Error(ErrorCode::kInternal, "compressing failed");
    output.resize(output.size() - stream.avail_out);
  } while (stream.avail_out == 0);
  return output;
}

Result<std::string> GzipEncoder::Add(std::string_view bytes) { return Run(bytes, Z_NO_FLUSH); }
Result<std::string> GzipEncoder::Finish() { return Run({}, Z_FINISH); }

}  // namespace caisson::net
