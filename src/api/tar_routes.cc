// /api/sessions/{id}/files/tar: whole trees in and out.
#include "api/content.h"
#include "api/routes.h"
#include "api/services.h"
#include "api/tar_transfer.h"
#include "base/text.h"

namespace caisson::api {
namespace {

using auth::Resource;
using auth::Verb;

constexpr uint64_t kMaxArchive = uint64_t{64} << 30;

// Which compression the bytes begin with; empty: none that is known.
std::string_view CompressionOf(std::string_view bytes) {
  struct Magic {
    std::string_view bytes, name;
  };
  constexpr Magic kMagics[] = {{"\x1f\x8b", "gzip"},
                               {"\x28\xb5\x2f\xfd", "zstd"},
                               {"\xfd\x37zXZ", "xz"},
                               {"BZh", "bzip2"},
                               {"PK\x03\x04", "zip"}};
  for (const Magic& magic : kMagics)
    if (bytes.starts_with(magic.bytes)) return magic.name;
  return {};
}

Reply WrongMedia(const Call& call, std::string_view what) {
  return net::Response::Problem(
      415,
      Error(ErrorCode::kInvalidArgument, "the archive is " + std::string(what) + ", not plain tar")
          .WithRemedy("send it uncompressed: gzip -dc A.tar.gz | curl -T - …"),
      call.request_id());
}

// The request's body, the first piece of which has been looked at.
class BodySource {
 public:
  BodySource(net::BodyReader& body, std::string first) : body_(body), first_(std::move(first)) {}
  Task<Result<std::string>> Next() {
    if (first_) {
      std::string piece = *std::move(first_);
      first_.reset();
      co_return piece;
    }
    co_return co_await body_.Next();
  }

 private:
  net::BodyReader& body_;
  std::optional<std::string> first_;
};

Result<TarLimits> LimitsOf(const Call& call) {
  TarLimits limits;
  CAISSON_ASSIGN(const auto specials, call.Query("specials"));
  if (specials == "skip")
    limits.specials = TarSpecials::kSkip;
  else if (specials && *specials != "refuse")
    return Error(ErrorCode::kInvalidArgument, "specials: there is no " + Quoted(*specials))
        .WithRemedy("use refuse or skip");
  return limits;
}

Task<Result<Reply>> ExtractTar(Call* call) {
  CAISSON_CO_ASSIGN(const std::string path, QueryPath(*call));
  CAISSON_CO_ASSIGN(const TarLimits limits, LimitsOf(*call));
  if (const auto encoding = call->request().headers.Get("content-encoding", "identity");
      !net::EqualsIgnoringCase(encoding, "identity"))
    co_return WrongMedia(*call, encoding);
  CAISSON_CO_ASSIGN(const SessionFiles at, co_await FilesOf(call));
  net::Exchange& exchange = call->exchange();
  exchange.SetBodyLimit(kMaxArchive);
  CAISSON_CO_ASSIGN(std::string first, co_await exchange.body().Next());
  if (const auto compression = CompressionOf(first); !compression.empty())
    co_return WrongMedia(*call, compression);
  BodySource source(exchange.body(), std::move(first));
  CAISSON_CO_ASSIGN(const UnpackResult result,
                    co_await UnpackTar(&call->services().loop, &at, path, limits,
                                       [&source] { return source.Next(); }));
  co_return Reply::Json(200, json::Object{{"path", path},
                                          {"entries", result.entries},
                                          {"skipped", result.skipped},
                                          {"bytes", result.bytes}});
}

// The answer's head goes out with the first piece, so that what fails before has a status.
class ArchiveAnswer {
 public:
  ArchiveAnswer(net::Exchange& exchange, std::string name)
      : exchange_(exchange), name_(std::move(name)) {}
  Task<Status> Put(std::string piece) {
    if (!exchange_.answered()) CAISSON_CO_TRY(co_await exchange_.Begin(Head()));
    co_return co_await exchange_.Write(std::move(piece));
  }
  // The head alone.
  Task<Status> PutNothing() {
    CAISSON_CO_TRY(co_await exchange_.Begin(Head()));
    co_return co_await exchange_.Finish();
  }

 private:
  net::ResponseHead Head() const {
    net::ResponseHead head;
    head.headers.Set("Content-Type", "application/x-tar");
    head.headers.Set("Content-Disposition", AttachmentOf(name_));
    head.headers.Set("Cache-Control", "private, no-store");
    head.headers.Set("X-Content-Type-Options", "nosniff");
    return head;
  }

  net::Exchange& exchange_;
  const std::string name_;
};

Task<Result<Reply>> DownloadTar(Call* call) {
  CAISSON_CO_ASSIGN(const std::string path, QueryPath(*call));
  CAISSON_CO_ASSIGN(const auto unreadable, call->Query("unreadable"));
  if (unreadable && *unreadable != "fail" && *unreadable != "skip")
    co_return Error(ErrorCode::kInvalidArgument, "unreadable: there is no " + Quoted(*unreadable))
        .WithRemedy("use fail or skip");
  CAISSON_CO_ASSIGN(const SessionFiles at, co_await FilesOf(call));
  const std::string leaf = path.substr(path.rfind('/') + 1);
  ArchiveAnswer answer(call->exchange(), (leaf.empty() ? "files" : leaf) + ".tar");
  if (call->request().method == "HEAD") {
    CAISSON_CO_TRY(co_await at.files->Stat(path, at.user, sandbox::Follow::kYes));
    CAISSON_CO_TRY(co_await answer.PutNothing());
    co_return Reply::Streamed();
  }
  CAISSON_CO_TRY(
      co_await PackTar(&call->services().loop, &at, path,
                       unreadable == "skip" ? Unreadable::kSkip : Unreadable::kFail,
                       [&answer](std::string piece) { return answer.Put(std::move(piece)); }));
  CAISSON_CO_TRY(co_await call->exchange().Finish());
  co_return Reply::Streamed();
}

constexpr Parameter kUser{"user", "string", "As whom; default: the session's user"};

}  // namespace

void AddTarRoutes(std::vector<Route>& routes) {
  routes.push_back({.method = "PUT",
                    .pattern = "/api/sessions/{id}/files/tar",
                    .permission = {Verb::kUpdate, Resource::kFiles},
                    .handler = ExtractTar,
                    .id = "extractTar",
                    .group = "files",
                    .summary = "Unpack a tar archive below a directory, which is made if missing",
                    .request_media = "application/x-tar",
                    .outcomes = {{200, "TarResult"}},
                    .parameters = {{"path", "FilePath", "The directory, absolute",
                                    Parameter::In::kQuery, Parameter::Need::kRequired},
                                   kUser,
                                   {"specials", "Specials",
                                    "Devices and FIFOs: refuse (default) the archive, or skip"}},
                    .audited = Audited::kAlways});
  routes.push_back({.method = "GET",
                    .pattern = "/api/sessions/{id}/files/tar",
                    .permission = {Verb::kRead, Resource::kFiles},
                    .handler = DownloadTar,
                    .id = "downloadTar",
                    .group = "files",
                    .summary = "A directory with all below it, or a file, as a tar archive",
                    .outcomes = {{200, "", "application/x-tar"}},
                    .parameters = {{"path", "FilePath", "The directory or file, absolute",
                                    Parameter::In::kQuery, Parameter::Need::kRequired},
                                   kUser,
                                   {"unreadable", "Unreadable",
                                    "Files that the user may not read: fail (default), or skip"}}});
}

}  // namespace caisson::api
