// CgroupTree: which hierarchy serves which controller, and what can be enforced with that.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "sys/cgroup.h"
#include "sys/cgroup_internal.h"

namespace caisson::sys {

using internal::BitOf;
using internal::CgroupMount;
using internal::Hierarchy;
using internal::Version;

namespace {

bool IsName(std::string_view name, size_t max, std::string_view extra) {
  if (name.empty() || name.size() > max || name[0] == '.') return false;
  return std::ranges::all_of(name, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           extra.find(c) != std::string_view::npos;
  });
}

// Why no hierarchy serves the controller, as far as the kernel says.
void ExplainAbsence(const CgroupHost& host, const std::vector<CgroupMount>& mounts,
                    ControllerReport& report) {
  const std::string name(NameOf(report.controller));
  for (const CgroupMount& mount : mounts) {
    if ((mount.controllers & BitOf(report.controller)) == 0 || mount.problem.empty()) continue;
    report.reason = mount.problem;
    report.remedy = "give Caisson a writable cgroup file system of its own";
    return;
  }
  const auto text = ReadText(AT_FDCWD, (host.proc + "/cgroups").c_str());
  const std::string v1_name = report.controller == Controller::kIo ? "blkio" : name;
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  while (!rest.empty()) {
    std::string_view line = NextPiece(rest, '\n');
    if (NextPiece(line, '\t') != v1_name) continue;
    if (line.ends_with("\t0")) {
      report.reason = "the kernel was started with the " + name + " controller disabled";
      report.remedy = "remove cgroup_disable=" + v1_name +
                      " from the kernel command line (on some "
                      "boards: add cgroup_enable=" +
                      v1_name + ")";
    } else {
      report.reason = "the " + name + " controller is in no mounted cgroup file system";
      report.remedy = "mount cgroup v2: mount -t cgroup2 none /sys/fs/cgroup";
    }
    return;
  }
  report.reason = "this kernel has no " + name + " controller";
  report.remedy = "use a kernel built with it";
}

}  // namespace

CgroupTree::CgroupTree(CgroupHost host, CgroupOptions options)
    : host_(std::move(host)), options_(std::move(options)) {}

Result<std::unique_ptr<CgroupTree>> CgroupTree::Open(CgroupHost host, CgroupOptions options) {
  if (!IsName(options.instance, 40, "-_")) {
    return Error(ErrorCode::kInvalidArgument, "not a name for an instance's cgroups")
        .WithRemedy("use up to 40 letters, digits, '-' and '_'");
  }
  std::unique_ptr<CgroupTree> tree(new CgroupTree(std::move(host), std::move(options)));
  tree->OpenHierarchies();
  return tree;
}

namespace {

constexpr uint32_t kLimiting = BitOf(Controller::kMemory) | BitOf(Controller::kCpu) |
                               BitOf(Controller::kPids) | BitOf(Controller::kIo);
// What a v2 directory gives without any controller.
constexpr uint32_t kBuiltIntoV2 = BitOf(Controller::kCpuAcct) | BitOf(Controller::kFreezer);

Hierarchy::Use UseOf(uint32_t needed) {
  if (needed == BitOf(Controller::kIo)) return Hierarchy::Use::kIoOnly;
  if (needed == BitOf(Controller::kDevices)) return Hierarchy::Use::kDevicesOnly;
  return Hierarchy::Use::kSandboxes;
}

}  // namespace

// The first reason heard for each controller is the one that is told.
struct CgroupTree::Findings {
  std::vector<CgroupMount> mounts;
  std::string reasons[kControllerCount], remedies[kControllerCount];

  void Note(uint32_t controllers, const std::string& reason, const std::string& remedy) {
    for (int i = 0; i < kControllerCount; ++i) {
      if ((controllers & (1u << i)) == 0 || !reasons[i].empty()) continue;
      reasons[i] = reason;
      remedies[i] = remedy;
    }
  }
};

// v2 first: what it serves needs no v1 hierarchy, and its directory replaces three more.
void CgroupTree::OpenHierarchies() {
  Findings findings;
  findings.mounts = internal::ReadMounts(host_);
  OpenVersion(Version::k2, kLimiting, findings);
  uint32_t needed = kLimiting;
  if (Unified()) {
    needed &= ~Unified()->controllers;
    const auto filter = internal::AttachDeviceFilter(Unified()->instance_fd.get());
    device_filter_ = filter.has_value();
    if (!filter) {
      findings.Note(BitOf(Controller::kDevices), filter.error().message(),
                    "run with CAP_BPF and CAP_NET_ADMIN; until then only the nodev mounts of the "
                    "sandbox keep devices away");
      needed |= BitOf(Controller::kDevices);
    }
  } else {
    needed |= kBuiltIntoV2 | BitOf(Controller::kDevices);
  }
  OpenVersion(Version::k1, needed, findings);
  WriteReports(findings);
}

void CgroupTree::OpenVersion(Version version, uint32_t needed, Findings& findings) {
  for (const CgroupMount& mount : findings.mounts) {
    const uint32_t serves = mount.controllers & needed;
    if (mount.version != version || mount.own_dir.empty()) continue;
    if (version == Version::k1 && serves == 0) continue;
    auto opened = version == Version::k1 ? internal::OpenV1(host_, mount, options_)
                                         : internal::OpenV2(host_, mount, options_);
    if (!opened) {
      const uint32_t lost =
          version == Version::k2 ? serves | kBuiltIntoV2 | BitOf(Controller::kDevices) : serves;
      findings.Note(lost, opened.error().message(), opened.error().remedy());
      continue;
    }
    Hierarchy& hierarchy = **opened;
    if (version == Version::k1) {
      hierarchy.controllers &= needed;
      hierarchy.use = UseOf(serves);
    }
    if (hierarchy.Serves(Controller::kDevices)) {
      const auto listed = internal::ApplyDeviceListV1({hierarchy.instance_fd.get(), "."});
      if (!listed) {
        findings.Note(BitOf(Controller::kDevices), listed.error().message(),
                      "run as root, after a sweep of what an instance of this name left behind");
        hierarchy.controllers &= ~BitOf(Controller::kDevices);
        if (hierarchy.controllers == 0) {
          internal::Close(host_, hierarchy);
          continue;
        }
      }
    }
    findings.Note(serves & ~hierarchy.controllers, hierarchy.problem, hierarchy.remedy);
    hierarchies_.push_back(*std::move(opened));
  }
}

