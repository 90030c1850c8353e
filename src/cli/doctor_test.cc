#include "cli/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "cli/verbs.h"

namespace caisson::cli {
namespace {

using native::CheckStatus;
using native::ProbeStatus;
using testing::HasSubstr;
using testing::Not;

native::DoctorReport SampleReport() {
  native::DoctorReport report;
  report.checks = {
      {"kernel", "version", {CheckStatus::kOk, "6.8.0", ""}},
      {"kernel", "landlock", {CheckStatus::kWeaker, "absent", "boot with lsm=landlock"}},
      {"machine", "clock", {CheckStatus::kOff, "hpet", ""}}};
  native::SandboxTrial trial;
  trial.create = std::chrono::microseconds(2500);
  trial.probes = {{"commands run", ProbeStatus::kHeld, ""},
                  {"bpf is closed", ProbeStatus::kBroken, "exited 0\033[2J"}};
  report.sandboxes.push_back(trial);
  trial.profile = sandbox::Profile::kStrict;
  trial.probes = {{"commands run", ProbeStatus::kHeld, ""}};
  report.sandboxes.push_back(trial);
  return report;
}

TEST(ShowReport, GroupsAlignsAndGivesTheRemedyBelow) {
  const std::string text = ShowReport(SampleReport(), Colour::kNone);
  EXPECT_THAT(text, HasSubstr("kernel\n"
                              "  ok   version   6.8.0\n"
                              "  weak landlock  absent\n"
                              "                 fix: boot with lsm=landlock\n"
                              "\nmachine\n"
                              "  off  clock     hpet\n"));
}

TEST(ShowReport, PlainTextHasNoEscapes) {
  EXPECT_THAT(ShowReport(SampleReport(), Colour::kNone), Not(HasSubstr("\033")));
}

TEST(ShowReport, AGuestCannotMoveTheCursor) {
  EXPECT_THAT(ShowReport(SampleReport(), Colour::kAnsi), Not(HasSubstr("\033[2J")));
}

TEST(ShowReport, ABrokenProbeIsExplainedAndDecides) {
  const std::string text = ShowReport(SampleReport(), Colour::kNone);
  EXPECT_THAT(text, HasSubstr("default: exited 0"));
  EXPECT_THAT(text, HasSubstr("FAIL Sandboxes do not work on this host"));
  EXPECT_THAT(text, HasSubstr("2 held, 1 broken, 0 skipped"));
}

TEST(ShowReport, ColouredMarksAreAsWideAsTheyLook) {
  const std::string text = ShowReport(SampleReport(), Colour::kAnsi);
  EXPECT_THAT(text, HasSubstr("\033[32m✓\033[0m version   6.8.0\n"));
  EXPECT_THAT(text, HasSubstr("\033[33m!\033[0m landlock  absent\n"));
}

TEST(ShowReport, WithoutProbesSaysNothingOfThem) {
  auto report = SampleReport();
  report.sandboxes.clear();
  const std::string text = ShowReport(report, Colour::kNone);
  EXPECT_THAT(text, Not(HasSubstr("Probes")));
  EXPECT_THAT(text, HasSubstr("weak Sandboxes work on this host; some things could be stronger."));
}

TEST(ShowReport, FitsAHundredColumns) {
  auto report = SampleReport();
  std::string words;
  for (int i = 0; i < 60; ++i) words += "word ";
  report.checks[1].result.detail = words;
  report.checks[1].result.remedy = words;
  const std::string text = ShowReport(report, Colour::kNone);
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    EXPECT_LE(DisplayWidth(text.substr(at, end - at)), 100u) << text.substr(at, end - at);
    at = end + 1;
  }
}

}  // namespace
}  // namespace caisson::cli
