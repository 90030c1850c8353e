// The launcher's requests: what an owner may ask for, and the answers.
#include <algorithm>
#include <chrono>
#include <type_traits>

#include "launcher/launcher.h"
#include "launcher/limits.h"

namespace caisson::launcher {

namespace w = wire::launcher;

void Launcher::Dispatch(uint64_t owner, const sys::Packet& packet, std::vector<sys::UniqueFd> fds) {
  const auto header = wire::PeekHeader(packet.bytes);
  if (!header) return DropOwner(owner);
  const uint32_t tag = header->tag;
  // Decodes and handles, or drops an owner that breaks the protocol.
  auto with = [&]<typename Message>(std::type_identity<Message>, auto handle) {
    auto message = wire::Decode<Message>(packet.bytes);
    if (!message) return DropOwner(owner);
    handle(*std::move(message));
  };
  switch (static_cast<w::Type>(header->type)) {
    case w::Type::kHello:
      return with(std::type_identity<w::Hello>{}, [&](w::Hello hello) {
        if (hello.version != w::kVersion)
          return Fail(
              owner, tag,
              Error(ErrorCode::kProtocol, "the launcher speaks another version of the protocol")
                  .WithRemedy("restart the server so that both come from the same build"));
        Reply(owner, tag,
              w::HelloReply{w::kVersion, host_.instance->id(), host_.rootless, host_.Facts()});
      });
    case w::Type::kRegisterRoot:
      return with(std::type_identity<w::RegisterRoot>{},
                  [&](auto m) { OnRegisterRoot(owner, tag, std::move(m), std::move(fds)); });
    case w::Type::kCreate:
      return with(std::type_identity<w::Create>{},
                  [&](auto m) { OnCreate(owner, tag, std::move(m), std::move(fds)); });
    case w::Type::kDestroy:
      return with(std::type_identity<w::Destroy>{}, [&](auto m) { OnDestroy(owner, tag, m.id); });
    case w::Type::kUpdate:
      return with(std::type_identity<w::Update>{}, [&](auto m) { OnUpdate(owner, tag, m); });
    case w::Type::kFreeze:
      return with(std::type_identity<w::Freeze>{}, [&](auto m) { OnFreeze(owner, tag, m); });
    case w::Type::kStats:
      return with(std::type_identity<w::Stats>{}, [&](auto m) { OnStats(owner, tag, m.id); });
    case w::Type::kList:
      return with(std::type_identity<w::List>{}, [&](auto m) { OnList(owner, tag, m.after); });
    case w::Type::kAdopt:
      return with(std::type_identity<w::Adopt>{}, [&](auto m) { OnAdopt(owner, tag, m.id); });
    case w::Type::kShutdown:
      stop_owner_ = owner;
      stop_tag_ = tag;
      return Stop();
    default:
      return DropOwner(owner);
  }
}

void Launcher::OnRegisterRoot(uint64_t owner, uint32_t tag, w::RegisterRoot request,
                              std::vector<sys::UniqueFd> fds) {
  spares_.ForgetRoot(request.key);
  auto registered =
      berths_.Register({std::move(request.key), std::move(request.inside), std::move(fds)});
  if (!registered) return Fail(owner, tag, registered.error());
  Reply(owner, tag, w::Done{});
}

void Launcher::OnCreate(uint64_t owner, uint32_t tag, w::Create request,
                        std::vector<sys::UniqueFd> fds) {
  if (serials_.contains(request.id))
    return Fail(
        owner, tag,
        Error(ErrorCode::kConflict, "a sandbox with the id " + request.id + " exists already"));
  if (stopping_)
    return Fail(owner, tag, Error(ErrorCode::kUnavailable, "the launcher is shutting down"));
  if (auto checked = CheckSpec(host_, request, fds.size()); !checked)
    return Fail(owner, tag, checked.error());
  const uint64_t now = sys::MonotonicNs();
  Box* box = ClaimSpare(request);
  if (box == nullptr) {
    auto started = StartBox(host_, {berths_, cgroups_, nets_}, request, std::move(fds));
    if (!started) return Fail(owner, tag, started.error());
    box = &Admit(*std::move(started));
  }
  box->id = request.id;
  box->asked_ns = now;
  box->waiting_client = owner;
  box->waiting_tag = tag;
  serials_[box->id] = box->serial;
  if (box->state == BoxState::kRunning) HandOut(*box);
}

void Launcher::OnDestroy(uint64_t owner, uint32_t tag, const std::string& id) {
  Box* box = FindRunning(owner, tag, id);
  if (box == nullptr) return;
  box->waiting_client = owner;
  box->waiting_tag = tag;
  // A namespace in which nothing happened serves again; only now does it have a name.
  if (pools_) box->net_ns = nets_.OpenOf(box->init.pid());
  Kill(*box);
  // The counters are read while the processes die, and are final for all but those last moments.
  box->last_counters = CountersOf(*box);
  if (box->init.running()) OnInitGone(*box);
}

Box* Launcher::FindRunning(uint64_t owner, uint32_t tag, const std::string& id) {
  const auto found = serials_.find(id);
  if (found == serials_.end()) {
    Fail(owner, tag, Error(ErrorCode::kNotFound, "no sandbox " + id + " is here"));
    return nullptr;
  }
  Box* box = boxes_.at(found->second).get();
  if (box->state != BoxState::kRunning) {
    Fail(owner, tag, Error(ErrorCode::kConflict, "sandbox " + id + " is not running"));
    return nullptr;
  }
  return box;
}

w::Counters Launcher::CountersOf(Box& box) {
  auto disk =
      box.berth && box.berth->disk ? box.berth->disk->Stats() : Result<DiskStats>(DiskStats{});
  return ToCounters(box.cgroup ? box.cgroup->Stats() : sys::CgroupStats{},
                    disk ? *disk : DiskStats{});
}

// Changes the limits of a live box, one mechanism after the other. What the first ones changed
// stays when a later one refuses; the error says which it was.
Result<std::vector<w::LimitFact>> Launcher::ChangeLimits(Box& box, const w::Limits& limits) {
  std::vector<w::LimitFact> facts;
  CAISSON_ASSIGN(const auto plan, PlanLimits(host_, limits, ProcessWall::kCgroup));
  if (box.cgroup) {
    CAISSON_ASSIGN(const auto reports, box.cgroup->Update(plan.cgroup));
    facts = ToFacts(reports);
  }
  if (limits.memory_bandwidth_percent != w::kNoLimit) {
    if (!box.bandwidth)
      return Error(ErrorCode::kLimitRefused,
                   "this sandbox was created without a memory bandwidth limit")
          .WithRemedy("create it with one");
    CAISSON_TRY(box.bandwidth->Update(static_cast<uint32_t>(limits.memory_bandwidth_percent)));
    facts.push_back(
        {"memory_bandwidth", 1, box.bandwidth->percent(), std::string(sys::ResctrlGroup::kBy), ""});
  }
  if (limits.disk_bytes != w::kNoLimit || limits.disk_inodes != w::kNoLimit) {
    auto& asked = box.berth->request;
    const uint64_t bytes = limits.disk_bytes != w::kNoLimit ? limits.disk_bytes : asked.disk_bytes;
    const uint64_t inodes =
        limits.disk_inodes != w::kNoLimit ? limits.disk_inodes : asked.disk_inodes;
    CAISSON_ASSIGN(const auto resized, box.berth->disk->Resize(bytes, inodes));
    asked.disk_bytes = bytes;
    asked.disk_inodes = inodes;
    facts.push_back(DiskFact("disk", resized.bytes_limit, asked.disk_backend));
    facts.push_back(DiskFact("inodes", resized.inodes_limit, asked.disk_backend));
  }
  return facts;
}

void Launcher::OnUpdate(uint64_t owner, uint32_t tag, const w::Update& request) {
  Box* box = FindRunning(owner, tag, request.id);
  if (box == nullptr) return;
  auto facts = ChangeLimits(*box, request.limits);
  if (!facts) return Fail(owner, tag, facts.error());
  auto created = wire::Decode<w::Created>(box->created);
  auto& known = created->limits;
  for (const auto& fact : *facts) {
    const auto same = std::find_if(known.begin(), known.end(),
                                   [&](const auto& k) { return k.name == fact.name; });
    if (same != known.end())
      *same = fact;
    else
      known.push_back(fact);
  }
  box->created = wire::Encode(*created, 0);
  Reply(owner, tag, w::Updated{*std::move(facts)});
}

void Launcher::OnFreeze(uint64_t owner, uint32_t tag, const w::Freeze& request) {
  Box* box = FindRunning(owner, tag, request.id);
  if (box == nullptr) return;
  if (!box->cgroup)
    return Fail(owner, tag,
                Error(ErrorCode::kUnsupported, "this host has no cgroup freezer")
                    .WithRemedy("run `caisson doctor`"));
  const bool freeze = request.state == w::Freezer::kFreeze;
  auto done = freeze ? box->cgroup->Freeze(std::chrono::seconds(2)) : box->cgroup->Thaw();
  if (!done) return Fail(owner, tag, done.error());
  box->frozen = freeze;
  Reply(owner, tag, w::Done{});
}

void Launcher::OnStats(uint64_t owner, uint32_t tag, const std::string& id) {
  if (Box* box = FindRunning(owner, tag, id)) Reply(owner, tag, w::StatsReply{CountersOf(*box)});
}

void Launcher::OnList(uint64_t owner, uint32_t tag, const std::string& after) {
  w::Sandboxes reply;
  for (const auto& [id, serial] : serials_)
    if (id > after && boxes_.at(serial)->state == BoxState::kRunning) reply.ids.push_back(id);
  std::sort(reply.ids.begin(), reply.ids.end());
  if (reply.ids.size() > w::kMaxSandboxes) reply.ids.resize(w::kMaxSandboxes);
  Reply(owner, tag, reply);
}

void Launcher::OnAdopt(uint64_t owner, uint32_t tag, const std::string& id) {
  Box* box = FindRunning(owner, tag, id);
  if (box == nullptr) return;
  auto handed = HandOver(*box);
  if (!handed) return Fail(owner, tag, handed.error());
  Reply(owner, tag, w::Adopted{std::move(handed->created)}, std::move(handed->fds));
}

}  // namespace caisson::launcher
