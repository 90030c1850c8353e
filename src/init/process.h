// Process: one command, from Start until it is released and nothing of it is left.
//
// States: kStarting (the supervisor has not reported), kRunning, kDraining (the command ended, its
// pipes have not), kFinished (Exited is known; late output of daemons is read and dropped). A
// released process is invisible to the owner and lives on only as long as its supervisor or pipes
// do.
//
// Not thread-safe. The owner of all of them is Commands, which also keeps the blocks' memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "init/outbox.h"
#include "init/poller.h"
#include "init/ring.h"
#include "init/spawn.h"
#include "init/supervisor.h"
#include "sys/unique_fd.h"
#include "wire/init_protocol.h"

namespace caisson::init {

uint64_t MonotonicNs();

class Process {
 public:
  enum class State { kStarting, kRunning, kDraining, kFinished };
  static constexpr uint64_t kNever = UINT64_MAX;

  // Makes the stdio, starts the supervisor with `block` and registers with `poller`. On failure
  // nothing of it is left and `block` may be given back.
  static Result<std::unique_ptr<Process>> Create(uint32_t id, wire::init::Start& start,
                                                 SpawnPlan plan, const Privileges& privileges,
                                                 Supervision* block, int report_fd, Poller& poller);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  uint32_t id() const { return id_; }
  State state() const { return state_; }
  pid_t supervisor() const { return supervisor_; }  // 0: gone
  pid_t child_pid() const { return block_ ? block_->child_pid.load() : pid_; }
  Supervision* block() const { return block_; }
  bool released() const { return released_; }
  bool command_lives() const { return state_ == State::kStarting || state_ == State::kRunning; }
  // Nothing runs, nothing is open, nobody may ask for it again.
  bool Disposable() const;

  // --- what happened below -------------------------------------------------------------------
  // The supervisor announced the spawn: true when the command runs. Then `started` is valid.
  bool OnSpawned();
  wire::init::Started started() const;
  void OnEnded(int status, const rusage& usage, uint64_t ended_ns);
  // Its supervisor is reaped. The block may be given back if this returns it.
  Supervision* OnSupervisorGone();
  Supervision* ReleaseBlock();
  void OnEvent(Source source, uint32_t events, Outbox& outbox);
  // Reads and sends what can be. True when there is more to do at once.
  bool Step(Outbox& outbox);
  // Deadlines: when the next is due, and acting on those that are.
  uint64_t NextDeadline() const;
  // True when the tree must be killed for passing a limit, asked once per event.
  bool TakeKillOrder();
  void OnTick(uint64_t now);

  // --- what the owner asks -------------------------------------------------------------------
  void SetStartTag(std::optional<uint32_t> tag) { start_tag_ = tag; }
  std::optional<uint32_t> start_tag() const { return start_tag_; }
  void Input(wire::init::Input& input, uint32_t tag, Outbox& outbox);
  wire::init::Attached Attach(const wire::init::Attach& request);
  void AddCredit(uint64_t bytes);
  void Detach() { attached_ = false; }
  // The former owner is gone, with its attachment and the replies it waits for.
  void ForgetOwner();
  Status Resize(uint16_t rows, uint16_t cols);
  void NoteOwnerSignal(int signo) { owner_signals_ |= uint64_t{1} << (signo & 63); }
  void Release();
  wire::init::ProcessInfo Info() const;
  uint64_t output_bytes() const { return streams_[0].ring.end() + streams_[1].ring.end(); }

  // Killing the tree is under way until nothing is left of it (see Commands).
  struct Killing {
    uint64_t since_ns = 0;
    uint64_t next_ns = kNever;
    uint64_t pause_ns = 0;
  } killing;
  // The supervisor was killed before its tree had ended.
  bool tree_lost = false;

 private:
  struct Stream {
    explicit Stream(size_t capacity) : ring(capacity) {}
    sys::UniqueFd fd;
    Ring ring;
    uint64_t sent = 0;     // offset of the next byte for the owner
    uint64_t dropped = 0;  // bytes nobody was sent
    bool readable = false;
  };

  Process(uint32_t id, wire::init::Start& start, SpawnPlan plan, Supervision* block);
  Status OpenPipes(const wire::init::Start& start, sys::UniqueFd (&ends)[3]);
  Status OpenTerminal(const wire::init::Start& start, const Privileges& privileges,
                      sys::UniqueFd (&ends)[3]);
  Status Register(Poller& poller);
  void Read(Stream& stream);
  ssize_t ReadInto(Stream& stream, size_t room);
  // The first bytes come by way of the stack, so that a stream without any needs no ring.
  ssize_t ReadFirst(Stream& stream, size_t max);
  ssize_t Discard(Stream& stream);
  size_t RoomIn(const Stream& stream) const;
  bool Blocked(const Stream& stream) const { return stream.fd && RoomIn(stream) == 0; }
  bool Pump(Outbox& outbox);
  bool Sendable() const;
  void WriteInput(Outbox& outbox);
  void EndInput(Outbox& outbox, int error_number);
  void CloseStdin();
  void Finish();

  const uint32_t id_;
  State state_ = State::kStarting;
  std::unique_ptr<SpawnPlan> plan_;  // until the child has left our memory
  Supervision* block_;
  pid_t supervisor_ = 0;
  pid_t pid_ = 0;
  std::optional<uint32_t> start_tag_;
  Stream streams_[2];  // a terminal has only the first
  sys::UniqueFd stdin_;
  const wire::init::Stdio stdio_;
  const wire::init::Overflow overflow_;
  const uint64_t output_limit_;  // 0: none
  uint64_t limit_left_;
  bool over_limit_ = false;
  bool discarding_ = false;
  bool kill_order_ = false;
  bool attached_ = false;
  bool exited_sent_ = false;
  bool released_ = false;
  uint64_t credit_;
  uint64_t window_;              // credit that the owner began with
  uint64_t unacknowledged_ = 0;  // bytes sent to the owner that it has given no new credit for
  uint64_t deadline_ns_ = kNever;
  uint64_t drain_until_ns_ = kNever;
  uint64_t started_ns_ = 0;
  uint64_t started_realtime_ns_ = 0;
  uint64_t owner_signals_ = 0;
  wire::init::Cause cause_ = wire::init::Cause::kItself;
  wire::init::Exited exited_;
  std::string command_, label_;

  struct PendingInput {
    uint32_t tag = 0;
    bool reply = true;
    bool eof = false;
    size_t done = 0;
    std::string data;
  };
  std::optional<PendingInput> input_;
  Poller* poller_ = nullptr;
  bool stdin_polled_ = false;
};

}  // namespace caisson::init
