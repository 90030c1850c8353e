// Frames: how the server, the launcher and init talk.
//
// Every message travels as one packet of a SOCK_SEQPACKET unix socket:
//
//   u32 size   of the whole packet, header included; must equal the packet's real size
//   u16 type   one of the enum of that protocol
//   u16 zero   reserved, must be 0
//   u32 tag    chosen by the requester; a reply carries its request's tag, an event carries 0
//   …          the message's fields, little-endian, lists and strings with u32 lengths
//
// A message is a struct with `static constexpr auto kType` and one template `Fields(archive)`
// that lists its fields with their bounds; the same list encodes and decodes, so the two ends
// cannot disagree. A packet that is short, long, out of bounds or has bytes left over is
// refused whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace caisson::wire {

inline constexpr size_t kHeaderSize = 12;
inline constexpr size_t kMaxData = 64 * 1024;    // bulk bytes in one frame
inline constexpr size_t kMaxFrame = 128 * 1024;  // any frame; below the default socket buffer

struct Header {
  uint16_t type = 0;
  uint32_t tag = 0;
};

class Encoder {
 public:
  explicit Encoder(std::string& out) : writer_(out) {}
  template <typename T>
  void Int(const T& value) {
    writer_.Int(value);
  }
  void Str(const std::string& value, size_t /*max*/) { writer_.Bytes(value); }
  void StrList(const std::vector<std::string>& values, size_t /*max_items*/, size_t /*max_each*/) {
    writer_.List(values, [this](const std::string& v) { writer_.Bytes(v); });
  }
  template <typename T>
  void IntList(const std::vector<T>& values, size_t /*max_items*/) {
    writer_.List(values, [this](const T& v) { writer_.Int(v); });
  }
  template <typename T>
  void StructList(const std::vector<T>& values, size_t /*max_items*/) {
    writer_.List(values, [this](const T& v) { const_cast<T&>(v).Fields(*this); });
  }
  template <typename T>
  void Struct(const T& value) {
    const_cast<T&>(value).Fields(*this);
  }

 private:
  ByteWriter writer_;
};

// Checks a message against its bounds without encoding it: what it refuses, the other end would
// refuse too.
class BoundsChecker {
 public:
  template <typename T>
  void Int(const T&) {}
  void Str(const std::string& value, size_t max) { ok_ = ok_ && value.size() <= max; }
  void StrList(const std::vector<std::string>& values, size_t max_items, size_t max_each) {
    ok_ = ok_ && values.size() <= max_items;
    for (const auto& value : values) Str(value, max_each);
  }
  template <typename T>
  void IntList(const std::vector<T>& values, size_t max_items) {
    ok_ = ok_ && values.size() <= max_items;
  }
  template <typename T>
  void StructList(const std::vector<T>& values, size_t max_items) {
    ok_ = ok_ && values.size() <= max_items;
    for (const T& value : values) const_cast<T&>(value).Fields(*this);
  }
  template <typename T>
  void Struct(const T& value) {
    const_cast<T&>(value).Fields(*this);
  }
  bool ok() const { return ok_; }

 private:
  bool ok_ = true;
};

template <typename Message>
bool WithinBounds(const Message& message) {
  BoundsChecker checker;
  const_cast<Message&>(message).Fields(checker);
  return checker.ok();
}

class Decoder {
 public:
  explicit Decoder(std::string_view in) : reader_(in) {}
  template <typename T>
  void Int(T& value) {
    value = reader_.Int<T>();
  }
  void Str(std::string& value, size_t max) { value = reader_.String(max); }
  void StrList(std::vector<std::string>& values, size_t max_items, size_t max_each) {
    reader_.List(max_items, [&] { values.push_back(reader_.String(max_each)); });
  }
  template <typename T>
  void IntList(std::vector<T>& values, size_t max_items) {
    reader_.List(max_items, [&] { values.push_back(reader_.Int<T>()); });
  }
  template <typename T>
  void StructList(std::vector<T>& values, size_t max_items) {
    reader_.List(max_items, [&] { values.emplace_back().Fields(*this); });
  }
  template <typename T>
  void Struct(T& value) {
    value.Fields(*this);
  }
  void Refuse() { reader_.Fail(); }
  bool Complete() const { return reader_.AtEnd(); }

 private:
  ByteReader reader_;
};

// The packet for `message` under `tag`.
template <typename Message>
std::string Encode(const Message& message, uint32_t tag) {
  std::string packet;
  ByteWriter header(packet);
  header.Int(uint32_t{0});
  header.Int(static_cast<uint16_t>(Message::kType));
  header.Int(uint16_t{0});
  header.Int(tag);
  Encoder encoder(packet);
  const_cast<Message&>(message).Fields(encoder);
  const auto size = static_cast<uint32_t>(packet.size());
  std::memcpy(packet.data(), &size, sizeof size);
  return packet;
}

// The header of a packet, if the packet is well formed as far as the header goes.
inline std::optional<Header> PeekHeader(std::string_view packet) {
  ByteReader reader(packet);
  const auto size = reader.Int<uint32_t>();
  Header header;
  header.type = reader.Int<uint16_t>();
  const auto zero = reader.Int<uint16_t>();
  header.tag = reader.Int<uint32_t>();
  if (!reader.ok() || zero != 0 || size != packet.size() || size > kMaxFrame) return std::nullopt;
  return header;
}

// The message in a packet whose header was seen to carry Message::kType.
template <typename Message>
std::optional<Message> Decode(std::string_view packet) {
  Message message;
  Decoder decoder(packet.substr(kHeaderSize));
  message.Fields(decoder);
  if (!decoder.Complete()) return std::nullopt;
  return message;
}

}  // namespace caisson::wire
