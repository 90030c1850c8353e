// /api/sessions/{id}/files/tar: whole trees in and out.
#include "api/content.h"
#include "api/routes.h"
#include "api/services.h"
#include "api/tar_transfer.h"
#include "async/thread_pool.h"
#include "base/text.h"
#include "net/gzip.h"

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
      Error(ErrorCode::kInvalidArgument,
            "the archive is " + std::string(what) + ", not tar or gzip")
          .WithRemedy("send it as plain tar or gzip: zstd -dc A.tar.zst | curl -T - …"),
      call.request_id());
}

enum class Packing { kPlain, kGzip };

// The archive in the request's body, the first piece of which has been looked at.
class BodySource {
 public:
  BodySource(net::BodyReader& body, std::string first, Packing packing)
      : body_(body), first_(std::move(first)) {
    if (packing == Packing::kGzip) gzip_.emplace();
  }
  Task<Result<std::string>> Next() {
    if (!gzip_) co_return co_await Raw();
    for (;;) {
      CAISSON_CO_ASSIGN(std::string piece, gzip_->Next());
      if (!piece.empty()) co_return piece;
      CAISSON_CO_ASSIGN(std::string raw, co_await Raw());
      if (raw.empty()) {
        CAISSON_CO_TRY(gzip_->Finish());
        co_return std::string();
      }
      gzip_->Feed(std::move(raw));
    }
  }

 private:
  Task<Result<std::string>> Raw() {
    if (first_) {
      std::string piece = *std::move(first_);
      first_.reset();
      co_return piece;
    }
    co_return co_await body_.Next();
  }

  net::BodyReader& body_;
  std::optional<std::string> first_;
  std::optional<net::GzipDecoder> gzip_;
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
  const auto encoding = call->request().headers.Get("content-encoding", "identity");
  const bool encoded = net::EqualsIgnoringCase(encoding, "gzip");
  if (!encoded && !net::EqualsIgnoringCase(encoding, "identity"))
    co_return WrongMedia(*call, encoding);
  CAISSON_CO_ASSIGN(const SessionFiles at, co_await FilesOf(call));
  net::Exchange& exchange = call->exchange();
  exchange.SetBodyLimit(kMaxArchive);
  CAISSON_CO_ASSIGN(std::string first, co_await exchange.body().Next());
  const auto compression = CompressionOf(first);
  if (!compression.empty() && compression != "gzip") co_return WrongMedia(*call, compression);
  const bool gzip = encoded || compression == "gzip";
  BodySource source(exchange.body(), std::move(first), gzip ? Packing::kGzip : Packing::kPlain);
  CAISSON_CO_ASSIGN(const UnpackResult result,
                    co_await UnpackTar(&call->services().loop, &at, path, limits,
                                       [&source] { return source.Next(); }));
  co_return Reply::Json(200, json::Object{{"path", path},
                                          {"entries", result.entries},
                                          {"skipped", result.skipped},
                                          {"bytes", result.bytes}});
}

// An archive as it goes out: plain, as a .tar.gz, or plain with its transfer compressed.
enum class Form { kTar, kTarGz, kEncoded };

// Accept-Encoding names gzip, and not with a weight of nothing (RFC 9110 §12.5.3).
bool AcceptsGzip(const net::Request& request) {
  std::string_view rest = request.headers.Get("accept-encoding");
  while (!rest.empty()) {
    const size_t comma = std::min(rest.find(','), rest.size());
    std::string item;
    for (const char c : rest.substr(0, comma))
      if (c != ' ' && c != '\t') item += c;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const size_t semicolon = std::min(item.find(';'), item.size());
    if (!net::EqualsIgnoringCase(std::string_view(item).substr(0, semicolon), "gzip")) continue;
    const std::string_view weight = std::string_view(item).substr(semicolon);
    return !weight.starts_with(";q=0") || weight.find_first_of("123456789") != std::string::npos;
  }
  return false;
}

// The answer's head goes out with the first piece, so that what fails before has a status.
class ArchiveAnswer {
 public:
  ArchiveAnswer(Call& call, std::string name, Form form)
      : call_(call), exchange_(call.exchange()), name_(std::move(name)), form_(form) {
    if (form_ != Form::kTar) gzip_ = std::make_shared<net::GzipEncoder>();
  }
  Task<Status> Put(std::string piece) {
    if (!exchange_.answered()) CAISSON_CO_TRY(co_await exchange_.Begin(Head()));
    if (gzip_) {
      CAISSON_CO_ASSIGN(piece, co_await Compressed(std::move(piece)));
      if (piece.empty()) co_return Status();
    }
    co_return co_await exchange_.Write(std::move(piece));
  }
  Task<Status> Finish() {
    if (gzip_) {
      CAISSON_CO_ASSIGN(std::string rest, gzip_->Finish());
      CAISSON_CO_TRY(co_await exchange_.Write(std::move(rest)));
    }
    co_return co_await exchange_.Finish();
  }
  // The head alone.
  Task<Status> PutNothing() {
    CAISSON_CO_TRY(co_await exchange_.Begin(Head()));
    co_return co_await exchange_.Finish();
  }

