#include "net/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>

#include "base/text.h"

namespace caisson::net {
namespace {

Error Bad(std::string message) { return {ErrorCode::kInvalidArgument, std::move(message)}; }

const sockaddr* Raw(const SocketAddress& address) {
  return reinterpret_cast<const sockaddr*>(address.bytes.data());
}

template <typename T>
SocketAddress FromRaw(const T& raw, size_t size = sizeof(T)) {
  return {std::string(reinterpret_cast<const char*>(&raw), size)};
}

template <typename Number>
Result<Number> ParseNumber(std::string_view text, std::string_view what) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return Bad(Concat({"not ", what, ": ", Quoted(text)}));
  return number;
}

struct TcpName {
  std::string text;
  uint16_t port = 0;
};
TcpName NameOf(const sockaddr_storage& storage) {
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return {text, ntohs(v4.sin_port)};
  }
  if (storage.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
    if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
      inet_ntop(AF_INET, v6.sin6_addr.s6_addr + 12, text, sizeof(text));
    } else {
      inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    }
    return {text, ntohs(v6.sin6_port)};
  }
  return {};
}

// The error of bind or listen, typed.
Error ListenError(std::string_view address, int error_number) {
  Error error = Error::FromErrno(Concat({"listening on ", address}), error_number);
  if (error_number == EADDRINUSE)
    return std::move(error)
        .WithCode(ErrorCode::kConflict)
        .WithRemedy("choose another port, or stop what uses it");
  if (error_number == EACCES || error_number == EPERM)
    return std::move(error).WithCode(ErrorCode::kPermissionDenied);
  if (error_number == EADDRNOTAVAIL)
    return std::move(error)
        .WithCode(ErrorCode::kInvalidArgument)
        .WithRemedy("use an address of this machine");
  return error;
}

// Makes room for a unix socket: removes one that nobody listens on.
Status RemoveStale(const std::string& path, const SocketAddress& address) {
  struct stat info{};
  if (lstat(path.c_str(), &info) != 0) return {};
  const auto in_the_way = [&path](std::string_view why) {
    return Error(ErrorCode::kConflict, Concat({"listening on unix:", path, ": ", why}))
        .WithRemedy("choose another path");
  };
  if (!S_ISSOCK(info.st_mode)) return in_the_way("there is a file, and it is not a socket");
  const Fd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe) return Error::FromErrno("making a socket");
  const int connected =
      connect(probe.get(), Raw(address), static_cast<socklen_t>(address.bytes.size()));
  if (connected == 0 || errno != ECONNREFUSED) return in_the_way("another process listens there");
  if (unlink(path.c_str()) != 0 && errno != ENOENT)
    return Error::FromErrno(Concat({"removing the stale socket ", path}));
  return {};
}

}  // namespace

int SocketAddress::family() const { return Raw(*this)->sa_family; }

Result<SocketAddress> NumericAddress(std::string_view host, uint16_t port) {
  const std::string text(host);
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  if (inet_pton(AF_INET, text.c_str(), &v4.sin_addr) == 1) return FromRaw(v4);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  if (inet_pton(AF_INET6, text.c_str(), &v6.sin6_addr) == 1) return FromRaw(v6);
  return Bad("not a numeric address: " + Quoted(host));
}

Result<SocketAddress> UnixAddress(std::string_view path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path) ||
      path.find('\0') != std::string_view::npos)
    return Bad(Concat({"not a path for a unix socket (1 to 107 bytes): ", Quoted(path)}));
  memcpy(address.sun_path, path.data(), path.size());
  return FromRaw(address, offsetof(sockaddr_un, sun_path) + path.size() + 1);
}

Result<std::vector<SocketAddress>> LookUp(const std::string& host, uint16_t port) {
  if (auto numeric = NumericAddress(host, port)) return std::vector{*std::move(numeric)};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  const int failed = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (failed != 0)
    return Error(ErrorCode::kUnavailable,
                 Concat({"looking up ", Quoted(host), ": ", gai_strerror(failed)}));
  std::vector<SocketAddress> addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next)
    addresses.push_back(
        {std::string(reinterpret_cast<const char*>(entry->ai_addr), entry->ai_addrlen)});
  freeaddrinfo(list);
  if (addresses.empty())
    return Error(ErrorCode::kUnavailable, Concat({Quoted(host), " has no address"}));
  return addresses;
}

std::string AddressText(const SocketAddress& address) {
  sockaddr_storage storage{};
  memcpy(&storage, address.bytes.data(), std::min(address.bytes.size(), sizeof(storage)));
  return NameOf(storage).text;
}

