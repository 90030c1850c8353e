#include "api/open_streams.h"

#include <utility>

namespace caisson::api {

OpenStreams::Entry::Entry(OpenStreams& streams, std::string key_id)
    : streams_(streams),
      ended_(streams.loop_),
      place_(streams.entries_.emplace(std::move(key_id), this)) {}

OpenStreams::Entry::~Entry() { streams_.entries_.erase(place_); }

void OpenStreams::End(const std::string& key_id) {
  const auto [first, last] = entries_.equal_range(key_id);
  for (auto entry = first; entry != last; ++entry) entry->second->ended().Set();
}

}  // namespace caisson::api
