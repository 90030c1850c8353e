// The launcher's loop: requests in, sandboxes out, one thread, nothing that blocks for long.
//
// Everything it waits for is in one epoll set: owners' sockets, the pipes and control sockets of
// sandboxes being born, the pidfds of all inits, and the network pool. Work that nobody waits for
// (refilling pools, cleaning up after the dead) is done one step at a time when nothing else is
// ready. The loop is in launcher.cc, requests in launcher_requests.cc, the life of a sandbox in
// launcher_lives.cc.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "launcher/birth.h"
#include "launcher/host.h"
#include "launcher/spares.h"
#include "sys/packet.h"

namespace caisson::launcher {

struct LauncherOptions {
  sys::UniqueFd first_owner;  // connected socket; may be empty when `listener` is there
  sys::UniqueFd listener;     // keeping mode: accepts later owners
  bool pools = true;          // make things ahead; off for an owner that wants one sandbox
  // How long a keeping launcher stays with neither owner nor sandbox.
  uint64_t linger_ns = 60'000'000'000;
};

class Launcher {
 public:
  static Result<std::unique_ptr<Launcher>> Create(Host host, LauncherOptions options);
  ~Launcher();

  // Runs until shut down, or, when it does not keep, until its owner is gone. Everything it made is
  // gone then.
  void Run();

 private:
  struct Owner {
    sys::UniqueFd socket;
    struct Outgoing {
      std::string bytes;
      std::vector<sys::UniqueFd> fds;
    };
    std::deque<Outgoing> queue;  // what the socket would not take yet
  };
  enum class Watched : uint8_t { kListener, kOwner, kReport, kControl, kPid, kNetPool, kGangway };

  Launcher(Host host, LauncherOptions options, NetPool nets);
  bool Watch(int fd, Watched what, uint64_t serial, uint32_t events);
  void Wait(int timeout_ms);
  void HandleEvent(Watched what, uint64_t serial);
  int NextTimeout();
  bool IdleWork();
  void CheckDeadlines();
  void CheckAlone();
  void Stop();  // kills everything; Run returns when all of it is gone

  void Accept();
  void ReadOwner(uint64_t serial);
  void FlushOwner(uint64_t serial);
  void DropOwner(uint64_t serial);
  template <typename Message>
  void Reply(uint64_t owner, uint32_t tag, const Message& message,
             std::vector<sys::UniqueFd> fds = {});
  void Fail(uint64_t owner, uint32_t tag, const Error& error);
  void Send(uint64_t owner, std::string bytes, std::vector<sys::UniqueFd> fds);

  void Dispatch(uint64_t owner, const sys::Packet& packet, std::vector<sys::UniqueFd> fds);
  void OnRegisterRoot(uint64_t owner, uint32_t tag, wire::launcher::RegisterRoot request,
                      std::vector<sys::UniqueFd> fds);
  void OnCreate(uint64_t owner, uint32_t tag, wire::launcher::Create request,
                std::vector<sys::UniqueFd> fds);
  void OnDestroy(uint64_t owner, uint32_t tag, const std::string& id);
  void OnUpdate(uint64_t owner, uint32_t tag, const wire::launcher::Update& request);
  void OnFreeze(uint64_t owner, uint32_t tag, const wire::launcher::Freeze& request);
  void OnStats(uint64_t owner, uint32_t tag, const std::string& id);
  void OnList(uint64_t owner, uint32_t tag, const std::string& after);
  void OnAdopt(uint64_t owner, uint32_t tag, const std::string& id);

  // The box under this id, running; otherwise answers Failed and gives null.
  Box* FindRunning(uint64_t owner, uint32_t tag, const std::string& id);
  wire::launcher::Counters CountersOf(Box& box);
  // What an owner gets of a box: copies of the control socket and of the files that count.
  struct Handed {
    wire::launcher::Created created;
    std::vector<sys::UniqueFd> fds;
  };
  Result<Handed> HandOver(Box& box);
  Result<std::vector<wire::launcher::LimitFact>> ChangeLimits(Box& box,
                                                              const wire::launcher::Limits& limits);
  Box& Admit(std::unique_ptr<Box> born);  // watches it from now on
  Box* ClaimSpare(const wire::launcher::Create& request);
  bool BeginSpare();
  void OnReport(Box& box);
  void OnReady(Box& box);
  void HandOut(Box& box);
  void OnInitGone(Box& box);
  void Kill(Box& box);
  void Bury(uint64_t serial);  // to be reclaimed when there is time
  void Reclaim(std::unique_ptr<Box> box);

  Host host_;
  sys::UniqueFd listener_;
  sys::UniqueFd epoll_;
  NetPool nets_;
  BerthPool berths_;
  CgroupPool cgroups_;
  Spares spares_;
  std::unordered_map<uint64_t, Owner> owners_;
  std::unordered_map<uint64_t, std::unique_ptr<Box>> boxes_;  // by serial
  std::unordered_map<std::string, uint64_t> serials_;         // by id
  std::set<uint64_t> unsettled_;            // starting or dying: those with a deadline
  std::vector<std::unique_ptr<Box>> dead_;  // reaped, not yet freed
  uint64_t next_serial_ = 1;
  uint64_t linger_ns_;
  uint64_t alone_since_ns_ = 0;  // 0: it is not
  bool keeping_;
  bool pools_;
  bool stopping_ = false;
  uint64_t stop_owner_ = 0;
  uint32_t stop_tag_ = 0;
};

template <typename Message>
void Launcher::Reply(uint64_t owner, uint32_t tag, const Message& message,
                     std::vector<sys::UniqueFd> fds) {
  if (owner != 0) Send(owner, wire::Encode(message, tag), std::move(fds));
}

}  // namespace caisson::launcher
