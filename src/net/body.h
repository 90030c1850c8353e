// BodyReader: a message's body, piece by piece, no faster than it is asked for.
//
// What is not asked for stays in the kernel's buffer and holds the sender back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "async/task.h"

namespace caisson::net {

class BodyReader {
 public:
  virtual ~BodyReader() = default;

  // The next piece, at most `max` bytes and at least one; empty at the end. Errors: kTooLarge (more
  // than the body's limit), kDeadlineExceeded (no progress), kIo; of a request, kInvalidArgument
  // (malformed) and kCancelled (cut off); of an answer, kProtocol for both.
  virtual Task<Result<std::string>> Next(size_t max = 65536) = 0;
  // The length that the sender announced, or nothing when it is chunked or ends with the
  // connection. 0 when there is no body.
  virtual std::optional<uint64_t> content_length() const = 0;
  // The end has been read.
  virtual bool finished() const = 0;
  // A read failed because the sender made no progress in time.
  virtual bool stalled() const { return false; }

  // All that is left, or kTooLarge when it is more than `limit`; no more than that is ever kept.
  Task<Result<std::string>> ReadAll(size_t limit);
};

// The error of a body over its limit: kTooLarge.
Error BodyTooLarge(uint64_t limit);

}  // namespace caisson::net
