#include "cli/transfer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "async/watch.h"
#include "base/sha256.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/process_link.h"
#include "cli/progress.h"
#include "cli/tar_pipe.h"

namespace caisson::cli {
namespace {

using BodyKind = net::Client::BodyKind;
constexpr size_t kPiece = 256 << 10;

std::string FilesTarget(const RemotePath& remote, std::string_view route) {
  std::string target = SessionTarget(remote.session, route);
  target += Query({{"path", remote.path}});
  if (!remote.user.empty()) target += "&user=" + net::PercentEncode(remote.user);
  return target;
}

// The name under which an unfinished copy of one version of a file waits.
std::string PartName(const std::string& path, std::string_view version) {
  Sha256 hash;
  hash.Update(version);
  return Concat({path, ".", hash.HexDigest().substr(0, 12), ".part"});
}

// Reads what there is of a descriptor; empty at the end. One that can be waited for is.
Task<Result<std::string>> ReadPiece(async::Loop* loop, int fd) {
  async::Watch watch(*loop, fd);
  std::string piece(kPiece, '\0');
  for (;;) {
    co_await watch.Readable();
    const ssize_t got = read(fd, piece.data(), piece.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0) co_return Error::FromErrno("reading");
    piece.resize(static_cast<size_t>(got));
    co_return std::move(piece);
  }
}

struct Outgoing {
  std::string target;
  int fd = -1;
  std::string media;
  std::string what;
  std::optional<uint64_t> total;
  uint64_t done = 0;
};

// A PUT whose body is all that can be read from a descriptor. A server that refuses says why, even
// in the middle of it.
Task<Result<Transferred>> Put(ApiClient* api, Outgoing out) {
  net::ClientRequest request{.method = "PUT", .target = out.target};
  request.headers.Set("Content-Type", out.media);
  CAISSON_CO_ASSIGN(const auto exchange,
                    co_await api->Open(std::move(request), BodyKind::kStreamed));
  Progress progress(out.what, out.total, out.done);
  Transferred sent{0, out.done};
  for (;;) {
    CAISSON_CO_ASSIGN(std::string piece, co_await ReadPiece(&api->loop(), out.fd));
    const size_t size = piece.size();
    const auto written =
        size == 0 ? co_await exchange->Finish() : co_await exchange->Write(std::move(piece));
    sent.bytes += size;
    progress.Add(size);
    if (size == 0 || !written) break;
  }
  CAISSON_CO_TRY(co_await api->ReadAnswer(exchange.get()));
  co_return sent;
}

Task<Result<Transferred>> UploadInParts(ApiClient* api, Outgoing out, RemotePath remote,
                                        const struct stat info) {
  RemotePath part = remote;
  part.path = PartName(
      remote.path,
      Concat({std::to_string(info.st_ino), " ", std::to_string(info.st_size), " ",
              std::to_string(info.st_mtim.tv_sec), ".", std::to_string(info.st_mtim.tv_nsec)}));
  CAISSON_CO_ASSIGN(const json::Value there, co_await StatRemote(api, part));
  out.done = std::min(CountAt(there, "size"), static_cast<uint64_t>(info.st_size));
  if (lseek(out.fd, static_cast<off_t>(out.done), SEEK_SET) < 0)
    co_return Error::FromErrno("reading " + out.what);
  out.target = FilesTarget(part, "/files/content") + "&offset=" + std::to_string(out.done) +
               "&parents=true&permissions=" + (info.st_mode & 0111 ? "0755" : "0644");
  auto sent = co_await Put(api, std::move(out));
  if (!sent) co_return std::move(sent).error();
  json::Object move{{"from", part.path}, {"to", remote.path}, {"overwrite", true}};
  if (!remote.user.empty()) move["user"] = remote.user;
  CAISSON_CO_TRY(
      co_await api->Send("POST", SessionTarget(remote.session, "/files/move"), std::move(move)));
  co_return sent;
}

struct Incoming {
  std::string target;
  int fd = -1;
  std::string what;
  std::optional<uint64_t> total;
  uint64_t done = 0;
  std::string etag;
};

// A GET whose answer goes to a descriptor. Beginning later than at the first byte, the server must
// still have the same version.
Task<Result<Transferred>> Fetch(ApiClient* api, Incoming in) {
  net::ClientRequest request{.target = in.target};
  if (in.done > 0) {
    request.headers.Set("Range", "bytes=" + std::to_string(in.done) + "-");
    request.headers.Set("If-Range", in.etag);
  }
  CAISSON_CO_ASSIGN(const auto exchange, co_await api->Open(std::move(request), BodyKind::kWhole));
  CAISSON_CO_ASSIGN(const net::ResponseHead head, co_await api->ReadAnswer(exchange.get()));
  if (in.done > 0 && head.status != 206)
    co_return Error(ErrorCode::kConflict, in.what + " has changed meanwhile")
        .WithRemedy("copy it again");
  Progress progress(in.what, in.total, in.done);
  Transferred received{0, in.done};
  for (;;) {
    CAISSON_CO_ASSIGN(const std::string piece, co_await exchange->body().Next(kPiece));
    if (piece.empty()) co_return received;
    if (!WriteTo(in.fd, piece)) co_return Error::FromErrno("writing " + in.what);
    received.bytes += piece.size();
    progress.Add(piece.size());
  }
}

mode_t PermissionsOf(const json::Value& stat) {
  const mode_t mode =
      static_cast<mode_t>(strtoul(TextAt(stat, "permissions").c_str(), nullptr, 8)) & 0777;
  return mode == 0 ? 0644 : mode;
}

// The umask can only be read by setting it.
mode_t Umask() {
  const mode_t mask = umask(0);
  umask(mask);
  return mask;
}

}  // namespace

Task<Result<json::Value>> StatRemote(ApiClient* api, RemotePath remote) {
  auto stat = co_await api->Get(FilesTarget(remote, "/files/stat") + "&follow=true");
  if (stat || stat.error().code() != ErrorCode::kNotFound) co_return stat;
  // Nothing at the path, or no such session?
  CAISSON_CO_TRY(co_await api->Get(SessionTarget(remote.session)));
  co_return json::Value();
}

Task<Result<Transferred>> UploadFile(ApiClient* api, std::string local, RemotePath remote,
                                     Attempt attempt) {
  Outgoing out{.media = "application/octet-stream", .what = local};
  struct stat info{};
  sys::UniqueFd file;
  if (local == "-") {
    out.fd = STDIN_FILENO;
  } else {
    file.Reset(open(local.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file || fstat(file.get(), &info) != 0) co_return Error::FromErrno("opening " + local);
    out.fd = file.get();
    if (S_ISREG(info.st_mode)) out.total = static_cast<uint64_t>(info.st_size);
  }
  if (attempt == Attempt::kGoOn) {
    if (!S_ISREG(info.st_mode))
      co_return Error(ErrorCode::kInvalidArgument, local + " cannot be gone on with")
          .WithRemedy("--resume is for files; leave it out");
    co_return co_await UploadInParts(api, std::move(out), std::move(remote), info);
  }
  out.target = FilesTarget(remote, "/files/content") + "&parents=true&permissions=" +
               (S_ISREG(info.st_mode) && (info.st_mode & 0111) != 0 ? "0755" : "0644");
  co_return co_await Put(api, std::move(out));
}

Task<Result<Transferred>> DownloadFile(ApiClient* api, RemotePath remote, json::Value stat,
                                       std::string local, Attempt attempt) {
  Incoming in{.target = FilesTarget(remote, "/files/content"),
              .what = remote.session + ":" + remote.path,
              .total = CountAt(stat, "size"),
              .etag = TextAt(stat, "etag")};
  if (local == "-") {
    in.fd = STDOUT_FILENO;
    co_return co_await Fetch(api, std::move(in));
  }
  const bool goes_on = attempt == Attempt::kGoOn;
  const std::string part = PartName(local, in.etag);
  const sys::UniqueFd file(
      open(part.c_str(),
           O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_APPEND | (goes_on ? 0 : O_TRUNC), 0600));
  if (!file) co_return Error::FromErrno("making " + part);
  struct stat info{};
  if (fstat(file.get(), &info) != 0) co_return Error::FromErrno("reading " + part);
  in.fd = file.get();
  in.done = static_cast<uint64_t>(info.st_size);
  const bool whole = in.done > 0 && in.done == *in.total;
  auto received =
      whole ? Result<Transferred>(Transferred{0, in.done}) : co_await Fetch(api, std::move(in));
  const bool kept = !received && goes_on;
  if (received && (fchmod(file.get(), PermissionsOf(stat) & ~Umask()) != 0 ||
                   rename(part.c_str(), local.c_str()) != 0))
    received = Error::FromErrno("making " + local);
  if (!received && !kept) unlink(part.c_str());
  if (kept)
    co_return std::move(received).error().WithRemedy("go on with the same command and --resume");
  co_return received;
}

Task<Result<Transferred>> UploadTree(ApiClient* api, std::string local, RemotePath remote) {
  CAISSON_CO_ASSIGN(const auto pipe, TarPipe::Pack(local));
  Outgoing out{.target = FilesTarget(remote, "/files/tar"),
               .fd = pipe->fd(),
               .media = "application/x-tar",
               .what = local};
  auto sent = co_await Put(api, std::move(out));
  auto packed = pipe->Finish();
  // When the server refuses, what it says counts; a packing that broke cuts the archive short.
  if (!packed && (sent || sent.error().code() == ErrorCode::kInvalidArgument))
    co_return std::move(packed).error();
  co_return sent;
}

Task<Result<Transferred>> DownloadTree(ApiClient* api, RemotePath remote, std::string local) {
  if (mkdir(local.c_str(), 0777) != 0 && errno != EEXIST)
    co_return Error::FromErrno("making the directory " + local);
  CAISSON_CO_ASSIGN(const auto pipe, TarPipe::Unpack(local));
  Incoming in{.target = FilesTarget(remote, "/files/tar"),
              .fd = pipe->fd(),
              .what = remote.session + ":" + remote.path};
  auto received = co_await Fetch(api, std::move(in));
  auto unpacked = pipe->Finish();
  // A write that fails does so because the unpacking ended: its reason is the better one.
  if (!unpacked && (received || received.error().sys_errno() == EPIPE))
    co_return std::move(unpacked).error();
  co_return received;
}

}  // namespace caisson::cli
