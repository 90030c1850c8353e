// OpenStreams: the streams that are open, by whose key they were opened, so that a revoked key's
// end with it. Belongs to one Loop's thread; outlives its entries.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "async/event.h"

namespace caisson::api {

class OpenStreams {
 public:
  explicit OpenStreams(async::Loop& loop) : loop_(loop) {}
  OpenStreams(const OpenStreams&) = delete;
  OpenStreams& operator=(const OpenStreams&) = delete;

  // One stream, for as long as it is open.
  class Entry {
   public:
    Entry(OpenStreams& streams, std::string key_id);
    ~Entry();
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    // Set when the stream has to end.
    async::Event& ended() { return ended_; }

   private:
    OpenStreams& streams_;
    async::Event ended_;
    std::multimap<std::string, Entry*>::iterator place_;
  };

  // Ends all of that key's.
  void End(const std::string& key_id);
  size_t open() const { return entries_.size(); }

 private:
  async::Loop& loop_;
  std::multimap<std::string, Entry*> entries_;
};

}  // namespace caisson::api