void CgroupTree::WriteReports(const Findings& findings) {
  for (int i = 0; i < kControllerCount; ++i) {
    ControllerReport report = {.controller = static_cast<Controller>(i)};
    const Hierarchy* serving = Serving(report.controller);
    if (serving) {
      report.works = true;
      report.by = serving->version == Version::k1 ? "cgroup v1 at " : "cgroup v2 at ";
      report.by += serving->base;
    } else if (Unified() && (kBuiltIntoV2 & BitOf(report.controller)) != 0) {
      report.works = true;
      report.by = report.controller == Controller::kFreezer ? "cgroup v2 cgroup.freeze"
                                                            : "cgroup v2 cpu.stat";
    } else if (report.controller == Controller::kDevices && device_filter_) {
      report.works = true;
      report.by = "BPF device filter on cgroup v2 at " + Unified()->base;
    } else {
      report.reason = findings.reasons[i];
      report.remedy = findings.remedies[i];
      if (report.reason.empty()) ExplainAbsence(host_, findings.mounts, report);
    }
    reports_.push_back(std::move(report));
  }
}

CgroupTree::~CgroupTree() {
  RetryLeftovers();
  for (const auto& hierarchy : hierarchies_) internal::Close(host_, *hierarchy);
}

CgroupLayout CgroupTree::layout() const {
  bool v1 = false, v2 = false;
  for (const auto& hierarchy : hierarchies_) (hierarchy->version == Version::k1 ? v1 : v2) = true;
  if (v1 && v2) return CgroupLayout::kHybrid;
  return v1 ? CgroupLayout::kV1 : v2 ? CgroupLayout::kV2 : CgroupLayout::kNone;
}

const Hierarchy* CgroupTree::Serving(Controller controller) const {
  for (const auto& hierarchy : hierarchies_)
    if (hierarchy->Serves(controller)) return hierarchy.get();
  return nullptr;
}

const Hierarchy* CgroupTree::Unified() const {
  for (const auto& hierarchy : hierarchies_)
    if (hierarchy->version == Version::k2) return hierarchy.get();
  return nullptr;
}

bool CgroupTree::tracks_processes() const {
  return std::ranges::any_of(
      hierarchies_, [](const auto& one) { return one->use == Hierarchy::Use::kSandboxes; });
}

Result<Cgroup> CgroupTree::Create(std::string_view name) {
  if (!IsName(name, 64, "-_.")) {
    return Error(ErrorCode::kInvalidArgument, "not a name for a sandbox's cgroup")
        .WithRemedy("use up to 64 letters, digits, '-', '_' and '.', not starting with '.'");
  }
  Cgroup group(this, std::string(name));
  std::vector<const Hierarchy*> made;
  const auto fail = [&](const Hierarchy& where, int error) {
    for (const Hierarchy* one : made)
      internal::RemoveDir(host_, one->instance_fd.get(), group.name_.c_str());
    group.tree_ = nullptr;
    auto told =
        Error::FromErrno("cannot make the cgroup " + group.name_ + " below " + where.base, error);
    if (error == EEXIST) return std::move(told).WithCode(ErrorCode::kConflict);
    if (error == ENOSPC || error == ENOMEM || error == EAGAIN || error == EMFILE || error == ENFILE)
      return std::move(told).WithCode(ErrorCode::kResourceExhausted);
    return told;
  };
  made.reserve(hierarchies_.size());
  for (const auto& hierarchy : hierarchies_) {
    if (hierarchy->use != Hierarchy::Use::kSandboxes) continue;
    const int error = internal::MakeDir(host_, hierarchy->instance_fd.get(), group.name_.c_str());
    if (error != 0) return fail(*hierarchy, error);
    made.push_back(hierarchy.get());
    if (hierarchy->version == Version::k1) continue;
    auto fd = TryOpenDir(hierarchy->instance_fd.get(), group.name_.c_str());
    if (!fd) return fail(*hierarchy, errno);
    group.unified_fd_ = *std::move(fd);
  }
  return group;
}

size_t CgroupTree::RetryLeftovers() {
  std::vector<std::string> names;
  names.swap(leftovers_);
  for (std::string& name : names) {
    Cgroup group(this, std::move(name));  // its destructor removes it or puts it back on the list
  }
  return leftovers_.size();
}

std::optional<uint64_t> CgroupTree::CountGroups(const CgroupHost& host, Controller controller) {
  const auto text = ReadText(AT_FDCWD, (host.proc + "/cgroups").c_str());
  if (!text) return std::nullopt;
  const std::string_view name = controller == Controller::kIo ? "blkio" : NameOf(controller);
  std::string_view rest = *text;
  while (!rest.empty()) {  // name, hierarchy, number, enabled
    std::string_view line = NextPiece(rest, '\n');
    if (NextPiece(line, '\t') != name) continue;
    NextPiece(line, '\t');
    return ParseNumber(NextPiece(line, '\t'));
  }
  return std::nullopt;
}

}  // namespace caisson::sys
