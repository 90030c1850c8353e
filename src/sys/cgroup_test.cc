// CgroupTree and Cgroup on fake hosts: layouts, refusals, spelling and order. What the kernel then
// does with it is in cgroup_kernel_test.cc.
#include "sys/cgroup.h"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include <set>

#include "sys/cgroup_internal.h"
#include "sys/fake_cgroup_fs.h"

namespace caisson::sys {
namespace {

using namespace std::chrono_literals;

constexpr pid_t kNobody = 4'194'305;  // above the highest pid there can be

constexpr CgroupLimits kDefaults = {
    .memory_bytes = 512 << 20, .swap_bytes = 0, .cpu_millis = 500, .pids = 256};

std::unique_ptr<CgroupTree> Open(const FakeCgroupFs& fake) {
  auto tree = CgroupTree::Open(fake.host(), {.instance = "t"});
  EXPECT_TRUE(tree);
  return *std::move(tree);
}

void MountAllV1(FakeCgroupFs& fake) {
  fake.MountV1("memory", "/svc");
  fake.MountV1("cpu,cpuacct");
  for (const char* name : {"pids", "freezer", "devices", "blkio"}) fake.MountV1(name);
}

const LimitReport* Find(const std::vector<LimitReport>& reports, std::string_view name) {
  for (const auto& report : reports)
    if (report.name == name) return &report;
  return nullptr;
}

TEST(CgroupLayoutTest, V1UsesOneDirectoryPerHierarchyBelowTheCallersOwn) {
  FakeCgroupFs fake;
  MountAllV1(fake);
  auto tree = Open(fake);
  EXPECT_EQ(tree->layout(), CgroupLayout::kV1);
  for (const auto& report : tree->controllers()) EXPECT_TRUE(report.works) << report.reason;
  auto group = tree->Create("a");
  ASSERT_TRUE(group);
  EXPECT_EQ(group->dir_fd(), -1);
  EXPECT_TRUE(fake.Exists("cg/memory/svc/caisson-t/a"));
  EXPECT_TRUE(fake.Exists("cg/cpu,cpuacct/caisson-t/a"));
  EXPECT_TRUE(fake.Exists("cg/pids/caisson-t/a"));
  EXPECT_TRUE(fake.Exists("cg/freezer/caisson-t/a"));
  EXPECT_FALSE(fake.Exists("cg/blkio/caisson-t/a"));    // joined only for an I/O rate
  EXPECT_FALSE(fake.Exists("cg/devices/caisson-t/a"));  // one list for all
  EXPECT_EQ(fake.Get("cg/devices/caisson-t/devices.deny"), "a");
}

TEST(CgroupLayoutTest, V2ServesEverythingFromOneDirectory) {
  FakeCgroupFs fake;
  fake.MountV2("cpu io memory pids", "/svc");
  auto tree = Open(fake);
  EXPECT_EQ(tree->layout(), CgroupLayout::kV2);
  for (const auto controller : {Controller::kMemory, Controller::kCpu, Controller::kPids,
                                Controller::kIo, Controller::kFreezer, Controller::kCpuAcct})
    EXPECT_TRUE(tree->report(controller).works) << NameOf(controller);
  // There is no kernel to take the BPF program, and that is said.
  EXPECT_FALSE(tree->report(Controller::kDevices).works);
  EXPECT_NE(tree->report(Controller::kDevices).remedy.find("nodev"), std::string::npos);
  auto group = tree->Create("a");
  ASSERT_TRUE(group);
  EXPECT_GE(group->dir_fd(), 0);
  EXPECT_TRUE(fake.Exists("cg/unified/svc/caisson-t/a"));
}

TEST(CgroupLayoutTest, HybridTakesLimitsFromV1AndTheRestFromV2) {
  FakeCgroupFs fake;
  MountAllV1(fake);
  fake.MountV2("");
  auto tree = Open(fake);
  EXPECT_EQ(tree->layout(), CgroupLayout::kHybrid);
  EXPECT_NE(tree->report(Controller::kMemory).by.find("v1"), std::string::npos);
  EXPECT_EQ(tree->report(Controller::kFreezer).by, "cgroup v2 cgroup.freeze");
  auto group = tree->Create("a");
  ASSERT_TRUE(group);
  EXPECT_TRUE(fake.Exists("cg/unified/caisson-t/a"));
  EXPECT_FALSE(fake.Exists("cg/freezer/caisson-t"));
  ASSERT_TRUE(group->AttachCloned(kNobody));
  EXPECT_EQ(fake.Get("cg/memory/svc/caisson-t/a/cgroup.procs"), "4194305");
  EXPECT_EQ(fake.Get("cg/unified/caisson-t/a/cgroup.procs"), "");
  for (const char* dir : {"memory/svc", "cpu,cpuacct", "pids"})
    fake.Put(std::string("cg/") + dir + "/caisson-t/a/cgroup.procs", "");
}

TEST(CgroupLayoutTest, WithoutCgroupsEveryLimitIsRefusedWithReasonAndRemedy) {
  FakeCgroupFs fake;
  auto tree = Open(fake);
  EXPECT_EQ(tree->layout(), CgroupLayout::kNone);
  EXPECT_FALSE(tree->tracks_processes());
  auto group = tree->Create("a");
  ASSERT_TRUE(group);
  const auto applied = group->ApplyLimits(kDefaults);
  ASSERT_FALSE(applied);
  EXPECT_EQ(applied.error().code(), ErrorCode::kLimitRefused);
  EXPECT_FALSE(applied.error().remedy().empty());
  for (const auto& report : tree->Check(kDefaults)) {
    if (report.name == "swap") continue;  // the fake host has none to use
    EXPECT_FALSE(report.enforced) << report.name;
    EXPECT_FALSE(report.reason.empty()) << report.name;
    EXPECT_FALSE(report.remedy.empty()) << report.name;
  }
  EXPECT_EQ(group->KillAll(1ms).error().code(), ErrorCode::kUnsupported);
  EXPECT_EQ(group->Freeze(1ms).error().code(), ErrorCode::kUnsupported);
  EXPECT_TRUE(group->Attach(kNobody));
}

TEST(CgroupLayoutTest, AMissingControllerIsExplainedByWhatTheKernelSays) {
  FakeCgroupFs fake;
  fake.MountV1("memory");
  fake.Put("proc/cgroups",
           "#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t0\t1\t0\n"
           "pids\t0\t1\t1\n");
  auto tree = Open(fake);
  EXPECT_NE(tree->report(Controller::kCpu).reason.find("disabled"), std::string::npos);
  EXPECT_NE(tree->report(Controller::kPids).reason.find("no mounted"), std::string::npos);
  EXPECT_NE(tree->report(Controller::kIo).reason.find("kernel has no io"), std::string::npos);
  auto group = tree->Create("a");
  const auto applied = group->ApplyLimits({.memory_bytes = 64 << 20, .pids = 5});
  EXPECT_EQ(applied.error().code(), ErrorCode::kLimitRefused);
  // Nothing was written before the refusal.
  EXPECT_EQ(fake.Get("cg/memory/caisson-t/a/memory.limit_in_bytes"), "9223372036854771712");
}

TEST(CgroupLayoutTest, AReadOnlyOrMisplacedMountIsSaidAndNotUsed) {
  FakeCgroupFs fake;
  fake.MountV1("memory", "/", "ro");
  fake.MountV1("pids", "/../outside");
  auto tree = Open(fake);
  EXPECT_EQ(tree->layout(), CgroupLayout::kNone);
  EXPECT_NE(tree->report(Controller::kMemory).reason.find("read-only"), std::string::npos);
  EXPECT_NE(tree->report(Controller::kPids).reason.find("namespace"), std::string::npos);
}

TEST(CgroupLayoutTest, ADirectoryThatMayNotBeMadeIsSaid) {
  FakeCgroupFs fake;
  fake.MountV1("memory");
  CgroupHost host = fake.host();
  host.make_dir = +[](int, const char*) { return EACCES; };
  auto tree = CgroupTree::Open(host, {.instance = "t"});
  ASSERT_TRUE(tree);
  EXPECT_EQ((*tree)->layout(), CgroupLayout::kNone);
  EXPECT_NE((*tree)->report(Controller::kMemory).reason.find("Permission denied"),
            std::string::npos);
  EXPECT_NE((*tree)->report(Controller::kMemory).remedy.find("Delegate=yes"), std::string::npos);
}

TEST(CgroupLayoutTest, ABindMountedPartOfAHierarchyIsFound) {
  FakeCgroupFs fake;
  fake.MountV1("memory");
  fake.Put("proc/self/mountinfo", "30 22 0:30 /docker/x\\040y " + fake.Path("cg/memory").string() +
                                      " rw - cgroup cgroup rw,memory\n");
  fake.Put("proc/self/cgroup", "4:memory:/docker/x y\n");
  EXPECT_EQ(Open(fake)->layout(), CgroupLayout::kV1);
  fake.Put("proc/self/cgroup", "4:memory:/docker/x yz\n");
  EXPECT_EQ(Open(fake)->layout(), CgroupLayout::kNone);
}

TEST(CgroupLayoutTest, AfterARestartTheLaunchersLeafIsNotNestedDeeper) {
  FakeCgroupFs fake;
  fake.MountV2("cpu io memory pids", "/svc/caisson.launcher-old");
  fake.Put("cg/unified/svc/cgroup.controllers", "cpu io memory pids");
  fake.Put("cg/unified/svc/cgroup.subtree_control", "cpu io memory pids");
  fake.Put("cg/unified/svc/cgroup.procs", "");
  auto tree = Open(fake);
  EXPECT_TRUE(fake.Exists("cg/unified/svc/caisson-t"));
}

TEST(CgroupLayoutTest, ControllersThatV2KeepsBackAreRefusedWithTheReason) {
  FakeCgroupFs fake;
  fake.MountV2("memory", "/svc");
  auto tree = Open(fake);
  EXPECT_TRUE(tree->report(Controller::kMemory).works);
  EXPECT_FALSE(tree->report(Controller::kPids).works);
  EXPECT_FALSE(tree->report(Controller::kPids).reason.empty());
}

TEST(CgroupNameTest, NamesThatCouldLeaveTheTreeAreRefused) {
  FakeCgroupFs fake;
  MountAllV1(fake);
  for (const std::string& name : {std::string(), std::string(".."), std::string("a/b"),
                                  std::string("a b"), std::string("%s/"), std::string(41, 'a')})
    EXPECT_FALSE(CgroupTree::Open(fake.host(), {.instance = name})) << name;
  auto tree = Open(fake);
  for (const std::string& name :
       {std::string(), std::string(".."), std::string(".a"), std::string("a/b"), std::string("\n"),
        std::string(65, 'a'), std::string("a\0b", 3)})
    EXPECT_EQ(tree->Create(name).error().code(), ErrorCode::kInvalidArgument) << name;
}

TEST(CgroupNameTest, ATakenNameIsAConflictAndLeavesTheOtherAlone) {
  FakeCgroupFs fake;
  MountAllV1(fake);
  auto tree = Open(fake);
  auto first = tree->Create("a");
  ASSERT_TRUE(first);
  EXPECT_EQ(tree->Create("a").error().code(), ErrorCode::kConflict);
  EXPECT_TRUE(fake.Exists("cg/memory/svc/caisson-t/a"));
}

TEST(CgroupNameTest, ACreationThatFailsHalfWayLeavesNothing) {
  FakeCgroupFs fake;
  MountAllV1(fake);
  auto tree = Open(fake);
  std::filesystem::create_directory(fake.Path("cg/freezer/caisson-t/a"));
  EXPECT_FALSE(tree->Create("a"));
  EXPECT_FALSE(fake.Exists("cg/memory/svc/caisson-t/a"));
  EXPECT_FALSE(fake.Exists("cg/pids/caisson-t/a"));
  EXPECT_TRUE(fake.Exists("cg/freezer/caisson-t/a"));
  std::filesystem::remove(fake.Path("cg/freezer/caisson-t/a"));
}

TEST(CgroupNameTest, ATreeLeavesNothingBehind) {
  FakeCgroupFs fake;
  MountAllV1(fake);
  {
    auto tree = Open(fake);
    auto group = tree->Create("a");
    Cgroup moved = *std::move(group);
  }
  for (const char* dir : {"memory/svc", "cpu,cpuacct", "pids", "freezer", "devices", "blkio"})
    EXPECT_FALSE(fake.Exists(std::string("cg/") + dir + "/caisson-t")) << dir;
}

TEST(CgroupLimitTest, V1SpellsTheDefaultsAndReadsThemBack) {
  FakeCgroupFs fake;
  MountAllV1(fake);
  auto tree = Open(fake);
  auto group = tree->Create("a");
  const auto applied = group->ApplyLimits(kDefaults);
  ASSERT_TRUE(applied) << applied.error().message();
  EXPECT_EQ(fake.Get("cg/memory/svc/caisson-t/a/memory.limit_in_bytes"), "536870912");
  EXPECT_EQ(fake.Get("cg/memory/svc/caisson-t/a/memory.memsw.limit_in_bytes"), "536870912");
  EXPECT_EQ(fake.Get("cg/cpu,cpuacct/caisson-t/a/cpu.cfs_quota_us"), "50000");
  EXPECT_EQ(fake.Get("cg/pids/caisson-t/a/pids.max"), "256");
  ASSERT_EQ(applied->size(), 4u);
  for (const auto& report : *applied) EXPECT_TRUE(report.enforced);
  EXPECT_EQ(Find(*applied, "memory")->value, 536870912u);
  EXPECT_EQ(Find(*applied, "memory")->by, "cgroup v1 memory.limit_in_bytes");
  EXPECT_EQ(Find(*applied, "swap")->value, 0u);
  EXPECT_EQ(Find(*applied, "cpu")->value, 500u);
  EXPECT_EQ(Find(*applied, "pids")->value, 256u);
}

TEST(CgroupLimitTest, V2SpellsTheDefaultsAndReadsThemBack) {
  FakeCgroupFs fake;
  fake.MountV2("cpu io memory pids", "/svc");
  auto tree = Open(fake);
  auto group = tree->Create("a");
  CgroupLimits limits = kDefaults;
  limits.cpu_weight = 250;
  const auto applied = group->ApplyLimits(limits);
  ASSERT_TRUE(applied) << applied.error().message();
  EXPECT_EQ(fake.Get("cg/unified/svc/caisson-t/a/memory.max"), "536870912");
  EXPECT_EQ(fake.Get("cg/unified/svc/caisson-t/a/memory.swap.max"), "0");
  EXPECT_EQ(fake.Get("cg/unified/svc/caisson-t/a/cpu.max"), "50000 100000");
  EXPECT_EQ(fake.Get("cg/unified/svc/caisson-t/a/cpu.weight"), "250");
  EXPECT_EQ(fake.Get("cg/unified/svc/caisson-t/a/pids.max"), "256");
  EXPECT_EQ(Find(*applied, "cpu_weight")->value, 250u);
  EXPECT_EQ(Find(*applied, "swap")->by, "cgroup v2 memory.swap.max");
  ASSERT_TRUE(group->Update({.memory_bytes = kNoLimit, .cpu_millis = kNoLimit32}));
  EXPECT_EQ(fake.Get("cg/unified/svc/caisson-t/a/memory.max"), "max");
  EXPECT_EQ(fake.Get("cg/unified/svc/caisson-t/a/cpu.max"), "max 100000");
  EXPECT_EQ(fake.Get("cg/unified/svc/caisson-t/a/pids.max"), "256");
}

TEST(CgroupLimitTest, ASmallShareOfACoreTakesALongerPeriod) {
  FakeCgroupFs fake;
  fake.MountV1("cpu");
  auto tree = Open(fake);
  auto group = tree->Create("a");
  const auto applied = group->ApplyLimits({.cpu_millis = 1});
  ASSERT_TRUE(applied);
  EXPECT_EQ(applied->front().value, 1u);
  EXPECT_EQ(fake.Get("cg/cpu/caisson-t/a/cpu.cfs_quota_us"), "1000");
  EXPECT_EQ(fake.Get("cg/cpu/caisson-t/a/cpu.cfs_period_us"), "1000000");
  ASSERT_TRUE(group->Update({.cpu_millis = 2500}));
  EXPECT_EQ(fake.Get("cg/cpu/caisson-t/a/cpu.cfs_quota_us"), "250000");
  EXPECT_EQ(fake.Get("cg/cpu/caisson-t/a/cpu.cfs_period_us"), "100000");
}

TEST(CgroupLimitTest, ImpossibleValuesAreRefusedWithTheRange) {
  FakeCgroupFs fake;
  MountAllV1(fake);
  auto tree = Open(fake);
  auto group = tree->Create("a");
  for (const CgroupLimits& limits :
       {CgroupLimits{.memory_bytes = 0}, CgroupLimits{.memory_bytes = 4096},
        CgroupLimits{.cpu_millis = 0}, CgroupLimits{.cpu_millis = 8'192'001},
        CgroupLimits{.cpu_weight = 0}, CgroupLimits{.cpu_weight = 10'001}, CgroupLimits{.pids = 0},
        CgroupLimits{.pids = 4'194'305},
        CgroupLimits{.io = IoRate{.read_bps = 0}, .io_device = makedev(8, 0)},
        CgroupLimits{.swap_bytes = 0}}) {  // v1: not without a memory limit
    const auto applied = group->ApplyLimits(limits);
    ASSERT_FALSE(applied);
    EXPECT_EQ(applied.error().code(), ErrorCode::kLimitRefused);
    EXPECT_FALSE(applied.error().remedy().empty());
  }
}

TEST(CgroupLimitTest, SwapThatIsNotCountedIsRefusedUnlessTheHostHasNone) {
  FakeCgroupFs fake;
  FakeCgroupFs::absent_files() = {"memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes"};
  fake.MountV1("memory");
  fake.Put("proc/swaps", "Filename\tType\n/dev/sda2 partition 1 0 -2\n");
  auto tree = Open(fake);
  auto group = tree->Create("a");
  const CgroupLimits limits = {.memory_bytes = 64 << 20, .swap_bytes = 0};
  const auto refused = group->ApplyLimits(limits);
  EXPECT_EQ(refused.error().code(), ErrorCode::kLimitRefused);
  EXPECT_NE(refused.error().remedy().find("swapoff"), std::string::npos);
  fake.Put("proc/swaps", "Filename\tType\n");
  const auto applied = group->ApplyLimits(limits);
  ASSERT_TRUE(applied);
  EXPECT_EQ(Find(*applied, "swap")->by, "host has no swap");
}

TEST(CgroupLimitTest, RaisingMemoryOnV1KeepsTheSwapThatWasGranted) {
  FakeCgroupFs fake;
  fake.MountV1("memory");
  auto tree = Open(fake);
  auto group = tree->Create("a");
  ASSERT_TRUE(group->ApplyLimits({.memory_bytes = 100 << 20, .swap_bytes = 10 << 20}));
  ASSERT_TRUE(group->Update({.memory_bytes = 200 << 20}));
  EXPECT_EQ(fake.Get("cg/memory/caisson-t/a/memory.memsw.limit_in_bytes"),
            std::to_string(210 << 20));
  const auto lowered = group->Update({.memory_bytes = 50 << 20});
  ASSERT_TRUE(lowered);
  EXPECT_EQ(fake.Get("cg/memory/caisson-t/a/memory.memsw.limit_in_bytes"),
            std::to_string(60 << 20));
}

TEST(CgroupLimitTest, AFailureHalfWayPutsTheFormerLimitsBack) {
  FakeCgroupFs fake;
  MountAllV1(fake);
  auto tree = Open(fake);
  auto group = tree->Create("a");
  ASSERT_TRUE(group->ApplyLimits(kDefaults));
  std::filesystem::remove(fake.Path("cg/pids/caisson-t/a/pids.max"));
  EXPECT_FALSE(group->Update({.memory_bytes = 64 << 20, .cpu_millis = 100, .pids = 10}));
  EXPECT_EQ(fake.Get("cg/memory/svc/caisson-t/a/memory.limit_in_bytes"), "536870912");
  EXPECT_EQ(fake.Get("cg/cpu,cpuacct/caisson-t/a/cpu.cfs_quota_us"), "50000");
  EXPECT_EQ(group->limits().memory_bytes, 512u << 20);
}

TEST(CgroupLimitTest, V2MemoryBelowWhatIsInUseIsAConflictAndNothingIsWritten) {
  FakeCgroupFs fake;
  fake.MountV2("memory");
  auto tree = Open(fake);
  auto group = tree->Create("a");
  ASSERT_TRUE(group->ApplyLimits({.memory_bytes = 512 << 20}));
  fake.Put("cg/unified/caisson-t/a/memory.current", std::to_string(300 << 20) + "\n");
  const auto lowered = group->Update({.memory_bytes = 200 << 20});
  ASSERT_FALSE(lowered);
  EXPECT_EQ(lowered.error().code(), ErrorCode::kConflict);
  EXPECT_EQ(fake.Get("cg/unified/caisson-t/a/memory.max"), std::to_string(512 << 20));
  EXPECT_EQ(fake.Get("cg/unified/caisson-t/a/memory.high"), "max");
}

TEST(CgroupLimitTest, AnIoRateJoinsBlkioLateAndNamesTheWholeDisk) {
  FakeCgroupFs fake;
  MountAllV1(fake);
  auto tree = Open(fake);
  auto group = tree->Create("a");
  const auto applied = group->ApplyLimits(
      {.io = IoRate{.read_bps = 1 << 20, .write_iops = 100}, .io_device = makedev(8, 1)});
  ASSERT_TRUE(applied) << applied.error().message();
  EXPECT_EQ(fake.Get("cg/blkio/caisson-t/a/blkio.throttle.read_bps_device"), "8:0 1048576");
  EXPECT_EQ(fake.Get("cg/blkio/caisson-t/a/blkio.throttle.write_iops_device"), "8:0 100");
  EXPECT_EQ(fake.Get("cg/blkio/caisson-t/a/blkio.throttle.write_bps_device"), "");
  EXPECT_EQ(Find(*applied, "io_read_bps")->value, 1u << 20);
  ASSERT_TRUE(group->Recycle());
  EXPECT_FALSE(fake.Exists("cg/blkio/caisson-t/a"));
  const auto tmpfs = group->ApplyLimits({.io = IoRate{.read_bps = 1}, .io_device = makedev(0, 40)});
  EXPECT_EQ(tmpfs.error().code(), ErrorCode::kLimitRefused);
}

TEST(CgroupLimitTest, V2IoRatesAreOneLine) {
  FakeCgroupFs fake;
  fake.MountV2("cpu io memory pids");
  auto tree = Open(fake);
  auto group = tree->Create("a");
  const auto applied = group->ApplyLimits(
      {.io = IoRate{.read_bps = 1 << 20, .write_bps = kNoLimit}, .io_device = makedev(8, 0)});
  ASSERT_TRUE(applied) << applied.error().message();
  EXPECT_EQ(fake.Get("cg/unified/caisson-t/a/io.max"), "8:0 rbps=1048576 wbps=max");
  EXPECT_EQ(Find(*applied, "io_read_bps")->value, 1u << 20);
  EXPECT_EQ(Find(*applied, "io_write_bps")->value, kNoLimit);
}

TEST(CgroupRecycleTest, ARecycledGroupStartsFromZeroWithoutLimits) {
  FakeCgroupFs fake;
  MountAllV1(fake);
  auto tree = Open(fake);
  auto group = tree->Create("a");
  ASSERT_TRUE(group->ApplyLimits(kDefaults));
  fake.Put("cg/memory/svc/caisson-t/a/memory.oom_control", "oom_kill 3\n");
  fake.Put("cg/cpu,cpuacct/caisson-t/a/cpuacct.usage_user", "5000000\n");
  fake.Put("cg/pids/caisson-t/a/pids.events", "max 7\n");
  EXPECT_EQ(group->Stats().oom_kills, 3u);
  EXPECT_EQ(group->Stats().cpu_usage_us, 5000u);
  ASSERT_TRUE(group->Recycle());
  EXPECT_EQ(group->Stats().oom_kills, 0u);
  EXPECT_EQ(group->Stats().cpu_usage_us, 0u);
  EXPECT_EQ(group->Stats().pids_limit_hits, 0u);
  EXPECT_EQ(fake.Get("cg/memory/svc/caisson-t/a/memory.limit_in_bytes"), "-1");
  EXPECT_EQ(fake.Get("cg/cpu,cpuacct/caisson-t/a/cpu.cfs_quota_us"), "-1");
  EXPECT_EQ(fake.Get("cg/pids/caisson-t/a/pids.max"), "max");
  fake.Put("cg/pids/caisson-t/a/pids.events", "max 9\n");
  EXPECT_EQ(group->Stats().pids_limit_hits, 2u);
}

TEST(CgroupRecycleTest, AGroupForALifeUnderTheSameLimitsKeepsThem) {
  FakeCgroupFs fake;
  MountAllV1(fake);
  auto tree = Open(fake);
  auto group = tree->Create("a");
  ASSERT_TRUE(group->ApplyLimits(kDefaults));
  const std::string limit = fake.Get("cg/memory/svc/caisson-t/a/memory.limit_in_bytes");
  const std::string quota = fake.Get("cg/cpu,cpuacct/caisson-t/a/cpu.cfs_quota_us");
  fake.Put("cg/pids/caisson-t/a/pids.events", "max 7\n");
  ASSERT_TRUE(group->RecycleInForce());
  EXPECT_EQ(group->Stats().pids_limit_hits, 0u);
  EXPECT_EQ(fake.Get("cg/memory/svc/caisson-t/a/memory.limit_in_bytes"), limit);
  EXPECT_EQ(fake.Get("cg/cpu,cpuacct/caisson-t/a/cpu.cfs_quota_us"), quota);
  EXPECT_EQ(group->limits().memory_bytes, kDefaults.memory_bytes);
}

TEST(CgroupRecycleTest, AGroupWithProcessesOrChargedMemoryIsNotHandedOutAgain) {
  FakeCgroupFs fake;
  MountAllV1(fake);
  auto tree = Open(fake);
  auto group = tree->Create("a");
  fake.Put("cg/pids/caisson-t/a/cgroup.procs", "4194305\n");
  EXPECT_EQ(group->Recycle().error().code(), ErrorCode::kConflict);
  fake.Put("cg/pids/caisson-t/a/cgroup.procs", "");
  fake.Put("cg/memory/svc/caisson-t/a/memory.usage_in_bytes", "99999999\n");
  EXPECT_EQ(group->Recycle().error().code(), ErrorCode::kConflict);
  EXPECT_EQ(fake.Get("cg/memory/svc/caisson-t/a/memory.force_empty"), "0");
}

TEST(CgroupRecycleTest, APeakThatTheKernelCannotResetIsNotPassedOff) {
  FakeCgroupFs fake;
  fake.MountV2("memory");
  auto tree = Open(fake);
  auto group = tree->Create("a");
  const std::string peak = "cg/unified/caisson-t/a/memory.peak";
  fake.Put(peak, "900\n");
  EXPECT_EQ(group->Stats().memory_peak, 900u);
  std::filesystem::permissions(fake.Path(peak), std::filesystem::perms::owner_read);
  std::filesystem::remove(fake.Path(peak));  // before 5.19 there is none
  ASSERT_TRUE(group->Recycle());
  fake.Put("cg/unified/caisson-t/a/memory.current", "40\n");
  EXPECT_EQ(group->Stats().memory_peak, 40u);
  EXPECT_FALSE(group->Stats().memory_peak_exact);
}

TEST(CgroupStatsTest, WhatIsNotCountedIsEmpty) {
  FakeCgroupFs fake;
  fake.MountV1("pids");
  auto tree = Open(fake);
  auto group = tree->Create("a");
  const CgroupStats stats = group->Stats();
  EXPECT_EQ(stats.pids_current, 0u);
  EXPECT_FALSE(stats.memory_current);
  EXPECT_FALSE(stats.cpu_usage_us);
  EXPECT_FALSE(stats.io_read_bytes);
  EXPECT_FALSE(stats.memory_stalled_us);
}

TEST(CgroupSweepTest, FindsInstancesAnywhereInEveryHierarchyAndRemovesOnlyTheOneAsked) {
  FakeCgroupFs fake;
  MountAllV1(fake);
  fake.MountV2("");
  for (const char* dir :
       {"memory/other/deep/caisson-dead/s1", "pids/caisson-dead/s1", "unified/caisson-dead/s1",
        "unified/caisson.launcher-dead", "pids/caisson-alive/s1"})
    fake.Put(std::string("cg/") + dir + "/cgroup.procs", "");
  for (const char* dir : {"memory/other/deep/caisson-dead", "pids/caisson-dead",
                          "unified/caisson-dead", "pids/caisson-alive"})
    fake.Put(std::string("cg/") + dir + "/cgroup.procs", "");
  for (const char* group : {"unified/caisson-dead/s1", "unified/caisson-dead"})
    fake.Put(std::string("cg/") + group + "/cgroup.events", "populated 0\n");
  EXPECT_EQ(CgroupTree::ListInstances(fake.host()), (std::vector<std::string>{"alive", "dead"}));
  const auto swept = CgroupTree::SweepInstance(fake.host(), "dead", 200ms);
  EXPECT_TRUE(swept) << swept.error().message();
  EXPECT_EQ(CgroupTree::ListInstances(fake.host()), (std::vector<std::string>{"alive"}));
  EXPECT_TRUE(CgroupTree::SweepInstance(fake.host(), "dead", 200ms));  // again is harmless
}

TEST(CgroupSweepTest, TheLaunchersLeafIsSparedWhileInUse) {
  FakeCgroupFs fake;
  fake.MountV2("");
  for (const char* dir : {"caisson-dead", "caisson-dead/s1"})
    fake.Put(std::string("cg/unified/") + dir + "/cgroup.procs", "");
  fake.Put("cg/unified/caisson.launcher-dead/cgroup.procs", "4194305\n");
  EXPECT_TRUE(CgroupTree::SweepInstance(fake.host(), "dead", 50ms));
  EXPECT_FALSE(fake.Exists("cg/unified/caisson-dead/s1"));
  EXPECT_TRUE(fake.Exists("cg/unified/caisson.launcher-dead"));
}

}  // namespace
}  // namespace caisson::sys
