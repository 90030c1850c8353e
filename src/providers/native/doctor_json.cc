#include <boost/json.hpp>

#include "providers/native/doctor.h"

namespace caisson::native {
namespace {

namespace json = boost::json;

// JSON text is UTF-8: what is not becomes a question mark.
json::string Utf8(std::string_view bytes) {
  json::string out;
  for (size_t i = 0; i < bytes.size();) {
    const auto lead = static_cast<unsigned char>(bytes[i]);
    const size_t length = lead < 0x80                   ? 1
                          : lead >= 0xc2 && lead < 0xe0 ? 2
                          : lead >= 0xe0 && lead < 0xf0 ? 3
                          : lead >= 0xf0 && lead < 0xf5 ? 4
                                                        : 0;
    bool valid = length > 0 && i + length <= bytes.size();
    for (size_t k = 1; valid && k < length; ++k)
      valid = (static_cast<unsigned char>(bytes[i + k]) & 0xc0) == 0x80;
    if (valid)
      out.append(bytes.substr(i, length));
    else
      out.push_back('?');
    i += valid ? length : 1;
  }
  return out;
}

std::string_view NameOf(sandbox::Profile profile) {
  return profile == sandbox::Profile::kStrict ? "strict" : "default";
}

json::object Summary(const DoctorReport& report) {
  json::object checks, probes;
  for (const auto status :
       {CheckStatus::kOk, CheckStatus::kOff, CheckStatus::kWeaker, CheckStatus::kFailed})
    checks[NameOf(status)] = report.Count(status);
  for (const auto status : {ProbeStatus::kHeld, ProbeStatus::kBroken, ProbeStatus::kSkipped})
    probes[NameOf(status)] = report.Count(status);
  return {{"works", report.Works()},
          {"kernel", Utf8(report.kernel)},
          {"mode", Utf8(report.mode)},
          {"checks", std::move(checks)},
          {"probes", std::move(probes)}};
}

json::array Checks(const DoctorReport& report) {
  json::array out;
  for (const auto& [group, name, result] : report.checks)
    out.push_back(json::object{{"group", group},
                               {"name", name},
                               {"status", NameOf(result.status)},
                               {"detail", Utf8(result.detail)},
                               {"remedy", Utf8(result.remedy)}});
  return out;
}

json::array ProbesOf(const DoctorReport& report) {
  json::array out;
  for (const auto& trial : report.sandboxes)
    for (const auto& [name, status, detail] : trial.probes)
      out.push_back(json::object{{"name", name},
                                 {"profile", NameOf(trial.profile)},
                                 {"status", NameOf(status)},
                                 {"detail", Utf8(detail)}});
  return out;
}

json::object Isolation(const DoctorReport& report) {
  json::object host, out;
  for (const auto& fact : report.facts) host[fact.name] = Utf8(fact.value);
  out["host"] = std::move(host);
  for (const auto& trial : report.sandboxes) {
    json::object facts;
    for (const auto& fact : trial.report.isolation) facts[fact.name] = Utf8(fact.value);
    json::array limits;
    for (const auto& limit : trial.report.limits)
      limits.push_back(json::object{{"name", limit.name},
                                    {"enforced", limit.enforced},
                                    {"value", limit.value},
                                    {"by", Utf8(limit.by)},
                                    {"reason", Utf8(limit.reason)}});
    out[NameOf(trial.profile)] = json::object{{"level", trial.report.level},
                                              {"facts", std::move(facts)},
                                              {"limits", std::move(limits)},
                                              {"error", Utf8(trial.error)},
                                              {"remedy", Utf8(trial.remedy)}};
  }
  return out;
}

json::object Timing(const DoctorReport& report) {
  json::object out{{"total_us", report.total.count()},
                   {"checks_us", report.checking.count()},
                   {"launcher_start_us", report.launcher_start.count()}};
  for (const auto& trial : report.sandboxes)
    out[NameOf(trial.profile)] = json::object{{"create_us", trial.create.count()},
                                              {"first_exec_us", trial.first_exec.count()},
                                              {"probes_us", trial.probing.count()},
                                              {"destroy_us", trial.destroy.count()}};
  return out;
}

}  // namespace

std::string ToJson(const DoctorReport& report) {
  const json::object all{{"summary", Summary(report)},
                         {"checks", Checks(report)},
                         {"probes", ProbesOf(report)},
                         {"isolation", Isolation(report)},
                         {"timing", Timing(report)}};
  return json::serialize(all) + "\n";
}

}  // namespace caisson::native
