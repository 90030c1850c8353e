// Server: init's loop. Requests of the control socket go to Commands, Files, Jobs and Watches;
// their replies and events leave through the Outbox.
//
// Everything happens on one thread, one event at a time. Init reads no further request while the
// owner does not take what was answered, and ends, with everything in the sandbox, when the
// control socket closes or a packet breaks the protocol.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "init/commands.h"
#include "init/files.h"
#include "init/identity.h"
#include "init/jobs.h"
#include "init/outbox.h"
#include "init/poller.h"
#include "init/watch.h"
#include "sys/unique_fd.h"

namespace caisson::init {

class Server {
 public:
  // Takes the control socket. `privileges` must be settled and all signals blocked.
  Server(sys::UniqueFd control, Privileges privileges, std::string default_user);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Says Ready and serves until the end; then kills everything. Errors are those of the start.
  Status Run();

 private:
  friend struct Dispatch;

  enum class Verdict { kGoOn, kEnd };

  Status Open();
  Verdict HandleEvent(const epoll_event& event);
  Verdict ReceiveRequest();
  Verdict HandlePacket(std::string_view packet);
  void HandleHello(const wire::init::Hello& hello, uint32_t tag);
  void HandleUsage(uint32_t tag);
  void HandleRemove(const wire::init::Remove& request, uint32_t tag);
  void Reap();
  void UpdateInterest();
  int TimeoutMs() const;

  const sys::UniqueFd control_;
  const Privileges privileges_;
  Poller poller_;
  Outbox outbox_;
  Commands commands_;
  Files files_;
  Jobs jobs_;
  Watches watches_;
  sys::UniqueFd signals_;
  char* buffer_ = nullptr;  // of one packet; a mapping, so that small packets touch little
  uint32_t interest_ = 0;
  bool greeted_ = false;
  bool ending_ = false;
  bool busy_ = false;
  uint64_t started_ns_ = 0;
};

}  // namespace caisson::init
