#include "base/error.h"

#include <array>
#include <cerrno>
#include <cstring>

namespace caisson {
namespace {

using enum ErrorCode;

constexpr std::array<ErrorInfo, 19> kTable = {{
    {kInvalidArgument, "invalid_argument", 400, false, 125,
     "the request is malformed or contradicts itself"},
    {kNotFound, "not_found", 404, false, 125, "the object never existed"},
    {kGone, "gone", 410, false, 125, "the object existed and has ended"},
    {kConflict, "conflict", 409, false, 125,
     "the object exists already or is in a state that forbids the call"},
    {kPermissionDenied, "permission_denied", 403, false, 125, "the caller may not do this"},
    {kLimitRefused, "limit_refused", 422, false, 125,
     "the limit is impossible or cannot be enforced on this host"},
    {kUnsupported, "unsupported", 501, false, 125, "this provider, host or kernel cannot do it"},
    {kImageInvalid, "image_invalid", 422, false, 125, "the root filesystem cannot be used"},
    {kResourceExhausted, "resource_exhausted", 503, true, 125,
     "the host or a pool is out of something"},
    {kUnavailable, "unavailable", 503, true, 125, "a helper, engine or server is not reachable"},
    {kDeadlineExceeded, "deadline_exceeded", 504, true, 125,
     "an operation of Caisson's own took too long"},
    {kCancelled, "cancelled", 499, false, 125, "the caller gave up"},
    {kIsolationFailed, "isolation_failed", 500, false, 125,
     "a layer of the jail could not be applied or verified"},
    {kProtocol, "protocol", 502, false, 125, "the other end broke the protocol"},
    {kIo, "io", 500, false, 125, "the operating system refused an operation"},
    {kInternal, "internal", 500, false, 125, "a defect in Caisson"},
    {kUnauthenticated, "unauthenticated", 401, false, 125,
     "the caller has not proved who they are"},
    {kTooLarge, "too_large", 413, false, 125, "what was sent is larger than its limit"},
    {kRateLimited, "rate_limited", 429, true, 125, "the caller asks too often"},
}};

}  // namespace

std::span<const ErrorInfo> ErrorTable() { return kTable; }

const ErrorInfo& InfoOf(ErrorCode code) { return kTable[static_cast<size_t>(code)]; }

Error Error::FromErrno(std::string message, int error_number) {
  message += ": ";
  message += strerror(error_number);
  const bool exhausted = error_number == EMFILE || error_number == ENFILE || error_number == ENOMEM;
  Error error(exhausted ? kResourceExhausted : kIo, std::move(message));
  error.sys_errno_ = error_number;
  if (exhausted)
    return std::move(error).WithRemedy(error_number == ENOMEM
                                           ? "free memory on the host, then try again"
                                           : "raise the limit of open files (ulimit -n)");
  return error;
}

Error Error::FromErrno(std::string message) { return FromErrno(std::move(message), errno); }

Error Error::Because(std::string_view attempt) && {
  message_.insert(0, ": ").insert(0, attempt);
  return std::move(*this);
}

}  // namespace caisson
