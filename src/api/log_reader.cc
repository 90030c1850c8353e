#include "api/log_reader.h"

#include <algorithm>

namespace caisson::api {
namespace {

constexpr uint32_t kPiece = 64 * 1024;

}  // namespace

Task<Result<std::string>> LogReader::Read() {
  auto bytes = co_await log_.Read(session_id_, offset_, kPiece);
  if (!bytes && bytes.error().code() == ErrorCode::kNotFound) co_return std::string();
  co_return bytes;
}

Task<Result<bool>> LogReader::HasMoved() {
  if (offset_ == 0) co_return false;
  auto byte = co_await log_.Read(session_id_, offset_ - 1, 1);
  if (!byte && byte.error().code() != ErrorCode::kNotFound) co_return std::move(byte).error();
  // What was read last ended a line; when that is no longer so, this is another place.
  const char expected = partial_.empty() ? '\n' : partial_.back();
  co_return !byte || byte->size() != 1 || byte->front() != expected;
}

std::vector<std::string> LogReader::TakeLines(std::string bytes) {
  partial_ += bytes;
  std::vector<std::string> lines;
  size_t at = 0;
  for (size_t end; (end = partial_.find('\n', at)) != std::string::npos; at = end + 1)
    lines.push_back(partial_.substr(at, end - at));
  partial_.erase(0, at);
  return lines;
}

Task<Result<std::vector<std::string>>> LogReader::Next() {
  CAISSON_CO_ASSIGN(const bool moved, co_await HasMoved());
  if (moved) {
    offset_ = 0;
    partial_.clear();
    seeking_ = !last_.empty();
  }
  for (;;) {
    CAISSON_CO_ASSIGN(std::string bytes, co_await Read());
    if (bytes.empty()) {
      if (!seeking_) co_return std::vector<std::string>();
      // All of it is new: the line that was given last is gone.
      seeking_ = false;
      offset_ = 0;
      partial_.clear();
      co_return std::vector<std::string>{R"({"event":"gap"})"};
    }
    offset_ += bytes.size();
    auto lines = TakeLines(std::move(bytes));
    if (seeking_) {
      const auto found = std::find(lines.begin(), lines.end(), last_);
      if (found == lines.end()) continue;
      lines.erase(lines.begin(), found + 1);
      seeking_ = false;
    }
    if (lines.empty()) continue;
    last_ = lines.back();
    co_return lines;
  }
}

}  // namespace caisson::api
