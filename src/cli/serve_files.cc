#include "cli/serve_files.h"

#include <fcntl.h>
#include <unistd.h>

#include "json/reader.h"
#include "sys/unique_fd.h"
#include "yaml/yaml.h"

namespace caisson::cli {
namespace {

constexpr size_t kMaxFile = 1 << 20;

constexpr json::Choice<auth::JwsAlgorithm> kAlgorithms[] = {{"HS256", auth::JwsAlgorithm::kHs256},
                                                            {"RS256", auth::JwsAlgorithm::kRs256},
                                                            {"ES256", auth::JwsAlgorithm::kEs256},
                                                            {"EdDSA", auth::JwsAlgorithm::kEdDsa}};

Result<std::string> ReadWhole(const std::string& path) {
  const sys::UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file)
    return Error::FromErrno("read " + path)
        .WithCode(ErrorCode::kInvalidArgument)
        .WithRemedy("give a file that exists and that you may read");
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(file.get(), buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(got));
    if (text.size() > kMaxFile)
      return Error(ErrorCode::kInvalidArgument, path + " is larger than 1 MiB");
  }
  return text;
}

Result<auth::JwtIssuer> ReadIssuer(const json::Value& value, const std::string& where) {
  json::Reader in(value, where);
  auth::JwtIssuer issuer;
  issuer.issuer = in.Required<std::string>("issuer", {.min = 1});
  issuer.audience = in.Required<std::string>("audience", {.min = 1});
  issuer.algorithm = in.RequiredEnum<auth::JwsAlgorithm>("algorithm", kAlgorithms);
  issuer.key = in.Optional<std::string>("key").value_or("");
  const auto key_file = in.Optional<std::string>("key_file");
  const auto jwks_file = in.Optional<std::string>("jwks_file");
  issuer.role_claim = in.Optional<std::string>("role_claim").value_or(issuer.role_claim);
  issuer.tenant_claim = in.Optional<std::string>("tenant_claim").value_or(issuer.tenant_claim);
  issuer.scope_claim = in.Optional<std::string>("scope_claim").value_or("");
  CAISSON_TRY(in.Finish());
  if (key_file) {
    CAISSON_ASSIGN(issuer.key, ReadWhole(*key_file));
  }
  if (jwks_file) {
    CAISSON_ASSIGN(issuer.jwks, ReadWhole(*jwks_file));
  }
  return issuer;
}

}  // namespace

Result<std::vector<auth::JwtIssuer>> ReadJwtIssuers(const std::string& path) {
  CAISSON_ASSIGN(const std::string text, ReadWhole(path));
  auto parsed = json::Parse(text);
  if (!parsed) return std::move(parsed).error().Because(path);
  json::Reader in(*parsed);
  const json::Value* list = in.Any("issuers");
  if (auto read = in.Finish(); !read) return std::move(read).error().Because(path);
  if (list == nullptr || !list->is_array())
    return Error(ErrorCode::kInvalidArgument, path + ": issuers: is missing, or no list")
        .WithRemedy("write {\"issuers\": [{\"issuer\": …, \"audience\": …, \"algorithm\": …}]}");
  std::vector<auth::JwtIssuer> issuers;
  for (size_t i = 0; i < list->as_array().size(); ++i) {
    auto issuer = ReadIssuer(list->as_array()[i], "issuers[" + std::to_string(i) + "]");
    if (!issuer) return std::move(issuer).error().Because(path);
    issuers.push_back(*std::move(issuer));
  }
  return issuers;
}

Result<std::vector<telemetry::AlertRule>> ReadAlertRules(const std::string& path,
                                                         const telemetry::Registry& metrics) {
  if (path.empty()) return std::vector<telemetry::AlertRule>();
  CAISSON_ASSIGN(const yaml::Node file, yaml::ParseFile(path));
  return telemetry::ParseAlertRules(file, path, metrics.SampleNames());
}

}  // namespace caisson::cli
