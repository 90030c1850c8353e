// Gzip: RFC 1952 streams in pieces, both ways. The only place that knows zlib.
//
// The decoder takes bytes from anybody: what it gives at a time is bounded, and a stream that grows
// out of proportion (a bomb) is refused. Pure values, no input or output; one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace caisson::net {

struct GzipLimits {
  uint64_t free_bytes = uint64_t{64} << 20;  // of output, whatever the ratio
  uint64_t ratio = 100;                      // of all output to all input, beyond that
};

class GzipDecoder {
 public:
  static constexpr size_t kMostAtOnce = 256 * 1024;

  explicit GzipDecoder(GzipLimits limits = {});
  ~GzipDecoder();
  GzipDecoder(GzipDecoder&&) noexcept;

  // More of the stream; to be called when Next has given nothing.
  void Feed(std::string bytes);
  // The next piece, at most kMostAtOnce; empty when it needs more. kInvalidArgument when it is no
  // gzip or is damaged, kTooLarge over the limits.
  Result<std::string> Next();
  // The stream has ended. kInvalidArgument when it was cut off.
  Status Finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class GzipEncoder {
 public:
  GzipEncoder();
  ~GzipEncoder();
  GzipEncoder(GzipEncoder&&) noexcept;

  // What can be given of the stream with these bytes added; may be empty.
  Result<std::string> Add(std::string_view bytes);
  // The rest of it.
  Result<std::string> Finish();

 private:
  struct State;
  Result<std::string> Run(std::string_view bytes, int flush);
  std::unique_ptr<State> state_;
};

}  // namespace caisson::net
