// Commands: every process of the sandbox that init started, and the requests about them.
//
// It also reaps for the whole sandbox. A process whose supervisor was killed from inside has lost
// the boundary of its tree; from then on its tree is taken to be everything that has fallen to
// init and stands below no other supervisor, so that killing errs on the side of killing.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "init/identity.h"
#include "init/outbox.h"
#include "init/poller.h"
#include "init/process.h"
#include "init/supervisor.h"

namespace caisson::init {

class Commands {
 public:
  Commands(const Privileges& privileges, std::string default_user, Poller& poller, Outbox& outbox)
      : privileges_(privileges),
        default_user_(std::move(default_user)),
        poller_(poller),
        outbox_(outbox) {}

  // Makes the report pipe and registers it.
  Status Open();

  // --- requests: each sends its reply, now or later ---------------------------------------------
  void Handle(wire::init::Start& request, uint32_t tag);
  void Handle(wire::init::Input& request, uint32_t tag);
  void Handle(wire::init::Signal& request, uint32_t tag);
  void Handle(wire::init::Resize& request, uint32_t tag);
  void Handle(wire::init::Attach& request, uint32_t tag);
  void Handle(wire::init::Credit& request, uint32_t tag);
  void Handle(wire::init::Detach& request, uint32_t tag);
  void Handle(wire::init::Release& request, uint32_t tag);
  void Handle(wire::init::ListProcesses& request, uint32_t tag);
  void Handle(wire::init::UpdateDefaults& request, uint32_t tag);

  // --- events -----------------------------------------------------------------------------------
  void OnReports();
  void OnEvent(Token token, uint32_t events);
  // A child of init's was reaped. True when it belonged to a command.
  bool OnReaped(pid_t pid, int status, const rusage& usage);
  // Moves everything that can move. True when there is more to do at once.
  bool Step();
  uint64_t NextDeadline() const { return next_deadline_; }

  void ForgetOwner();
  // Kills every process of the sandbox that init may see, until none is left.
  void KillEverything();

  uint32_t known() const;
  uint64_t output_bytes() const;

 private:
  Process* Find(uint32_t id);
  // The process, or a Failed reply of `tag`.
  Process* Expect(uint32_t id, uint32_t tag);
  Result<uint32_t> StartProcess(wire::init::Start& request);
  void Inspect(Process& process);
  void OnSupervisorKilled(Process& process);
  void Return(Supervision* block);
  std::vector<pid_t> RootsOf(const Process& process) const;
  std::vector<pid_t> OrphanRoots() const;
  bool IsSupervisor(pid_t pid) const;
  bool OwnsCommand(const Process& process) const;
  int SendSignal(Process& process, int signo, wire::init::Scope scope);
  // Signals every `wanted(pid)` of the tree, walking it until nobody new is found: what is forked
  // meanwhile is reached too. True when somebody was.
  template <typename Wanted>
  bool SignalEach(const Process& process, int signo, Wanted wanted);
  void BeginKilling(Process& process);
  void ContinueKilling(Process& process, uint64_t now);

  const Privileges& privileges_;
  const std::string default_user_;
  Poller& poller_;
  Outbox& outbox_;
  sys::UniqueFd report_read_, report_write_;
  SupervisionPool pool_;
  std::vector<wire::init::Rlimit> defaults_;
  std::unordered_map<uint32_t, std::unique_ptr<Process>> processes_;
  uint32_t last_id_ = 0;
  uint64_t next_deadline_ = Process::kNever;
  uint64_t released_output_bytes_ = 0;
};

}  // namespace caisson::init
