#include "net/server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <vector>

#include "async/race.h"
#include "async/task_set.h"
#include "async/watch.h"
#include "base/text.h"
#include "net/connection.h"

namespace caisson::net {
namespace {

constexpr int kAcceptsInARow = 64;
constexpr std::chrono::milliseconds kPauseWithoutDescriptors(50);

// A descriptor held back, so that a connection can still be accepted and closed when the process
// has no other left; otherwise it would wait in the queue and accept would fail for ever.
class Reserve {
 public:
  Reserve() { Take(); }
  // Accepts and closes one connection with the reserve's descriptor.
  void TurnAway(int listener) {
    fd_.Close();
    // Closed at once: the reserve needs its place back.
    Fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)).Close();
    Take();
  }

 private:
  void Take() { fd_ = Fd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }
  Fd fd_;
};

struct Listener {
  ListenSocket socket;
  std::shared_ptr<TlsServer> tls;
  size_t number;
};

// Says 503 to a connection over the limit, as far as that goes without waiting.
void TurnAwayPolitely(Fd fd) {
  const Response problem = Response::Problem(
      Error(ErrorCode::kResourceExhausted, "the server has as many connections as it may have"));
  const std::string text =
      Concat({"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n"
              "Retry-After: 1\r\nConnection: close\r\nContent-Length: ",
              std::to_string(problem.body.size()), "\r\n\r\n", problem.body});
  char unread[4096];
  while (recv(fd.get(), unread, sizeof(unread), 0) > 0) {
  }
  static_cast<void>(send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL));
  ::shutdown(fd.get(), SHUT_WR);
}

}  // namespace

struct Server::State {
  State(async::Loop& loop, ServerLimits limits, Handler handler)
      : loop(loop),
        limits(limits),
        handler(std::move(handler)),
        changed(loop),
        connections(loop),
        acceptors(loop),
        sweeper(loop) {}

  async::Loop& loop;
  const ServerLimits limits;
  const Handler handler;
  ServerStats stats;
  bool draining = false;
  Channel::Clock::time_point drain_until = Channel::kNever;
  DateLine date;
  Reserve reserve;
  std::list<Listener> listeners;
  std::list<Connection*> open;
  async::Event changed;  // woken when a connection ends, or when a drain has less time
  // Last, so that they go first.
  async::TaskSet connections;
  async::TaskSet acceptors;
  async::TaskSet sweeper;

  Task<void> Accept(Listener* listener);
  // Accepts one; 0, or the errno.
  int AcceptOne(Listener& listener);
  Task<void> Serve(Fd fd, std::unique_ptr<Transport> transport, Peer peer);
  Task<void> Sweep();
};

Task<void> Server::State::Accept(Listener* listener) {
  async::Watch watch(loop, listener->socket.fd());
  for (int row = 0; true; ++row) {
    switch (AcceptOne(*listener)) {
      case 0:
        if (row < kAcceptsInARow) break;
        row = 0;
        co_await loop.Yield();
        break;
      case EAGAIN:
        row = 0;
        co_await watch.Readable();
        break;
      case EMFILE:
      case ENFILE:
        reserve.TurnAway(listener->socket.fd());
        ++stats.refused;
        [[fallthrough]];
      case ENOBUFS:
      case ENOMEM:
        co_await loop.Sleep(kPauseWithoutDescriptors);
        break;
      default:
        break;  // that connection has gone; there are others (accept(2), "Error handling")
    }
  }
}

int Server::State::AcceptOne(Listener& listener) {
  Fd fd(accept4(listener.socket.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) return errno;
  ++stats.accepted;
  if (stats.connections >= limits.max_connections) {
    ++stats.refused;
    if (!listener.tls) TurnAwayPolitely(std::move(fd));
    return 0;
  }
  Peer peer = PeerOf(fd.get());
  peer.listener = listener.number;
  peer.tls = listener.tls != nullptr;
  const int on = 1;
  if (!peer.credentials) setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  auto transport = listener.tls ? TlsTransport(fd.get(), *listener.tls) : PlainTransport(fd.get());
  if (transport) connections.Spawn(Serve(std::move(fd), std::move(transport), std::move(peer)));
  return 0;
}

Task<void> Server::State::Serve(Fd fd, std::unique_ptr<Transport> transport, Peer peer) {
  Connection connection({loop, limits, handler, stats, draining, date}, std::move(fd),
                        std::move(transport), std::move(peer));
  // Leaves the list also when the server ends the task.
  struct Listed {
    Listed(State& state, Connection* connection)
        : state(state), place(state.open.insert(state.open.end(), connection)) {
      ++state.stats.connections;
    }
    ~Listed() {
      state.open.erase(place);
      --state.stats.connections;
      state.changed.Wake();
    }
    State& state;
    std::list<Connection*>::iterator place;
  };
  const Listed listed(*this, &connection);
  co_await connection.Run();
}

Task<void> Server::State::Sweep() {
  while (true) {
    co_await loop.Sleep(limits.sweep_period);
    const auto now = Channel::Clock::now();
    for (Connection* connection : open)
      if (connection->channel().Sweep(now)) ++stats.timeouts;
  }
}

Server::Server(async::Loop& loop, ServerLimits limits, Handler handler)
    : state_(std::make_unique<State>(loop, limits, std::move(handler))) {
  state_->sweeper.Spawn(state_->Sweep());
}

Server::~Server() = default;

Result<Listening> Server::Listen(ListenOptions options) {
  if (state_->draining) return Error(ErrorCode::kConflict, "the server is being drained");
  CAISSON_ASSIGN(ListenSocket socket, ListenSocket::Open(options.address, state_->limits.backlog));
  Listening listening{state_->listeners.size(), socket.address(), socket.port()};
  Listener& listener = state_->listeners.emplace_back(
      Listener{std::move(socket), std::move(options.tls), listening.number});
  state_->acceptors.Spawn(state_->Accept(&listener));
  return listening;
}

Task<void> Server::Drain(std::chrono::milliseconds grace) {
  State& state = *state_;
  if (!state.draining) {
    state.draining = true;
    state.acceptors.Cancel();
    state.listeners.clear();
    for (Connection* connection : state.open)
      if (connection->idle()) connection->channel().StopReading();
  }
  state.drain_until = std::min(state.drain_until, Channel::Clock::now() + grace);
  state.changed.Wake();
  while (!state.open.empty()) {
    const auto left = state.drain_until - Channel::Clock::now();
    if (left <= Channel::Clock::duration::zero()) {
      state.connections.Cancel();
      break;
    }
    static_cast<void>(co_await async::FirstOf(&state.loop, async::WaitFor(&state.changed),
                                              async::SleepFor(&state.loop, left)));
  }
}

bool Server::draining() const { return state_->draining; }
ServerStats Server::stats() const { return state_->stats; }

}  // namespace caisson::net