Result<Fd> StartConnect(const SocketAddress& address) {
  Fd fd(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return Error::FromErrno("making a socket");
  const int on = 1;
  if (address.family() != AF_UNIX) setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (connect(fd.get(), Raw(address), static_cast<socklen_t>(address.bytes.size())) != 0 &&
      errno != EINPROGRESS)
    return Error::FromErrno("connecting").WithCode(ErrorCode::kUnavailable);
  return fd;
}

int ConnectError(int fd) {
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

Result<ListenSocket> ListenSocket::Open(std::string_view address, int backlog) {
  if (address.starts_with("unix:")) return OpenUnix(std::string(address.substr(5)), backlog);
  if (address.starts_with("fd:")) return Inherit(address.substr(3));
  return OpenTcp(address, backlog);
}

Result<ListenSocket> ListenSocket::OpenUnix(std::string path, int backlog) {
  CAISSON_ASSIGN(const SocketAddress address, UnixAddress(path));
  CAISSON_TRY(RemoveStale(path, address));
  ListenSocket listener;
  listener.address_ = "unix:" + path;
  listener.fd_ = Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.fd_) return Error::FromErrno("making a socket");
  // Nobody can connect before listen, so the mode is in place in time.
  if (bind(listener.fd(), Raw(address), static_cast<socklen_t>(address.bytes.size())) != 0)
    return ListenError(listener.address_, errno);
  listener.path_ = std::move(path);
  struct stat info{};
  if (lstat(listener.path_.c_str(), &info) != 0) return ListenError(listener.address_, errno);
  listener.device_ = info.st_dev;
  listener.inode_ = info.st_ino;
  if (chmod(listener.path_.c_str(), 0600) != 0 || listen(listener.fd(), backlog) != 0)
    return ListenError(listener.address_, errno);
  return listener;
}

Result<ListenSocket> ListenSocket::OpenTcp(std::string_view text, int backlog) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return Bad(Concat({"not an address to listen on: ", Quoted(text)}))
        .WithRemedy("give HOST:PORT with a numeric host, unix:PATH or fd:N");
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  CAISSON_ASSIGN(const auto port, ParseNumber<uint16_t>(text.substr(colon + 1), "a port"));
  CAISSON_ASSIGN(const SocketAddress address, NumericAddress(host, port));
  ListenSocket listener;
  listener.fd_ = Fd(socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.fd_) return Error::FromErrno("making a socket");
  const int on = 1;
  setsockopt(listener.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(listener.fd(), Raw(address), static_cast<socklen_t>(address.bytes.size())) != 0 ||
      listen(listener.fd(), backlog) != 0)
    return ListenError(text, errno);
  listener.NoteTcpAddress();
  return listener;
}

Result<ListenSocket> ListenSocket::Inherit(std::string_view number) {
  CAISSON_ASSIGN(const int fd, ParseNumber<int>(number, "a descriptor"));
  int listening = 0;
  socklen_t size = sizeof(listening);
  if (fd < 3 || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening == 0)
    return Bad(Concat({"fd:", number, " is not a listening socket"}));
  ListenSocket listener;
  listener.fd_ = Fd(fd);
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
    return Error::FromErrno(Concat({"preparing fd:", number}));
  listener.NoteTcpAddress();
  if (listener.address_.empty()) listener.address_ = Concat({"fd:", number});
  return listener;
}

void ListenSocket::NoteTcpAddress() {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (getsockname(fd(), reinterpret_cast<sockaddr*>(&storage), &size) != 0) return;
  const TcpName name = NameOf(storage);
  if (name.text.empty()) return;
  port_ = name.port;
  address_ = Peer{.address = name.text, .port = name.port}.ToString();
}

ListenSocket::~ListenSocket() {
  struct stat info{};
  if (!fd_ || path_.empty() || lstat(path_.c_str(), &info) != 0) return;
  if (info.st_dev == device_ && info.st_ino == inode_) unlink(path_.c_str());
}

Peer PeerOf(int fd) {
  Peer peer;
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) {
    peer.address = "unknown";
    return peer;
  }
  if (storage.ss_family == AF_UNIX) {
    peer.address = "unix";
    peer.loopback = true;
    ucred credentials{};
    size = sizeof(credentials);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0)
      peer.credentials = Peer::Credentials{credentials.uid, credentials.gid, credentials.pid};
    return peer;
  }
  TcpName name = NameOf(storage);
  peer.loopback = name.text.starts_with("127.") || name.text == "::1";
  peer.address = std::move(name.text);
  peer.port = name.port;
  return peer;
}

}  // namespace caisson::net