 private:
  // Away from the loop: compressing takes longer than everything else about a piece.
  Task<Result<std::string>> Compressed(std::string piece) {
    const Keepings* kept = call_.services().kept;
    if (kept == nullptr) co_return gzip_->Add(piece);
    co_return co_await async::Offload(
        &call_.services().loop, &kept->disk,
        [gzip = gzip_, piece = std::move(piece)] { return gzip->Add(piece); });
  }

  net::ResponseHead Head() const {
    net::ResponseHead head;
    head.headers.Set("Content-Type",
                     form_ == Form::kTarGz ? "application/gzip" : "application/x-tar");
    if (form_ == Form::kEncoded) head.headers.Set("Content-Encoding", "gzip");
    head.headers.Set("Vary", "Accept-Encoding");
    head.headers.Set("Content-Disposition", AttachmentOf(name_));
    head.headers.Set("Cache-Control", "private, no-store");
    head.headers.Set("X-Content-Type-Options", "nosniff");
    return head;
  }

  Call& call_;
  net::Exchange& exchange_;
  const std::string name_;
  const Form form_;
  std::shared_ptr<net::GzipEncoder> gzip_;
};

// What the client asks for by ?format=, or accepts.
Result<Form> FormOf(const Call& call) {
  CAISSON_ASSIGN(const auto format, call.Query("format"));
  if (format == "tar.gz") return Form::kTarGz;
  if (format && *format != "tar")
    return Error(ErrorCode::kInvalidArgument, "format: there is no " + Quoted(*format))
        .WithRemedy("use tar or tar.gz");
  if (format) return Form::kTar;
  return AcceptsGzip(call.request()) ? Form::kEncoded : Form::kTar;
}

Task<Result<Reply>> DownloadTar(Call* call) {
  CAISSON_CO_ASSIGN(const std::string path, QueryPath(*call));
  CAISSON_CO_ASSIGN(const auto unreadable, call->Query("unreadable"));
  if (unreadable && *unreadable != "fail" && *unreadable != "skip")
    co_return Error(ErrorCode::kInvalidArgument, "unreadable: there is no " + Quoted(*unreadable))
        .WithRemedy("use fail or skip");
  CAISSON_CO_ASSIGN(const Form form, FormOf(*call));
  CAISSON_CO_ASSIGN(const SessionFiles at, co_await FilesOf(call));
  const std::string leaf = path.substr(path.rfind('/') + 1);
  ArchiveAnswer answer(
      *call, (leaf.empty() ? "files" : leaf) + (form == Form::kTarGz ? ".tar.gz" : ".tar"), form);
  if (call->request().method == "HEAD") {
    CAISSON_CO_TRY(co_await at.files->Stat(path, at.user, sandbox::Follow::kYes));
    CAISSON_CO_TRY(co_await answer.PutNothing());
    co_return Reply::Streamed();
  }
  CAISSON_CO_TRY(
      co_await PackTar(&call->services().loop, &at, path,
                       unreadable == "skip" ? Unreadable::kSkip : Unreadable::kFail,
                       [&answer](std::string piece) { return answer.Put(std::move(piece)); }));
  CAISSON_CO_TRY(co_await answer.Finish());
  co_return Reply::Streamed();
}

constexpr Parameter kUser{"user", "string", "As whom; default: the session's user"};

}  // namespace

void AddTarRoutes(std::vector<Route>& routes) {
  routes.push_back(
      {.method = "PUT",
       .pattern = "/api/sessions/{id}/files/tar",
       .permission = {Verb::kUpdate, Resource::kFiles},
       .handler = ExtractTar,
       .id = "extractTar",
       .group = "files",
       .summary =
           "Unpack a tar archive, plain or gzip, below a directory, which is made if missing",
       .request_media = "application/x-tar",
       .outcomes = {{200, "TarResult"}},
       .parameters = {{"path", "FilePath", "The directory, absolute", Parameter::In::kQuery,
                       Parameter::Need::kRequired},
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
                    .outcomes = {{200, "", "application/x-tar"}, {200, "", "application/gzip"}},
                    .parameters = {{"path", "FilePath", "The directory or file, absolute",
                                    Parameter::In::kQuery, Parameter::Need::kRequired},
                                   {"format", "ArchiveFormat",
                                    "tar (default), or tar.gz; Accept-Encoding: gzip compresses "
                                    "the transfer alone"},
                                   kUser,
                                   {"unreadable", "Unreadable",
                                    "Files that the user may not read: fail (default), or skip"}}});
}

}  // namespace caisson::api
