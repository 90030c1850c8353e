// Reading and writing little-endian, length-prefixed binary frames with bounds on everything.
//
// ByteWriter appends to a std::string. ByteReader never reads past its input: after the first
// failed read every further read gives a zero value and ok() is false, so a decoder reads all
// fields and checks once.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace caisson {

class ByteWriter {
 public:
  explicit ByteWriter(std::string& out) : out_(out) {}

  template <typename T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  void Int(T value) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    out_.append(raw, sizeof(T));
  }
  void Bytes(std::string_view bytes) {
    Int(static_cast<uint32_t>(bytes.size()));
    out_.append(bytes);
  }
  template <typename Range, typename Each>
  void List(const Range& items, Each each) {
    Int(static_cast<uint32_t>(items.size()));
    for (const auto& item : items) each(item);
  }

 private:
  std::string& out_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view in) : in_(in) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return ok_ && in_.empty(); }  // everything was read, nothing is left over

  template <typename T>
    requires std::is_integral_v<T> || std::is_enum_v<T>
  T Int() {
    T value{};
    if (!ok_ || in_.size() < sizeof(T)) return ok_ = false, T{};
    std::memcpy(&value, in_.data(), sizeof(T));
    in_.remove_prefix(sizeof(T));
    return value;
  }
  // A view into the input; valid as long as the input is.
  std::string_view Bytes(size_t max) {
    const auto size = Int<uint32_t>();
    if (!ok_ || size > max || size > in_.size()) return ok_ = false, std::string_view{};
    const auto bytes = in_.substr(0, size);
    in_.remove_prefix(size);
    return bytes;
  }
  std::string String(size_t max) { return std::string(Bytes(max)); }
  // Calls `each` as often as the list says, at most `max` times, until something fails.
  template <typename Each>
  void List(size_t max, Each each) {
    const auto count = Int<uint32_t>();
    if (count > max) ok_ = false;
    for (uint32_t i = 0; ok_ && i < count; ++i) each();
  }
  void Fail() { ok_ = false; }

 private:
  std::string_view in_;
  bool ok_ = true;
};

}  // namespace caisson
