// Feeds arbitrary packets to every decoder of the protocol between owner and init, and checks that
// what decodes also encodes to the same bytes, so that no two packets mean the same message.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "init/passwd.h"
#include "wire/init_protocol.h"

namespace {

using namespace caisson::wire::init;  // NOLINT: every message of the protocol

template <typename Message>
void RoundTrip(std::string_view packet, const caisson::wire::Header& header) {
  if (header.type != static_cast<uint16_t>(Message::kType)) return;
  const auto message = caisson::wire::Decode<Message>(packet);
  if (!message) return;
  if (caisson::wire::Encode(*message, header.tag) != packet) std::abort();
}

template <typename... Messages>
void RoundTripAll(std::string_view packet, const caisson::wire::Header& header) {
  (RoundTrip<Messages>(packet, header), ...);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view packet(reinterpret_cast<const char*>(data), size);
  if (const auto header = caisson::wire::PeekHeader(packet)) {
    RoundTripAll<Ready, Hello, HelloReply, Done, Failed, Start, Started, Input, Signal, Resize,
                 Attach, Attached, Credit, Detach, Release, ListProcesses, Processes, Output,
                 Exited, Usage, UsageReply, Shutdown, UpdateDefaults, Stat, StatReply, ListDir,
                 Entries, Open, Opened, Read, Data, Write, Written, Close, Mkdir, Move, Remove,
                 Watch, Watching, Unwatch, WatchEvent, SetMode, Symlink>(packet, *header);
  }
  // The same bytes as a user string and as the files it is looked up in.
  const size_t cut = size > 0 ? data[0] % (size + 1) : 0;
  const auto user = caisson::init::FindUser(packet.substr(0, cut), packet.substr(cut), packet);
  if (user && (user->uid > caisson::init::kMaxId || user->gid > caisson::init::kMaxId))
    std::abort();
  return 0;
}
