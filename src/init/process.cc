#include "init/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>

#include <algorithm>
#include <cerrno>

namespace caisson::init {
namespace {

using wire::init::Cause;
using wire::init::Ended;
using wire::init::Overflow;
using wire::init::Stdio;

constexpr uint64_t kDrainNs = 200'000'000;  // for pipes that outlive the command
constexpr size_t kMinRing = 4096;
constexpr size_t kShownCommand = 256;
constexpr int kReadsPerStep = 4;

uint64_t ClockNs(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t Micros(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
}

std::string ShownCommand(const std::vector<std::string>& argv) {
  std::string shown;
  for (const std::string& arg : argv) {
    if (!shown.empty()) shown += ' ';
    shown.append(arg, 0, kShownCommand);
    if (shown.size() >= kShownCommand) break;
  }
  if (shown.size() > kShownCommand) shown.resize(kShownCommand);
  return shown;
}

// A pipe; our end (0: read, 1: write) does not block.
Status OpenPipe(sys::UniqueFd& ours, sys::UniqueFd& theirs, int our_end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error::FromErrno("making a pipe");
  ours.Reset(ends[our_end]);
  theirs.Reset(ends[1 - our_end]);
  if (fcntl(ours.get(), F_SETFL, O_NONBLOCK) != 0) return Error::FromErrno("setting up a pipe");
  return {};
}

size_t RingCapacity(uint32_t wanted) {
  return std::clamp<size_t>(wanted, kMinRing, wire::init::kMaxRing);
}

}  // namespace

uint64_t MonotonicNs() { return ClockNs(CLOCK_MONOTONIC); }

Process::Process(uint32_t id, wire::init::Start& start, SpawnPlan plan, Supervision* block)
    : id_(id),
      plan_(std::make_unique<SpawnPlan>(std::move(plan))),
      block_(block),
      streams_{Stream(RingCapacity(start.ring_bytes)), Stream(RingCapacity(start.ring_bytes))},
      stdio_(start.stdio),
      overflow_(start.overflow),
      output_limit_(start.output_limit),
      limit_left_(start.output_limit),
      attached_(start.credit > 0),
      credit_(start.credit),
      window_(start.credit),
      command_(ShownCommand(start.argv)),
      label_(std::move(start.label)) {}

Result<std::unique_ptr<Process>> Process::Create(uint32_t id, wire::init::Start& start,
                                                 SpawnPlan plan, const Privileges& privileges,
                                                 Supervision* block, int report_fd,
                                                 Poller& poller) {
  std::unique_ptr<Process> process(new Process(id, start, std::move(plan), block));
  sys::UniqueFd ends[3];
  if (start.stdio == Stdio::kPty) {
    CAISSON_TRY(process->OpenTerminal(start, privileges, ends));
  } else {
    CAISSON_TRY(process->OpenPipes(start, ends));
  }
  CAISSON_TRY(process->Register(poller));
  block->process = id;
  block->report_fd = report_fd;
  block->spawn = {.plan = process->plan_.get(), .report = &block->report};
  for (int i = 0; i < 3; ++i) block->stdio[i] = ends[i] ? ends[i].get() : ends[0].get();
  if (!ends[0]) block->stdio[0] = STDIN_FILENO;  // init's own is /dev/null

  process->started_ns_ = MonotonicNs();
  process->started_realtime_ns_ = ClockNs(CLOCK_REALTIME);
  if (start.timeout_ns != 0) {
    const uint64_t room = kNever - 1 - process->started_ns_;
    process->deadline_ns_ = process->started_ns_ + std::min(start.timeout_ns, room);
  }
  CAISSON_ASSIGN(process->supervisor_, StartSupervisor(*block));
  return process;
}

Status Process::OpenPipes(const wire::init::Start& start, sys::UniqueFd (&ends)[3]) {
  if (start.stdin_kind == wire::init::Stdin::kOpen) {
    CAISSON_TRY(OpenPipe(stdin_, ends[0], 1));
  }
  CAISSON_TRY(OpenPipe(streams_[0].fd, ends[1], 0));
  return OpenPipe(streams_[1].fd, ends[2], 0);
}

Status Process::OpenTerminal(const wire::init::Start& start, const Privileges& privileges,
                             sys::UniqueFd (&ends)[3]) {
  const ScopedIdentity identity(privileges, plan_->user());  // who will own the terminal
  sys::UniqueFd master(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  if (!master) return Error::FromErrno("opening /dev/ptmx");
  const int unlocked = 0;
  const winsize size{.ws_row = start.rows, .ws_col = start.cols};
  if (ioctl(master.get(), TIOCSPTLCK, &unlocked) != 0 ||
      ioctl(master.get(), TIOCSWINSZ, &size) != 0) {
    return Error::FromErrno("setting up the terminal");
  }
  // The peer by descriptor (Linux 4.13): no path in the sandbox is looked up.
  ends[0].Reset(ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!ends[0]) return Error::FromErrno("opening the terminal");
  streams_[0].fd = std::move(master);
  return {};
}

Status Process::Register(Poller& poller) {
  poller_ = &poller;
  constexpr uint32_t kEvents = EPOLLIN | EPOLLET;
  const bool added =
      poller.Add(streams_[0].fd.get(), kEvents, {Source::kStdout, id_}) &&
      (!streams_[1].fd || poller.Add(streams_[1].fd.get(), kEvents, {Source::kStderr, id_}));
  if (!added) return Error::FromErrno("watching the output");
  return {};
}

bool Process::Disposable() const {
  return released_ && supervisor_ == 0 && block_ == nullptr && !streams_[0].fd && !streams_[1].fd;
}

bool Process::OnSpawned() {
  if (state_ != State::kStarting) return true;
  plan_.reset();
  pid_ = block_->child_pid.load();
  if (block_->report.error_number.load() != 0) return false;
  state_ = State::kRunning;
  return true;
}

wire::init::Started Process::started() const {
  if (state_ != State::kStarting) return {.process = id_, .pid = pid_};
  return {.error_number = block_->report.error_number.load(), .stage = block_->report.stage.load()};
}

void Process::OnEnded(int status, const rusage& usage, uint64_t ended_ns) {
  if (!command_lives()) return;
  state_ = State::kDraining;
  deadline_ns_ = kNever;
  drain_until_ns_ = MonotonicNs() + kDrainNs;
  exited_.process = id_;
  exited_.ended = WIFSIGNALED(status) ? Ended::kSignaled : Ended::kExited;
  exited_.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  if (cause_ == Cause::kTimeout && !killed) cause_ = Cause::kItself;
  const bool by_owner = WIFSIGNALED(status) && (owner_signals_ >> (WTERMSIG(status) & 63) & 1) != 0;
  if (cause_ == Cause::kItself && by_owner) cause_ = Cause::kKilledByOwner;
  exited_.usage = {.user_us = Micros(usage.ru_utime),
                   .system_us = Micros(usage.ru_stime),
                   .max_rss_kib = static_cast<uint64_t>(usage.ru_maxrss),
                   .read_blocks = static_cast<uint64_t>(usage.ru_inblock),
                   .write_blocks = static_cast<uint64_t>(usage.ru_oublock),
                   .voluntary_switches = static_cast<uint64_t>(usage.ru_nvcsw),
                   .involuntary_switches = static_cast<uint64_t>(usage.ru_nivcsw),
                   .wall_ns = ended_ns > started_ns_ ? ended_ns - started_ns_ : 0};
  // What the command wrote is in its pipes by now.
  for (Stream& stream : streams_) stream.readable = static_cast<bool>(stream.fd);
}

Supervision* Process::OnSupervisorGone() {
  supervisor_ = 0;
  // A child that has not left this memory still runs in the block and reads the plan.
  const bool child_inside = !block_->spawned.load() && block_->child_pid.load() != 0;
  return child_inside ? nullptr : ReleaseBlock();
}

Supervision* Process::ReleaseBlock() {
  if (supervisor_ != 0 || block_ == nullptr) return nullptr;
  pid_ = block_->child_pid.load();
  plan_.reset();
  return std::exchange(block_, nullptr);
}

void Process::OnEvent(Source source, uint32_t events, Outbox& outbox) {
  if (source == Source::kStdin) {
    if (input_ || (events & EPOLLERR) != 0) WriteInput(outbox);
    return;
  }
  streams_[source == Source::kStdout ? 0 : 1].readable = true;
  if ((events & EPOLLOUT) != 0) WriteInput(outbox);
}

size_t Process::RoomIn(const Stream& stream) const {
  size_t room = stream.ring.capacity();
  if (overflow_ != Overflow::kBlock) return room;
  // What was sent and not yet credited may have gone to an owner who is dead: the next one asks for
  // it again. An owner whose window is larger than the ring has waived that.
  uint64_t needed = stream.ring.end() - stream.sent;
  if (window_ <= room) needed += unacknowledged_;
  return needed < room ? room - static_cast<size_t>(needed) : 0;
}

ssize_t Process::Discard(Stream& stream) {
  char scratch[16 * 1024];
  return read(stream.fd.get(), scratch, sizeof scratch);
}

ssize_t Process::ReadFirst(Stream& stream, size_t max) {
  char scratch[kMinRing];
  const ssize_t got = read(stream.fd.get(), scratch, std::min(max, sizeof scratch));
  if (got > 0 && !stream.ring.Append(scratch, static_cast<size_t>(got))) {
    stream.dropped += static_cast<uint64_t>(got);
  }
  return got;
}

ssize_t Process::ReadInto(Stream& stream, size_t room) {
  size_t max = std::min(room, wire::kMaxData);
  if (output_limit_ != 0) max = static_cast<size_t>(std::min<uint64_t>(max, limit_left_));
  ssize_t got;
  if (!stream.ring.mapped()) {
    got = ReadFirst(stream, max);
  } else {
    const Ring::Spans spans = stream.ring.Prepare(max);
    got = readv(stream.fd.get(), spans.parts, spans.count);
    if (got > 0) stream.ring.Commit(static_cast<size_t>(got));
    // A pipe that gave less is empty, and its next byte is an event. A terminal gives lines.
    const bool all = got > 0 && static_cast<size_t>(got) < spans.size;
    if (all && stdio_ == Stdio::kPipes) stream.readable = false;
  }
  if (got <= 0) return got;
  if (stream.sent < stream.ring.begin()) {
    stream.dropped += stream.ring.begin() - stream.sent;
    stream.sent = stream.ring.begin();
  }
  if (output_limit_ != 0) limit_left_ -= static_cast<uint64_t>(got);
  return got;
}

void Process::Read(Stream& stream) {
  ssize_t got;
  if (discarding_ || over_limit_) {
    got = Discard(stream);
  } else if (output_limit_ != 0 && limit_left_ == 0) {
    got = Discard(stream);
    if (got > 0) {
      over_limit_ = kill_order_ = true;
      cause_ = Cause::kOutputLimit;
    }
  } else if (const size_t room = RoomIn(stream); room == 0) {
    return;
  } else {
    got = ReadInto(stream, room);
  }
  if (got > 0 || (got < 0 && errno == EINTR)) return;
  stream.readable = false;
  if (got < 0 && errno == EAGAIN) return;
  // A terminal that nobody has open (EIO) may be opened again by /dev/tty; closing our side would
  // send SIGHUP to a command that only closed its descriptors.
  if (stdio_ == Stdio::kPty && command_lives() && !released_) return;
  stream.fd.Reset();  // EOF; EIO of a terminal whose last user is gone
}

bool Process::Sendable() const {
  if (!attached_ || credit_ == 0) return false;
  return std::ranges::any_of(streams_, [](const Stream& s) { return s.sent < s.ring.end(); });
}

bool Process::Pump(Outbox& outbox) {
  while (Sendable()) {
    for (Stream& stream : streams_) {
      const auto max = static_cast<size_t>(std::min<uint64_t>(credit_, wire::kMaxData));
      const Ring::Spans spans = stream.ring.View(stream.sent, max);
      if (spans.size == 0) continue;
      const auto which = static_cast<wire::init::Stream>(&stream - streams_);
      if (!outbox.SendOutput(id_, which, stream.sent, spans)) return false;
      stream.sent += spans.size;
      credit_ -= spans.size;
      unacknowledged_ += spans.size;
    }
  }
  if (state_ == State::kFinished && attached_ && !exited_sent_) {
    exited_sent_ = true;
    outbox.Send(exited_, 0);
  }
  return true;
}

bool Process::Step(Outbox& outbox) {
  const auto can_read = [this](const Stream& s) {
    return s.fd && s.readable && (discarding_ || over_limit_ || RoomIn(s) > 0);
  };
  bool more = true;
  for (int i = 0; i < kReadsPerStep && more; ++i) {
    // Nothing is announced, and so nothing may be sent, before the command is known to run.
    for (Stream& stream : streams_) {
      if (can_read(stream)) Read(stream);
    }
    if (state_ != State::kStarting) Pump(outbox);
    more = std::ranges::any_of(streams_, can_read);
  }
  if (state_ == State::kDraining && !streams_[0].fd && !streams_[1].fd) {
    Finish();
    if (input_) EndInput(outbox, EPIPE);
    Pump(outbox);
  }
  return more;
}

uint64_t Process::NextDeadline() const {
  return std::min({deadline_ns_, drain_until_ns_, killing.next_ns});
}

bool Process::TakeKillOrder() { return std::exchange(kill_order_, false); }

void Process::OnTick(uint64_t now) {
  if (now >= deadline_ns_) {
    deadline_ns_ = kNever;
    if (cause_ == Cause::kItself) cause_ = Cause::kTimeout;
    kill_order_ = true;
  }
  if (now < drain_until_ns_) return;
  drain_until_ns_ = kNever;
  if (state_ != State::kDraining) return;
  // A full ring that its reader will empty is no reason to lose bytes, unless the command was
  // killed for a limit or by its owner, who then waits for its end.
  const bool full =
      !over_limit_ && std::ranges::any_of(streams_, [this](const Stream& s) { return Blocked(s); });
  if (full && cause_ == Cause::kItself && !released_) {
    drain_until_ns_ = now + kDrainNs;
    return;
  }
  for (Stream& stream : streams_) {
    int left = 0;
    if (Blocked(stream) && ioctl(stream.fd.get(), FIONREAD, &left) == 0 && left > 0) {
      stream.dropped += static_cast<uint64_t>(left);
    }
  }
  Finish();
}

void Process::Finish() {
  state_ = State::kFinished;
  drain_until_ns_ = kNever;
  discarding_ = true;  // what daemons still write is read, so that they do not block, and dropped
  for (Stream& stream : streams_) stream.readable = static_cast<bool>(stream.fd);
  if (stdio_ == Stdio::kPipes) CloseStdin();
  exited_.cause = cause_;
  exited_.stdout_end = streams_[0].ring.end();
  exited_.stderr_end = streams_[1].ring.end();
  exited_.stdout_dropped = streams_[0].dropped;
  exited_.stderr_dropped = streams_[1].dropped;
  struct statfs disk;
  if (statfs("/", &disk) == 0) {
    exited_.disk_free_bytes = disk.f_bavail * static_cast<uint64_t>(disk.f_bsize);
    exited_.disk_free_inodes = disk.f_ffree;
  }
}

// --- stdin ------------------------------------------------------------------------------------

void Process::Input(wire::init::Input& input, uint32_t tag, Outbox& outbox) {
  if (input_) return outbox.SendFailed(tag, EBUSY, "the input before this one is not written yet");
  const bool open =
      stdio_ == Stdio::kPty ? static_cast<bool>(streams_[0].fd) : static_cast<bool>(stdin_);
  if (!open || state_ == State::kFinished) return outbox.SendFailed(tag, EPIPE, "stdin is closed");
  input_ = PendingInput{.tag = tag, .eof = input.eof != 0, .data = std::move(input.data)};
  if (input_->eof && stdio_ == Stdio::kPty) {
    termios settings;
    const bool known = tcgetattr(streams_[0].fd.get(), &settings) == 0;
    input_->data +=
        known && settings.c_cc[VEOF] != 0 ? static_cast<char>(settings.c_cc[VEOF]) : '\4';
  }
  WriteInput(outbox);
}

void Process::WriteInput(Outbox& outbox) {
  if (!input_) return;
  const bool terminal = stdio_ == Stdio::kPty;
  const int fd = terminal ? streams_[0].fd.get() : stdin_.get();
  while (input_->done < input_->data.size()) {
    const ssize_t wrote =
        write(fd, input_->data.data() + input_->done, input_->data.size() - input_->done);
    if (wrote > 0) {
      input_->done += static_cast<size_t>(wrote);
    } else if (errno == EAGAIN) {
      if (stdin_polled_) return;
      stdin_polled_ =
          terminal ? poller_->Change(fd, EPOLLIN | EPOLLOUT | EPOLLET, {Source::kStdout, id_})
                   : poller_->Add(fd, EPOLLOUT | EPOLLET, {Source::kStdin, id_});
      if (stdin_polled_) return;
      return EndInput(outbox, errno);
    } else if (errno != EINTR) {
      return EndInput(outbox, EPIPE);
    }
  }
  EndInput(outbox, 0);
}

void Process::EndInput(Outbox& outbox, int error_number) {
  const PendingInput input = *std::exchange(input_, std::nullopt);
  if ((error_number != 0 || input.eof) && stdio_ == Stdio::kPipes) CloseStdin();
  if (!input.reply) return;
  if (error_number == 0) return outbox.SendDone(input.tag);
  outbox.SendFailed(input.tag, error_number, "the process does not read its input any more");
}

void Process::CloseStdin() {
  stdin_.Reset();
  stdin_polled_ = false;
}

// --- the owner --------------------------------------------------------------------------------

wire::init::Attached Process::Attach(const wire::init::Attach& request) {
  const uint64_t from[2] = {request.stdout_from, request.stderr_from};
  for (int i = 0; i < 2; ++i) {
    const Ring& ring = streams_[i].ring;
    streams_[i].sent = std::clamp(from[i], ring.begin(), ring.end());
  }
  attached_ = true;
  exited_sent_ = false;
  credit_ = window_ = request.credit;
  unacknowledged_ = 0;
  return {.stdout_from = streams_[0].sent, .stderr_from = streams_[1].sent};
}

void Process::AddCredit(uint64_t bytes) {
  if (attached_) credit_ += std::min(bytes, UINT64_MAX - credit_);
  unacknowledged_ -= std::min(bytes, unacknowledged_);
}

void Process::ForgetOwner() {
  attached_ = false;
  credit_ = 0;
  start_tag_.reset();
  if (input_) input_->reply = false;
}

Status Process::Resize(uint16_t rows, uint16_t cols) {
  if (stdio_ != Stdio::kPty) return Error::FromErrno("the process has no terminal", ENOTTY);
  const winsize size{.ws_row = rows, .ws_col = cols};
  if (!streams_[0].fd || ioctl(streams_[0].fd.get(), TIOCSWINSZ, &size) != 0) {
    return Error::FromErrno("the terminal is gone", EIO);
  }
  return {};
}

void Process::Release() {
  released_ = true;
  attached_ = false;
  input_.reset();
  if (state_ == State::kDraining) Finish();
  discarding_ = true;
  for (Stream& stream : streams_) {
    stream.ring.Free();
    stream.readable = static_cast<bool>(stream.fd);
  }
}

wire::init::ProcessInfo Process::Info() const {
  return {.process = id_,
          .pid = pid_,
          .ended = static_cast<uint8_t>(state_ == State::kFinished),
          .stdio = stdio_,
          .started_ns = started_realtime_ns_,
          .stdout_begin = streams_[0].ring.begin(),
          .stdout_end = streams_[0].ring.end(),
          .stderr_begin = streams_[1].ring.begin(),
          .stderr_end = streams_[1].ring.end(),
          .command = command_,
          .label = label_};
}

}  // namespace caisson::init
