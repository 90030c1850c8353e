// Both ends of the launcher's protocol: any bytes are decoded or refused, and what decodes encodes
// to itself.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "wire/launcher_protocol.h"

namespace w = caisson::wire::launcher;

template <typename Message>
static void RoundTrip(std::string_view packet, uint32_t tag) {
  const auto message = caisson::wire::Decode<Message>(packet);
  if (!message) return;
  const std::string again = caisson::wire::Encode(*message, tag);
  if (again.substr(caisson::wire::kHeaderSize) != packet.substr(caisson::wire::kHeaderSize))
    abort();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view packet(reinterpret_cast<const char*>(data), size);
  const auto header = caisson::wire::PeekHeader(packet);
  if (!header) return 0;
  RoundTrip<w::Hello>(packet, header->tag);
  RoundTrip<w::HelloReply>(packet, header->tag);
  RoundTrip<w::Failed>(packet, header->tag);
  RoundTrip<w::RegisterRoot>(packet, header->tag);
  RoundTrip<w::Create>(packet, header->tag);
  RoundTrip<w::Created>(packet, header->tag);
  RoundTrip<w::Destroy>(packet, header->tag);
  RoundTrip<w::Destroyed>(packet, header->tag);
  RoundTrip<w::Update>(packet, header->tag);
  RoundTrip<w::Updated>(packet, header->tag);
  RoundTrip<w::Freeze>(packet, header->tag);
  RoundTrip<w::Stats>(packet, header->tag);
  RoundTrip<w::StatsReply>(packet, header->tag);
  RoundTrip<w::List>(packet, header->tag);
  RoundTrip<w::Sandboxes>(packet, header->tag);
  RoundTrip<w::Adopt>(packet, header->tag);
  RoundTrip<w::Adopted>(packet, header->tag);
  RoundTrip<w::Lost>(packet, header->tag);
  return 0;
}
