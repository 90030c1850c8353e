#include "sys/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace caisson::sys {
namespace {

UniqueFd OpenText(int dir_fd, const char* path, int flags) {
  if (path[0] == '\0') {  // an overflowed ShortText
    errno = ENAMETOOLONG;
    return UniqueFd();
  }
  int fd;
  do {
    fd = ::openat(dir_fd, path, flags | O_CLOEXEC | O_NOCTTY);
  } while (fd < 0 && errno == EINTR);
  return UniqueFd(fd);
}

int WriteWhole(int fd, std::string_view text) {
  ssize_t written;
  do {
    written = ::write(fd, text.data(), text.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return errno;
  return static_cast<size_t>(written) == text.size() ? 0 : EIO;
}

std::optional<std::string_view> ReadUpTo(int fd, std::span<char> buffer) {
  size_t size = 0;
  while (size < buffer.size()) {
    const ssize_t got = ::pread(fd, buffer.data() + size, buffer.size() - size, size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  return std::string_view(buffer.data(), size);
}

bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\t'; }

}  // namespace

ShortText& ShortText::Add(std::string_view text) {
  if (overflowed_ || text.size() >= data_.size() - size_) {
    overflowed_ = true;
    size_ = 0;
  } else {
    std::memcpy(data_.data() + size_, text.data(), text.size());
    size_ += text.size();
  }
  data_[size_] = '\0';
  return *this;
}

ShortText& ShortText::Add(uint64_t number) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof(digits), number).ptr;
  return Add(std::string_view(digits, static_cast<size_t>(end - digits)));
}

int TryWriteText(int dir_fd, const char* path, std::string_view text) {
  const UniqueFd fd = OpenText(dir_fd, path, O_WRONLY);
  return fd ? WriteWhole(fd.get(), text) : errno;
}

std::optional<std::string_view> TryReadText(int dir_fd, const char* path, std::span<char> buffer) {
  const UniqueFd fd = OpenText(dir_fd, path, O_RDONLY);
  if (!fd) return std::nullopt;
  return ReadUpTo(fd.get(), buffer);
}

std::optional<std::string_view> TryExchangeText(int dir_fd, const char* path, std::string_view text,
                                                std::span<char> buffer) {
  const UniqueFd fd = OpenText(dir_fd, path, O_RDWR);
  if (!fd) return std::nullopt;
  if (const int error = WriteWhole(fd.get(), text); error != 0) {
    errno = error;
    return std::nullopt;
  }
  return ReadUpTo(fd.get(), buffer);
}

Status WriteText(int dir_fd, const char* path, std::string_view text) {
  const int error = TryWriteText(dir_fd, path, text);
  if (error == 0) return {};
  std::string message = "cannot write \"";
  message.append(FirstLine(text)).append("\" to ").append(path);
  return Error::FromErrno(std::move(message), error);
}

Result<std::string> ReadText(int dir_fd, const char* path, size_t max_bytes) {
  const UniqueFd fd = OpenText(dir_fd, path, O_RDONLY);
  if (!fd) return Error::FromErrno(std::string("cannot open ") + path);
  std::string text;
  while (true) {
    char chunk[4096];
    const ssize_t got = ::read(fd.get(), chunk, sizeof(chunk));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error::FromErrno(std::string("cannot read ") + path);
    if (got == 0) return text;
    if (text.size() + static_cast<size_t>(got) > max_bytes)
      return Error::FromErrno(std::string("cannot read ") + path, EFBIG);
    text.append(chunk, static_cast<size_t>(got));
  }
}

std::optional<UniqueFd> TryOpenDir(int dir_fd, const char* path) {
  UniqueFd fd = OpenText(dir_fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  if (!fd) return std::nullopt;
  return fd;
}

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  if (end != text.data() + text.size() && !IsBlank(*end)) return std::nullopt;
  return value;
}

std::optional<uint64_t> NumberOf(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::string_view line = NextPiece(text, '\n');
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ')
      return ParseNumber(line.substr(key.size() + 1));
  }
  return std::nullopt;
}

std::string_view NextPiece(std::string_view& rest, char separator) {
  const size_t end = rest.find(separator);
  const std::string_view piece = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return piece;
}

bool HasWord(std::string_view text, std::string_view word) {
  while (!text.empty()) {
    size_t end = text.find_first_of(" ,\n\t");
    if (end == std::string_view::npos) end = text.size();
    if (text.substr(0, end) == word) return true;
    text.remove_prefix(end < text.size() ? end + 1 : end);
  }
  return false;
}

std::string_view FirstLine(std::string_view text) { return text.substr(0, text.find('\n')); }

}  // namespace caisson::sys
