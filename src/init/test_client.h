// TestClient: an init of its own, un-jailed, and the owner's end of its control socket.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sys/unique_fd.h"
#include "wire/init_protocol.h"

namespace caisson::init {

// The capabilities of the default profile: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID,
// SETUID, SETFCAP.
inline constexpr uint64_t kDefaultCaps = 0x800000fb;

class TestClient {
 public:
  struct Collected {
    std::string out, err;
    uint64_t out_at = 0, err_at = 0;  // offset after the last byte collected
    bool gap = false;                 // an offset did not continue the one before
    std::optional<wire::init::Exited> exited;
  };
  struct Outcome {
    wire::init::Started started;
    std::string out, err;
    wire::init::Exited exited;
  };

  // Where init runs: beside the test, or (needs root) as PID 1 of a namespace with its own /proc.
  enum class Where { kHere, kPidNamespace };

  // Starts init with the default capabilities when root, with none otherwise, and says Hello.
  explicit TestClient(Where where = Where::kHere);
  ~TestClient();  // closes the socket and expects init to end

  pid_t pid() const { return pid_; }
  int socket() const { return socket_.get(); }

  // Sends a request and waits for its reply; events that come in between are collected. nullopt
  // when the reply is Failed (see `failure`), and a test failure when it is another one.
  template <typename Reply, typename Request>
  std::optional<Reply> Call(const Request& request) {
    const uint32_t tag = Send(request);
    const std::string packet = WaitFor(tag);
    failure = {};
    if (const auto header = wire::PeekHeader(packet)) {
      if (header->type == static_cast<uint16_t>(wire::init::Failed::kType)) {
        failure = *wire::Decode<wire::init::Failed>(packet);
        return std::nullopt;
      }
      EXPECT_EQ(header->type, static_cast<uint16_t>(Reply::kType));
      return wire::Decode<Reply>(packet);
    }
    ADD_FAILURE() << "init went away";
    return std::nullopt;
  }
  template <typename Request>
  uint32_t Send(const Request& request) {
    const std::string packet = wire::Encode(request, ++last_tag_);
    SendRaw(packet);
    return last_tag_;
  }
  void SendRaw(const std::string& packet);
  std::string WaitFor(uint32_t tag);
  // One packet, collected if it is an event; false on a timeout or when init has gone.
  bool Receive(int timeout_ms = 10'000);
  // True when init closes the socket in time.
  bool EndsWithin(int timeout_ms);

  wire::init::HelloReply Hello(uint64_t epoch);
  Collected& UntilExited(uint32_t process);
  // Start, everything it says, Exited, Release.
  Outcome Run(wire::init::Start start);
  Outcome Shell(const std::string& script);
  static wire::init::Start ShellStart(const std::string& script);

  std::map<uint32_t, Collected> collected;
  std::vector<wire::init::WatchEvent> changes;
  wire::init::Failed failure;

 private:
  std::string Next(int timeout_ms);
  void Collect(const std::string& packet);

  sys::UniqueFd socket_;
  pid_t pid_ = 0;
  uint32_t last_tag_ = 0;
};

// A directory that is removed at the end, writable for every user.
class ScratchDir {
 public:
  ScratchDir();
  ~ScratchDir();
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace caisson::init
