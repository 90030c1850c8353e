#include "providers/native/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>

namespace caisson::native {
namespace {

using sandbox::ExecOutcome;
using sandbox::OutcomeStatus;
using testing::HasSubstr;

ExecOutcome Exited(int code) { return {.status = OutcomeStatus::kExited, .exit_code = code}; }
ExecOutcome Ended(OutcomeStatus status) { return {.status = status}; }
ProbeStatus StatusOf(const Probe& probe, const ExecOutcome& outcome, std::string_view out,
                     std::string_view err = "") {
  return Judge(probe, outcome, out, err).status;
}

TEST(Judge, ARefusalIsAnExitCodeOfTheCommand) {
  const Probe probe{"p", "x", Expect::kRefused};
  EXPECT_EQ(StatusOf(probe, Exited(1), ""), ProbeStatus::kHeld);
  EXPECT_EQ(StatusOf(probe, Exited(0), ""), ProbeStatus::kBroken);
  EXPECT_EQ(StatusOf(probe, Ended(OutcomeStatus::kTimeout), ""), ProbeStatus::kBroken);
}

TEST(Judge, AMissingProgramProvesNothing) {
  for (const auto expect : {Expect::kRefused, Expect::kPrints, Expect::kErrno}) {
    const auto line = Judge({"p", "x", expect, "1"}, Exited(127), "1", "sh: 1: perl: not found\n");
    EXPECT_EQ(line.status, ProbeStatus::kSkipped);
    EXPECT_THAT(line.detail, HasSubstr("perl: not found"));
  }
}

TEST(Judge, OutputIsComparedWhole) {
  const Probe probe{"p", "x", Expect::kPrints, "."};
  EXPECT_EQ(StatusOf(probe, Exited(0), ".\n"), ProbeStatus::kHeld);
  EXPECT_EQ(StatusOf(probe, Exited(0), "secret.\n"), ProbeStatus::kBroken);
  EXPECT_EQ(StatusOf(probe, Exited(1), ".\n"), ProbeStatus::kBroken);
  EXPECT_THAT(Judge(probe, Exited(0), "secret\n.\n", "").detail, HasSubstr("secret"));
}

TEST(Judge, AnErrnoMustBeARefusal) {
  const Probe probe{"p", "x", Expect::kErrno};
  for (const char* refused : {"1", "13", "38"})
    EXPECT_EQ(StatusOf(probe, Exited(0), refused), ProbeStatus::kHeld) << refused;
  for (const char* reached : {"0", "2", "14", "22", ""})
    EXPECT_EQ(StatusOf(probe, Exited(0), reached), ProbeStatus::kBroken) << reached;
  EXPECT_EQ(StatusOf({"p", "x", Expect::kErrno, "101"}, Exited(0), "101"), ProbeStatus::kHeld);
}

TEST(Judge, AnOutcomeIsTheKernels) {
  const Probe probe{"p", "x", Expect::kOutcome, "", OutcomeStatus::kOutOfMemory};
  EXPECT_EQ(StatusOf(probe, Ended(OutcomeStatus::kOutOfMemory), ""), ProbeStatus::kHeld);
  EXPECT_EQ(StatusOf(probe, Exited(1), ""), ProbeStatus::kBroken);
}

TEST(Probes, HaveNamesOfTheirOwnAndApplySomewhere) {
  std::set<std::string_view> names;
  for (const auto& probe : Probes()) {
    EXPECT_TRUE(names.insert(probe.name).second) << probe.name;
    EXPECT_NE(probe.profiles & 3, 0u) << probe.name;
    if (probe.expect == Expect::kPrints) EXPECT_FALSE(probe.text.empty()) << probe.name;
  }
  EXPECT_GE(names.size(), 30u);
}

DoctorReport SampleReport() {
  DoctorReport report;
  report.kernel = "6.8.0";
  report.mode = "root";
  report.checks = {{"kernel", "version", {CheckStatus::kOk, "6.8.0", ""}},
                   {"sysctls", "x", {CheckStatus::kWeaker, "bad \xff byte", "sysctl -w x=1"}}};
  report.facts = {{"mode", "root"}};
  SandboxTrial trial;
  trial.create = std::chrono::microseconds(2500);
  trial.probes = {{"commands run", ProbeStatus::kHeld, ""},
                  {"bpf is closed", ProbeStatus::kSkipped, "no perl"}};
  report.sandboxes.push_back(trial);
  return report;
}

TEST(DoctorReport, WorksWhileNothingFailedOrBroke) {
  EXPECT_TRUE(SampleReport().Works());
  auto failed = SampleReport();
  failed.checks[0].result.status = CheckStatus::kFailed;
  EXPECT_FALSE(failed.Works());
  auto broken = SampleReport();
  broken.sandboxes[0].probes[0].status = ProbeStatus::kBroken;
  EXPECT_FALSE(broken.Works());
  auto unmade = SampleReport();
  unmade.sandboxes[0].error = "no";
  EXPECT_FALSE(unmade.Works());
  auto untried = SampleReport();
  untried.sandboxes[0].probes.clear();
  EXPECT_FALSE(untried.Works());
}

TEST(DoctorReport, AsJsonSaysAllOfIt) {
  const auto json = boost::json::parse(ToJson(SampleReport())).as_object();
  EXPECT_TRUE(json.at("summary").at("works").as_bool());
  EXPECT_EQ(json.at("summary").at("checks").at("weaker").to_number<int>(), 1);
  EXPECT_EQ(json.at("checks").at(1).at("remedy").as_string(), "sysctl -w x=1");
  EXPECT_EQ(json.at("checks").at(1).at("detail").as_string(), "bad ? byte");
  EXPECT_EQ(json.at("probes").at(1).at("status").as_string(), "skipped");
  EXPECT_EQ(json.at("probes").at(0).at("profile").as_string(), "default");
  EXPECT_EQ(json.at("isolation").at("host").at("mode").as_string(), "root");
  EXPECT_EQ(json.at("timing").at("default").at("create_us").to_number<int>(), 2500);
}

}  // namespace
}  // namespace caisson::native
