// Signed URLs of files: whoever has one may read or write that one file, as that user, until it
// expires, and needs no key for it.
#include <chrono>

#include "api/file_access.h"
#include "api/file_content.h"
#include "api/routes.h"
#include "api/services.h"
#include "api/session_json.h"
#include "auth/session_token.h"
#include "net/url.h"

namespace caisson::api {
namespace {

using auth::Resource;
using auth::Verb;

constexpr std::chrono::seconds kLongest = std::chrono::hours(24 * 7);
constexpr std::chrono::seconds kUsual = std::chrono::hours(1);

int64_t NowMs() { return sandbox::SystemTime().time_since_epoch().count(); }

auth::UrlGrant GrantOf(std::string method, const std::string& session_id, std::string path,
                       std::string user, int64_t expires_ms) {
  return {.method = std::move(method),
          .path = std::move(path),
          .user = std::move(user),
          .session_id = session_id,
          .generation = 0,  // a session has one sandbox
          .expires_ms = expires_ms};
}

std::string UrlOf(const auth::UrlGrant& grant, const std::string& signature) {
  std::string url =
      "/api/signed/" + grant.session_id + "/content?path=" + net::PercentEncode(grant.path);
  if (!grant.user.empty()) url += "&user=" + net::PercentEncode(grant.user);
  url += "&expires=" + std::to_string(grant.expires_ms) + "&signature=" + signature;
  return url;
}

// kUnsupported when the server gives out none.
Result<const auth::SignedUrls*> SignerOf(Call& call) {
  if (call.services().signed_urls != nullptr) return call.services().signed_urls;
  return Error(ErrorCode::kUnsupported, "this server gives out no signed URLs")
      .WithRemedy("use a key or a session token");
}

// Reading may be signed by whoever may read, writing by whoever may write.
Status MaySign(const Call& call, std::string_view method) {
  if (method == "GET" || call.principal().Allows(Verb::kUpdate, Resource::kFiles)) return {};
  return Error(ErrorCode::kPermissionDenied, "the caller may not write files, nor let others")
      .WithRemedy("use a key that allows update:files");
}

Task<Result<Reply>> SignFile(Call* call) {
  constexpr json::Choice<std::string_view> kMethods[] = {{"GET", "GET"}, {"PUT", "PUT"}};
  CAISSON_CO_ASSIGN(const json::Value body, co_await call->ReadJson());
  json::Reader in(body);
  const auto path = in.Required<std::string>("path");
  const auto method = in.OptionalEnum<std::string_view>("method", kMethods).value_or("GET");
  const auto user = in.Optional<std::string>("user", {.max = 64}).value_or("");
  const auto expires_in =
      in.OptionalDuration("expires_in", {.min = std::chrono::seconds(1), .max = kLongest});
  CAISSON_CO_TRY(in.Finish());
  CAISSON_CO_TRY(CheckFilePath("path", path));
  CAISSON_CO_TRY(MaySign(*call, method));
  CAISSON_CO_ASSIGN(const auth::SignedUrls* signer, SignerOf(*call));
  CAISSON_CO_ASSIGN(const auto session,
                    co_await call->services().sessions.Get(call->access(), call->Param("id")));
  const auto valid =
      std::chrono::duration_cast<std::chrono::milliseconds>(expires_in.value_or(kUsual));
  const auto grant =
      GrantOf(std::string(method), session->id(), path, user, NowMs() + valid.count());
  const sandbox::WallTime expires{std::chrono::milliseconds(grant.expires_ms)};
  co_return Reply::Json(201, json::Object{{"url", UrlOf(grant, signer->Sign(grant))},
                                          {"method", method},
                                          {"expires_at", ToText(expires)}});
}

// Lets the call go on as somebody who may use this session alone.
Task<Status> Admit(Call* call, std::string method) {
  CAISSON_CO_ASSIGN(const std::string path, QueryPath(*call));
  CAISSON_CO_ASSIGN(const auto user, call->Query("user"));
  CAISSON_CO_ASSIGN(const auto expires, call->QueryInteger("expires", 0, INT64_MAX));
  CAISSON_CO_ASSIGN(const auto signature, call->Query("signature"));
  const std::string& id = call->Param("id");
  const auto grant = GrantOf(std::move(method), id, path, user.value_or(""), expires.value_or(0));
  CAISSON_CO_ASSIGN(const auth::SignedUrls* signer, SignerOf(*call));
  CAISSON_CO_TRY(signer->Check(grant, signature.value_or(""), NowMs()));
  CAISSON_CO_ASSIGN(const auto record,
                    co_await call->services().sessions.Describe({.session = id}, id));
  auth::Principal principal;
  principal.tenant = record.owner.tenant;
  principal.key_id = "signed:" + id;
  principal.name = "a signed URL";
  principal.role = auth::Role::kDeveloper;
  principal.session = id;
  call->set_principal(std::move(principal));
  co_return Status();
}

Task<Result<Reply>> ReadSigned(Call* call) {
  CAISSON_CO_TRY(co_await Admit(call, "GET"));
  co_return co_await ReadFileContent(call);
}

Task<Result<Reply>> WriteSigned(Call* call) {
  CAISSON_CO_TRY(co_await Admit(call, "PUT"));
  co_return co_await WriteFileContent(call);
}

constexpr Parameter kPath{"path", "FilePath", "As signed", Parameter::In::kQuery,
                          Parameter::Need::kRequired};
constexpr Parameter kUser{"user", "string", "As signed"};
constexpr Parameter kExpires{"expires", "Offset", "As signed: milliseconds since 1970",
                             Parameter::In::kQuery, Parameter::Need::kRequired};
constexpr Parameter kSignature{"signature", "string", "Of all these, by the server",
                               Parameter::In::kQuery, Parameter::Need::kRequired};

}  // namespace

void AddSignedFileRoutes(std::vector<Route>& routes) {
  const auto add = [&](Route route) { routes.push_back(std::move(route)); };
  add({.method = "POST",
       .pattern = "/api/sessions/{id}/files/sign",
       .permission = {Verb::kRead, Resource::kFiles},
       .handler = SignFile,
       .id = "signFile",
       .group = "files",
       .summary = "A URL that reads or writes one file without a key, until it expires",
       .request = "FileSign",
       .outcomes = {{201, "SignedUrl"}},
       .audited = Audited::kAlways});
  add({.method = "GET",
       .pattern = "/api/signed/{id}/content",
       .permission = Permission::Everybody(),
       .handler = ReadSigned,
       .id = "readSignedFile",
       .group = "files",
       .summary = "Download the file that a signed URL is of",
       .outcomes = {{200, "", "*/*"}, {206, "", "*/*"}, {304, ""}},
       .parameters = {kPath, kUser, kExpires, kSignature}});
  add({.method = "PUT",
       .pattern = "/api/signed/{id}/content",
       .permission = Permission::Everybody(),
       .handler = WriteSigned,
       .id = "writeSignedFile",
       .group = "files",
       .summary = "Upload the file that a signed URL is of; it appears whole",
       .request_media = "application/octet-stream",
       .outcomes = {{200, "File"}},
       .parameters = {kPath, kUser, kExpires, kSignature}});
}

}  // namespace caisson::api
