#include "init/server.h"

#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>

namespace caisson::init {

// The table from packet types to handlers. One list of types per kind of answer.
struct Dispatch {
  using Handler = bool (*)(Server&, std::string_view, uint32_t);

  // The handler decides itself when to reply.
  template <typename Message>
  static bool Command(Server& server, std::string_view packet, uint32_t tag) {
    auto message = wire::Decode<Message>(packet);
    if (message) server.commands_.Handle(*message, tag);
    return message.has_value();
  }
  // The handler returns the reply or an error.
  template <typename Message, auto Member>
  static bool Call(Server& server, std::string_view packet, uint32_t tag) {
    auto message = wire::Decode<Message>(packet);
    if (!message) return false;
    const auto reply = (server.*Member).Handle(*message);
    if (reply) {
      server.outbox_.Send(*reply, tag);
    } else {
      server.outbox_.SendFailed(tag, reply.error());
    }
    return true;
  }
  template <typename Message>
  static bool File(Server& server, std::string_view packet, uint32_t tag) {
    return Call<Message, &Server::files_>(server, packet, tag);
  }
  template <typename Message>
  static bool Watch(Server& server, std::string_view packet, uint32_t tag) {
    return Call<Message, &Server::watches_>(server, packet, tag);
  }
  template <typename Message, typename Do>
  static bool With(std::string_view packet, Do handle) {
    const auto message = wire::Decode<Message>(packet);
    if (message) handle(*message);
    return message.has_value();
  }

  static Handler Find(wire::init::Type type);
};

Dispatch::Handler Dispatch::Find(wire::init::Type type) {
  using namespace wire::init;  // NOLINT: every message of the protocol
  switch (type) {
    case Type::kStart:
      return Command<Start>;
    case Type::kInput:
      return Command<Input>;
    case Type::kSignal:
      return Command<Signal>;
    case Type::kResize:
      return Command<Resize>;
    case Type::kAttach:
      return Command<Attach>;
    case Type::kCredit:
      return Command<Credit>;
    case Type::kDetach:
      return Command<Detach>;
    case Type::kRelease:
      return Command<Release>;
    case Type::kListProcesses:
      return Command<ListProcesses>;
    case Type::kUpdateDefaults:
      return Command<UpdateDefaults>;
    case Type::kStat:
      return File<Stat>;
    case Type::kListDir:
      return File<ListDir>;
    case Type::kOpen:
      return File<Open>;
    case Type::kRead:
      return File<Read>;
    case Type::kWrite:
      return File<Write>;
    case Type::kClose:
      return File<Close>;
    case Type::kMkdir:
      return File<Mkdir>;
    case Type::kMove:
      return File<Move>;
    case Type::kSetMode:
      return File<SetMode>;
    case Type::kSymlink:
      return File<Symlink>;
    case Type::kWatch:
      return Watch<wire::init::Watch>;
    case Type::kUnwatch:
      return Watch<Unwatch>;
    case Type::kRemove:
      return [](Server& s, std::string_view packet, uint32_t tag) {
        return With<Remove>(packet, [&](const Remove& r) { s.HandleRemove(r, tag); });
      };
    case Type::kUsage:
      return [](Server& s, std::string_view packet, uint32_t tag) {
        return With<Usage>(packet, [&](const Usage&) { s.HandleUsage(tag); });
      };
    case Type::kShutdown:
      return [](Server& s, std::string_view packet, uint32_t) {
        return With<Shutdown>(packet, [&](const Shutdown&) { s.ending_ = true; });
      };
    default:
      return nullptr;  // not a request
  }
}

Server::Server(sys::UniqueFd control, Privileges privileges, std::string default_user)
    : control_(std::move(control)),
      privileges_(privileges),
      outbox_(control_.get()),
      commands_(privileges_, default_user, poller_, outbox_),
      files_(privileges_, default_user),
      jobs_(privileges_, files_, poller_, outbox_),
      watches_(privileges_, files_, poller_, outbox_) {}

Status Server::Open() {
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  signals_.Reset(signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
  void* memory =
      mmap(nullptr, wire::kMaxFrame, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!signals_ || !poller_.ok() || memory == MAP_FAILED)
    return Error::FromErrno("setting up the loop");
  buffer_ = static_cast<char*>(memory);
  madvise(buffer_, wire::kMaxFrame, MADV_DONTFORK);
  const int buffer_size = 1024 * 1024;  // the kernel takes what it allows
  setsockopt(control_.get(), SOL_SOCKET, SO_SNDBUF, &buffer_size, sizeof buffer_size);
  interest_ = EPOLLIN;
  if (!poller_.Add(control_.get(), interest_, {Source::kControl, 0}) ||
      !poller_.Add(signals_.get(), EPOLLIN, {Source::kSignals, 0})) {
    return Error::FromErrno("setting up the loop");
  }
  started_ns_ = MonotonicNs();
  return commands_.Open();
}

Status Server::Run() {
  CAISSON_TRY(Open());
  outbox_.Send(wire::init::Ready{}, 0);
  Verdict verdict = Verdict::kGoOn;
  while (verdict == Verdict::kGoOn) {
    epoll_event events[32];
    const int count = poller_.Wait(events, TimeoutMs());
    for (int i = 0; i < count && verdict == Verdict::kGoOn; ++i) verdict = HandleEvent(events[i]);
    busy_ = commands_.Step();
    busy_ |= watches_.Step();
    UpdateInterest();
    if (outbox_.broken() || ending_) verdict = Verdict::kEnd;
  }
  files_.CloseAll();
  commands_.KillEverything();
  return {};
}

int Server::TimeoutMs() const {
  if (busy_) return 0;
  const uint64_t deadline = commands_.NextDeadline();
  if (deadline == Process::kNever) return -1;
  const uint64_t now = MonotonicNs();
  if (deadline <= now) return 0;
  return static_cast<int>(std::min<uint64_t>((deadline - now + 999'999) / 1'000'000, 60'000));
}

// While the owner does not take its answers, init neither reads its requests nor the watches.
void Server::UpdateInterest() {
  const uint32_t wanted = (outbox_.crowded() ? 0u : uint32_t{EPOLLIN}) |
                          (outbox_.wants_write() ? uint32_t{EPOLLOUT} : 0u);
  if (wanted == interest_) return;
  interest_ = wanted;
  poller_.Change(control_.get(), wanted, {Source::kControl, 0});
}

Server::Verdict Server::HandleEvent(const epoll_event& event) {
  const Token token = Poller::TokenOf(event);
  switch (token.source) {
    case Source::kControl:
      if ((event.events & EPOLLOUT) != 0) outbox_.Flush();
      if ((event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) return ReceiveRequest();
      break;
    case Source::kSignals:
      Reap();
      break;
    case Source::kReports:
      commands_.OnReports();
      break;
    case Source::kStdout:
    case Source::kStderr:
    case Source::kStdin:
      commands_.OnEvent(token, event.events);
      break;
    case Source::kJob:
      jobs_.OnEvent(token.id);
      break;
    case Source::kWatch:
      watches_.OnEvent(token.id);
      break;
  }
  return Verdict::kGoOn;
}

void Server::Reap() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof info) == sizeof info) {
  }
  int status;
  rusage usage;
  pid_t pid;
  while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) commands_.OnReaped(pid, status, usage);
}

