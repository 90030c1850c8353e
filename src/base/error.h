// Error: what failed, on which object, why, and what to do about it.
//
// Every code stands in one table (error.cc) that also gives its stable name, HTTP status,
// whether a retry can help, and the CLI's exit code. A guest that crashes or times out is
// not an Error; it is an outcome (sandbox/outcome.h).
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace caisson {

enum class ErrorCode {
  kInvalidArgument,    // the caller asked for something malformed or contradictory
  kNotFound,           // it never existed
  kGone,               // it existed and has ended
  kConflict,           // it exists already, or is in a state that forbids the call
  kPermissionDenied,   // the caller may not
  kLimitRefused,       // a limit that this host cannot enforce, or an impossible one
  kUnsupported,        // this provider, host or kernel cannot do it
  kImageInvalid,       // the root filesystem given cannot be used
  kResourceExhausted,  // the host or a pool is out of something
  kUnavailable,        // a helper, engine or server is not reachable
  kDeadlineExceeded,   // an operation of ours (not a guest's command) took too long
  kCancelled,          // the caller gave up
  kIsolationFailed,    // a layer of the jail could not be applied or verified
  kProtocol,           // the other end broke the protocol
  kIo,                 // the operating system said no
  kInternal,           // a defect of ours
  kUnauthenticated,    // the caller has not said who they are, or not convincingly
  kTooLarge,           // what was sent is larger than its limit
  kRateLimited,        // the caller asks too often
};

struct ErrorInfo {
  ErrorCode code;
  std::string_view name;  // stable, snake_case; part of the API
  int http_status;
  bool retryable;
  int exit_code;             // of the CLI
  std::string_view meaning;  // one line, for the docs
};

// The whole table, in the order of the enum.
std::span<const ErrorInfo> ErrorTable();
const ErrorInfo& InfoOf(ErrorCode code);

class Error {
 public:
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  // An Error from errno: "message: No such file or directory". The code is kIo.
  static Error FromErrno(std::string message, int error_number);
  static Error FromErrno(std::string message);  // with the current errno

  // The same error seen from one level up: "attempt: message".
  Error Because(std::string_view attempt) &&;
  Error WithRemedy(std::string remedy) && {
    remedy_ = std::move(remedy);
    return std::move(*this);
  }
  Error WithCode(ErrorCode code) && {
    code_ = code;
    return std::move(*this);
  }

  ErrorCode code() const { return code_; }
  std::string_view name() const { return InfoOf(code_).name; }
  const std::string& message() const { return message_; }
  const std::string& remedy() const { return remedy_; }
  int sys_errno() const { return sys_errno_; }  // 0 when no system call failed

 private:
  ErrorCode code_;
  std::string message_;
  std::string remedy_;
  int sys_errno_ = 0;
};

}  // namespace caisson
