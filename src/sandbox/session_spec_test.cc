#include "sandbox/session_spec.h"

#include <gtest/gtest.h>

#include "sandbox/ids.h"
#include "sandbox/session_spec_json.h"

namespace caisson::sandbox {
namespace {

using namespace std::chrono_literals;

TEST(SessionSpec, TheDigestSeesEveryFieldButKeyAndQueue) {
  const SessionSpec plain;
  const std::vector<SessionSpec> others = {
      {.environment = "x"},
      {.provider = "p"},
      {.profile = Profile::kStrict},
      {.user = "u"},
      {.limits = {.memory_bytes = 1}},
      {.limits = {.swap_bytes = 1}},
      {.limits = {.wall_time = 1ms}},
      {.env = {{"a", "b"}}},
      {.metadata = {{"a", "b"}}},
      {.labels = {{"a", "b"}}},
      {.name = "n"},
      {.timeout = 5s},
      {.artifacts = {"a"}},
      {.scaling = {.memory_floor = 1, .memory_ceiling = 2}},
      {.warm = WarmUse::kNever},
      {.min_isolation = IsolationLevel::kNamespaces},
  };
  for (size_t i = 0; i < others.size(); ++i) {
    EXPECT_NE(DigestOf(others[i]), DigestOf(plain)) << i;
    for (size_t j = 0; j < i; ++j) EXPECT_NE(DigestOf(others[i]), DigestOf(others[j])) << i << j;
  }
  EXPECT_EQ(DigestOf({.queue = 1s, .idempotency_key = "k"}), DigestOf(plain));
}

TEST(SessionSpec, LimitsComeFromTheProfileWhereNothingIsAskedFor) {
  const DefaultLimits limits =
      EffectiveLimits({.profile = Profile::kStrict, .limits = {.cpu_millis = 100}});
  EXPECT_EQ(limits.memory_bytes, kStrictLimits.memory_bytes);
  EXPECT_EQ(limits.cpu_millis, 100u);
  EXPECT_EQ(limits.wall_time, 5s);
}

TEST(SessionSpec, JsonOfAnEarlierVersionReadsWithDefaults) {
  const auto spec = SpecFromJson(R"({"environment":"host"})");
  ASSERT_TRUE(spec) << spec.error().message();
  EXPECT_EQ(DigestOf(*spec), DigestOf({}));
  EXPECT_FALSE(SpecFromJson("[]"));
  EXPECT_FALSE(SpecFromJson("{\"env"));
  EXPECT_FALSE(SpecFromJson(R"({"profile":"none"})"));
}

TEST(Ids, AreLongAndNeverTheSame) {
  const std::string id = NewId();
  EXPECT_EQ(id.size(), 32u);
  EXPECT_TRUE(LooksLikeId(id));
  EXPECT_NE(id, NewId());
  for (const char* bad : {"", "short", "UPPERCASE1", "../../etc", "a/b/c/d/e/f"})
    EXPECT_FALSE(LooksLikeId(bad)) << bad;
}

}  // namespace
}  // namespace caisson::sandbox