Server::Verdict Server::ReceiveRequest() {
  // No room for ancillary data: descriptors that come along are dropped by the kernel.
  const ssize_t got = recv(control_.get(), buffer_, wire::kMaxFrame, MSG_DONTWAIT | MSG_TRUNC);
  if (got < 0) return errno == EAGAIN || errno == EINTR ? Verdict::kGoOn : Verdict::kEnd;
  if (got == 0 || static_cast<size_t>(got) > wire::kMaxFrame) return Verdict::kEnd;
  return HandlePacket({buffer_, static_cast<size_t>(got)});
}

Server::Verdict Server::HandlePacket(std::string_view packet) {
  const auto header = wire::PeekHeader(packet);
  if (!header) return Verdict::kEnd;
  const auto type = static_cast<wire::init::Type>(header->type);
  if (type == wire::init::Type::kHello) {
    const auto hello = wire::Decode<wire::init::Hello>(packet);
    if (!hello) return Verdict::kEnd;
    HandleHello(*hello, header->tag);
    return Verdict::kGoOn;
  }
  const Dispatch::Handler handler = Dispatch::Find(type);
  if (handler == nullptr) return Verdict::kEnd;
  if (!greeted_ && type != wire::init::Type::kShutdown) {
    outbox_.SendFailed(header->tag, EPROTO, "an owner opens with Hello");
    return Verdict::kGoOn;
  }
  return handler(*this, packet, header->tag) ? Verdict::kGoOn : Verdict::kEnd;
}

void Server::HandleHello(const wire::init::Hello& hello, uint32_t tag) {
  if (hello.version != wire::init::kVersion) {
    return outbox_.SendFailed(tag, EPROTO,
                              "init speaks version " + std::to_string(wire::init::kVersion));
  }
  greeted_ = true;
  outbox_.Clear();
  commands_.ForgetOwner();
  jobs_.ForgetOwner();
  watches_.CloseAll();
  files_.CloseAll();
  outbox_.Send(wire::init::HelloReply{.epoch = hello.epoch, .processes = commands_.known()}, tag);
}

void Server::HandleRemove(const wire::init::Remove& request, uint32_t tag) {
  if (request.recursive != 0) return jobs_.RemoveRecursively(request, tag);
  const auto removed = files_.RemoveOne(request);
  if (!removed) return outbox_.SendFailed(tag, removed.error());
  outbox_.SendDone(tag);
}

void Server::HandleUsage(uint32_t tag) {
  wire::init::UsageReply reply;
  if (DIR* proc = opendir("/proc")) {
    while (const dirent* entry = readdir(proc)) {
      if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') ++reply.processes;
    }
    closedir(proc);
  }
  struct statfs disk;
  if (statfs("/", &disk) == 0) {
    const auto block = static_cast<uint64_t>(disk.f_bsize);
    reply.disk_bytes = disk.f_blocks * block;
    reply.disk_free_bytes = disk.f_bavail * block;
    reply.disk_inodes = disk.f_files;
    reply.disk_free_inodes = disk.f_ffree;
  }
  reply.output_bytes = commands_.output_bytes();
  reply.uptime_ns = MonotonicNs() - started_ns_;
  outbox_.Send(reply, tag);
}

}  // namespace caisson::init
