// Small text files of the kernel (procfs, cgroupfs, resctrl, sysfs), addressed relative to a
// directory descriptor.
//
// Every read is bounded and a write is one write(2), which is what these file systems want: the
// kernel judges each write as a whole. The Try* functions give errno back and do not allocate; the
// others give an Error that names the file. Thread-safe, no state.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sys/unique_fd.h"

namespace caisson::sys {

// A text of at most 255 bytes built without the heap: paths and values for the Try* functions.
// What does not fit makes it overflowed() and empty, so that nothing acts on a cut name.
class ShortText {
 public:
  ShortText() { data_[0] = '\0'; }
  explicit ShortText(std::string_view text) : ShortText() { Add(text); }
  ShortText& Add(std::string_view text);
  ShortText& Add(uint64_t number);

  const char* c_str() const { return data_.data(); }
  std::string_view view() const { return {data_.data(), size_}; }
  bool overflowed() const { return overflowed_; }

 private:
  std::array<char, 256> data_;
  size_t size_ = 0;
  bool overflowed_ = false;
};

// Writes `text` in one write(2). 0, or errno; EIO when the kernel took only a part.
int TryWriteText(int dir_fd, const char* path, std::string_view text);

// Reads at most buffer.size() bytes. The view is into `buffer`; no value means errno is set.
std::optional<std::string_view> TryReadText(int dir_fd, const char* path, std::span<char> buffer);

// Writes `text`, then reads the file back through the same descriptor. No value means errno is set;
// the view is into `buffer`.
std::optional<std::string_view> TryExchangeText(int dir_fd, const char* path, std::string_view text,
                                                std::span<char> buffer);

// As above with an Error (kIo) that names `path`.
Status WriteText(int dir_fd, const char* path, std::string_view text);
// The whole file; more than `max_bytes` is an error, never a silent cut.
Result<std::string> ReadText(int dir_fd, const char* path, size_t max_bytes = 1 << 20);

// Opens a directory for use as dir_fd (O_PATH). No value means errno is set.
std::optional<UniqueFd> TryOpenDir(int dir_fd, const char* path);

// The number at the start of `text`, which must end there or at white space.
std::optional<uint64_t> ParseNumber(std::string_view text);
// The number after "key " at the start of a line: "oom_kill 3".
std::optional<uint64_t> NumberOf(std::string_view text, std::string_view key);

// Cuts the next piece up to `separator` off `rest`. After the last piece `rest` is empty.
std::string_view NextPiece(std::string_view& rest, char separator);
// Whether `word` is one of the white-space or comma separated words of `text`.
bool HasWord(std::string_view text, std::string_view word);
std::string_view FirstLine(std::string_view text);

}  // namespace caisson::sys
