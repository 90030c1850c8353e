#include "init/test_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "init/init.h"

namespace caisson::init {

TestClient::TestClient(Where where) {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
  const bool apart = where == Where::kPidNamespace;
  const int namespaces = apart ? CLONE_NEWPID | CLONE_NEWNS : 0;
  pid_ = static_cast<pid_t>(syscall(SYS_clone, namespaces | SIGCHLD, 0, 0, 0, 0));
  EXPECT_GE(pid_, 0);
  if (pid_ == 0) {
    if (apart && (mount("", "/", "", MS_REC | MS_PRIVATE, nullptr) != 0 ||
                  mount("proc", "/proc", "proc", 0, nullptr) != 0)) {
      _exit(126);
    }
    const int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) dup2(null, fd);
    if (ends[1] != 3) dup2(ends[1], 3);
    close_range(4, ~0u, 0);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    setsid();
    const std::string self = std::to_string(getuid());
    _exit(RunInit(3, getuid() == 0 ? kDefaultCaps : 0, self.c_str()));
  }
  close(ends[1]);
  socket_.Reset(ends[0]);
  const std::string ready = Next(5000);
  EXPECT_TRUE(wire::PeekHeader(ready) && wire::Decode<wire::init::Ready>(ready));
  Hello(1);
}

TestClient::~TestClient() {
  socket_.Reset();
  int status = 0;
  EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
  EXPECT_TRUE(WIFEXITED(status)) << "init ended by signal " << WTERMSIG(status);
}

void TestClient::SendRaw(const std::string& packet) {
  EXPECT_EQ(send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(packet.size()));
}

std::string TestClient::Next(int timeout_ms) {
  pollfd poll_fd{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  if (poll(&poll_fd, 1, timeout_ms) != 1) return {};
  std::string packet(wire::kMaxFrame, '\0');
  const ssize_t got = recv(socket_.get(), packet.data(), packet.size(), 0);
  packet.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return packet;
}

void TestClient::Collect(const std::string& packet) {
  const auto type = static_cast<wire::init::Type>(wire::PeekHeader(packet)->type);
  if (type == wire::init::Type::kOutput) {
    const auto output = wire::Decode<wire::init::Output>(packet);
    ASSERT_TRUE(output);
    Collected& into = collected[output->process];
    const bool out = output->stream == wire::init::Stream::kStdout;
    uint64_t& at = out ? into.out_at : into.err_at;
    into.gap |= at != output->offset;
    at = output->offset + output->data.size();
    (out ? into.out : into.err) += output->data;
  } else if (type == wire::init::Type::kExited) {
    const auto exited = wire::Decode<wire::init::Exited>(packet);
    ASSERT_TRUE(exited);
    EXPECT_FALSE(collected[exited->process].exited) << "Exited came twice";
    collected[exited->process].exited = exited;
  } else if (type == wire::init::Type::kWatchEvent) {
    changes.push_back(*wire::Decode<wire::init::WatchEvent>(packet));
  }
}

bool TestClient::Receive(int timeout_ms) {
  const std::string packet = Next(timeout_ms);
  if (packet.empty()) return false;
  Collect(packet);
  return true;
}

std::string TestClient::WaitFor(uint32_t tag) {
  while (true) {
    std::string packet = Next(30'000);
    if (packet.empty()) return {};
    if (wire::PeekHeader(packet)->tag == tag) return packet;
    Collect(packet);
  }
}

bool TestClient::EndsWithin(int timeout_ms) {
  pollfd poll_fd{.fd = socket_.get(), .events = POLLIN, .revents = 0};
  while (poll(&poll_fd, 1, timeout_ms) == 1) {
    char byte;
    if (recv(socket_.get(), &byte, 1, 0) <= 0) return true;
  }
  return false;
}

wire::init::HelloReply TestClient::Hello(uint64_t epoch) {
  const auto reply = Call<wire::init::HelloReply>(wire::init::Hello{.epoch = epoch});
  EXPECT_TRUE(reply && reply->epoch == epoch);
  return reply.value_or(wire::init::HelloReply{});
}

TestClient::Collected& TestClient::UntilExited(uint32_t process) {
  Collected& into = collected[process];
  while (!into.exited || into.out_at < into.exited->stdout_end ||
         into.err_at < into.exited->stderr_end) {
    if (!Receive()) {
      ADD_FAILURE() << "no Exited of process " << process;
      break;
    }
  }
  return into;
}

TestClient::Outcome TestClient::Run(wire::init::Start start) {
  if (start.credit == 0) start.credit = UINT64_MAX;
  const auto started = Call<wire::init::Started>(start);
  Outcome outcome{.started = started.value_or(wire::init::Started{.error_number = -1})};
  if (outcome.started.error_number != 0) return outcome;
  const Collected& seen = UntilExited(outcome.started.process);
  outcome.out = seen.out;
  outcome.err = seen.err;
  outcome.exited = seen.exited.value_or(wire::init::Exited{});
  EXPECT_TRUE(Call<wire::init::Done>(wire::init::Release{.process = outcome.started.process}));
  return outcome;
}

wire::init::Start TestClient::ShellStart(const std::string& script) {
  wire::init::Start start;
  start.argv = {"sh", "-c", script};
  start.env = {"LANG=C"};
  start.cwd = "/";
  return start;
}

TestClient::Outcome TestClient::Shell(const std::string& script) { return Run(ShellStart(script)); }

ScratchDir::ScratchDir() {
  path_ = access("/dev/shm", W_OK) == 0 ? "/dev/shm/init-test-XXXXXX" : "/tmp/init-test-XXXXXX";
  EXPECT_NE(mkdtemp(path_.data()), nullptr);
  chmod(path_.c_str(), 0777);
}

ScratchDir::~ScratchDir() {
  // The tests make trees that are too deep for path names.
  const pid_t pid = fork();
  if (pid == 0) {
    execlp("rm", "rm", "-rf", path_.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(pid, &status, 0);
}

}  // namespace caisson::init
