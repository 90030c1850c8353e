#include "sys/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <span>

namespace caisson::sys {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kNativeArch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kNativeArch = AUDIT_ARCH_AARCH64;
#else
#error "the system-call policy knows x86_64 and aarch64"
#endif
static_assert(std::endian::native == std::endian::little, "LoadArg reads the low word first");

constexpr uint32_t kAllowCall = SECCOMP_RET_ALLOW;
constexpr uint32_t kSocketTypeMask = 0xf;  // the rest of socket()'s type is flags

constexpr uint32_t Fail(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }

// Assembles a program whose jumps all go forward. The accumulator is the one register that the
// Load functions fill and the branches look at. Returns with the same value share one instruction
// at the end: loading a filter costs the kernel time in proportion to its length.
class Assembler {
 public:
  using Label = size_t;

  Label NewLabel() {
    labels_.push_back(kUnplaced);
    return labels_.size() - 1;
  }
  void Place(Label label) { labels_[label] = code_.size(); }
  Label ReturnOf(uint32_t value) {
    for (const auto& [returned, label] : returns_)
      if (returned == value) return label;
    returns_.push_back({value, NewLabel()});
    return returns_.back().label;
  }

  void LoadNumber() { Load(offsetof(seccomp_data, nr)); }
  void LoadArch() { Load(offsetof(seccomp_data, arch)); }
  // The low 32 bits of an argument.
  void LoadArg(int index) {
    Load(static_cast<uint32_t>(offsetof(seccomp_data, args) + index * sizeof(uint64_t)));
  }
  void And(uint32_t mask) { code_.push_back({BPF_ALU | BPF_AND | BPF_K, mask, kNext, kNext}); }

  // Each goes on with the next instruction if its condition does not hold.
  void GoIfEqual(uint32_t k, Label target) { Branch(BPF_JEQ, k, target, kNext); }
  void GoUnlessEqual(uint32_t k, Label target) { Branch(BPF_JEQ, k, kNext, target); }
  void GoIfAnyBit(uint32_t mask, Label target) { Branch(BPF_JSET, mask, target, kNext); }
  void ReturnIfEqual(uint32_t k, uint32_t value) { GoIfEqual(k, ReturnOf(value)); }
  void ReturnUnlessEqual(uint32_t k, uint32_t value) { GoUnlessEqual(k, ReturnOf(value)); }
  void ReturnIfAnyBit(uint32_t mask, uint32_t value) { GoIfAnyBit(mask, ReturnOf(value)); }
  void Return(uint32_t value) { code_.push_back({BPF_RET | BPF_K, value, kNext, kNext}); }
  // kNext as a target is the instruction after this one.
  void BranchAtLeast(uint32_t k, Label then, Label otherwise) {
    Branch(BPF_JGE, k, then, otherwise);
  }
  static constexpr Label kNext = ~size_t{0};

  std::vector<sock_filter> Finish() {
    for (const auto& [value, label] : returns_) {
      Place(label);
      Return(value);
    }
    std::vector<sock_filter> program;
    for (size_t at = 0; at < code_.size(); ++at) {
      const Instruction& in = code_[at];
      program.push_back({in.op, Distance(at, in.then), Distance(at, in.otherwise), in.k});
    }
    return program;
  }

 private:
  static constexpr size_t kUnplaced = ~size_t{0};
  struct Instruction {
    uint16_t op;
    uint32_t k;
    Label then;
    Label otherwise;
  };
  struct SharedReturn {
    uint32_t value;
    Label label;
  };

  uint8_t Distance(size_t from, Label to) const {
    if (to == kNext) return 0;
    const size_t distance = labels_[to] - from - 1;
    // A jump reaches 255 instructions. Both programs are constant and the tests build them, so a
    // policy that outgrows this does not ship.
    if (distance > 255) std::abort();
    return static_cast<uint8_t>(distance);
  }
  void Load(uint32_t offset) { code_.push_back({BPF_LD | BPF_W | BPF_ABS, offset, kNext, kNext}); }
  void Branch(int condition, uint32_t k, Label then, Label otherwise) {
    code_.push_back({static_cast<uint16_t>(BPF_JMP | condition | BPF_K), k, then, otherwise});
  }

  std::vector<Instruction> code_;
  std::vector<size_t> labels_;  // where each is placed
  std::vector<SharedReturn> returns_;
};

bool IsPlain(SyscallRule rule) {
  return rule == SyscallRule::kAllow || rule == SyscallRule::kEperm ||
         rule == SyscallRule::kEnosys || rule == SyscallRule::kEinval;
}

uint32_t PlainResult(SyscallRule rule) {
  switch (rule) {
    case SyscallRule::kAllow:
      return kAllowCall;
    case SyscallRule::kEperm:
      return Fail(EPERM);
    case SyscallRule::kEinval:
      return Fail(EINVAL);
    default:
      return Fail(ENOSYS);
  }
}

// --- argument rules -----------------------------------------------------------------------------

void EmitSocketRule(Assembler& out) {
  const auto internet = out.NewLabel(), datagram = out.NewLabel(), not_netlink = out.NewLabel();
  out.LoadArg(0);
  out.ReturnIfEqual(AF_UNIX, kAllowCall);
  out.GoIfEqual(AF_INET, internet);
  out.GoIfEqual(AF_INET6, internet);
  out.GoUnlessEqual(AF_NETLINK, not_netlink);
  out.LoadArg(2);
  out.ReturnIfEqual(0, kAllowCall);  // NETLINK_ROUTE: getifaddrs
  out.Place(not_netlink);
  out.Return(Fail(EAFNOSUPPORT));

  out.Place(internet);
  out.LoadArg(1);
  out.And(kSocketTypeMask);
  out.GoUnlessEqual(SOCK_STREAM, datagram);
  out.LoadArg(2);
  out.ReturnIfEqual(0, kAllowCall);
  out.ReturnIfEqual(IPPROTO_TCP, kAllowCall);
  out.Return(Fail(EPROTONOSUPPORT));

  out.Place(datagram);
  out.ReturnUnlessEqual(SOCK_DGRAM, Fail(EAFNOSUPPORT));
  out.LoadArg(2);
  for (const uint32_t protocol : {0, +IPPROTO_UDP, +IPPROTO_ICMP, +IPPROTO_ICMPV6})
    out.ReturnIfEqual(protocol, kAllowCall);
  out.Return(Fail(EPROTONOSUPPORT));
}

void EmitSetSockOptRule(Assembler& out) {
  const auto options = DeniedSocketOptions();
  for (size_t i = 0; i < options.size();) {
    const uint32_t level = options[i].level;
    const auto other_level = out.NewLabel();
    out.LoadArg(1);
    out.GoUnlessEqual(level, other_level);
    out.LoadArg(2);
    for (; i < options.size() && options[i].level == level; ++i)
      out.ReturnIfEqual(options[i].name, Fail(options[i].error));
    out.Return(kAllowCall);
    out.Place(other_level);
  }
  out.Return(kAllowCall);
}

void EmitRule(Assembler& out, SyscallRule rule) {
  switch (rule) {
    case SyscallRule::kClone:
      out.LoadArg(0);
      out.ReturnIfAnyBit(kCloneNamespaceBits, Fail(EPERM));
      return out.Return(kAllowCall);
    case SyscallRule::kUnshare:
      out.LoadArg(0);
      out.ReturnIfAnyBit(~kUnshareAllowedBits, Fail(EPERM));
      return out.Return(kAllowCall);
    case SyscallRule::kSocket:
      return EmitSocketRule(out);
    case SyscallRule::kSocketPair:
      out.LoadArg(0);
      out.ReturnIfEqual(AF_UNIX, kAllowCall);
      return out.Return(Fail(EAFNOSUPPORT));
    case SyscallRule::kIoctl:
      out.LoadArg(1);
      for (const uint32_t request : kDeniedIoctls) out.ReturnIfEqual(request, Fail(EPERM));
      return out.Return(kAllowCall);
    case SyscallRule::kSetSockOpt:
      return EmitSetSockOptRule(out);
    case SyscallRule::kPersonality:
      out.LoadArg(0);
      for (const uint32_t value : kAllowedPersonalities) out.ReturnIfEqual(value, kAllowCall);
      return out.Return(Fail(EPERM));
    case SyscallRule::kNotInit:
      out.LoadArg(0);
      out.ReturnIfEqual(1, Fail(EPERM));
      return out.Return(kAllowCall);
    default:
      return out.Return(PlainResult(rule));
  }
}

// --- the search for the number ------------------------------------------------------------------

// Numbers from `begin` to the next range's begin share a rule.
struct Range {
  uint32_t begin;
  SyscallRule rule;
};

std::vector<Range> RangesOf(SeccompProfile profile) {
  std::vector<Range> ranges;
  const int end = SyscallTable().back().nr + 1;  // from here on nothing is known
  for (int nr = 0; nr <= end; ++nr) {
    const SyscallRule rule = RuleOf(profile, nr);
    if (ranges.empty() || ranges.back().rule != rule)
      ranges.push_back({static_cast<uint32_t>(nr), rule});
  }
  return ranges;
}

// The binary search over all ranges, then the rule blocks it leads to.
class Search {
 public:
  explicit Search(Assembler& out) : out_(out) {}

  void Emit(std::span<const Range> ranges) {
    EmitTree(ranges);
    for (const auto& [rule, label] : blocks_) {
      out_.Place(label);
      EmitRule(out_, rule);
    }
  }

 private:
  struct Block {
    SyscallRule rule;
    Assembler::Label label;
  };

  // Needs two ranges or more.
  void EmitTree(std::span<const Range> ranges) {
    const auto left = ranges.first(ranges.size() / 2);
    const auto right = ranges.subspan(left.size());
    const auto to_left = left.size() == 1 ? TargetOf(left[0].rule) : Assembler::kNext;
    const auto to_right = right.size() == 1 ? TargetOf(right[0].rule) : out_.NewLabel();
    out_.BranchAtLeast(right[0].begin, to_right, to_left);
    if (left.size() > 1) EmitTree(left);
    if (right.size() > 1) {
      out_.Place(to_right);
      EmitTree(right);
    }
  }
  Assembler::Label TargetOf(SyscallRule rule) {
    if (IsPlain(rule)) return out_.ReturnOf(PlainResult(rule));
    blocks_.push_back({rule, out_.NewLabel()});
    return blocks_.back().label;
  }

  Assembler& out_;
  std::vector<Block> blocks_;
};

}  // namespace

SeccompFilter SeccompFilter::Build(SeccompProfile profile) {
  Assembler out;
  out.LoadArch();
  out.ReturnUnlessEqual(kNativeArch, SECCOMP_RET_KILL_PROCESS);
  out.LoadNumber();
  // Beyond the last range lie newer calls, x32 ones (bit 30) and negative numbers: all unknown.
  Search(out).Emit(RangesOf(profile));
  size_t allowed = 0;
  for (const SyscallEntry& entry : SyscallTable()) {
    const SyscallVerdict verdict = VerdictOf(profile, entry.nr);
    if (verdict == SyscallVerdict::kAllow || verdict == SyscallVerdict::kConditional) ++allowed;
  }
  return SeccompFilter(out.Finish(), allowed);
}

SeccompFilter::SeccompFilter(std::vector<sock_filter> code, size_t allowed_count)
    : code_(std::move(code)),
      program_{static_cast<unsigned short>(code_.size()), code_.data()},
      allowed_count_(allowed_count) {}

std::string SeccompFilter::digest() const {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) hash = (hash ^ ((value >> (8 * i)) & 0xff)) * 0x100000001b3;
  };
  for (const sock_filter& instruction : code_) {
    add(instruction.code, 2);
    add(instruction.jt, 1);
    add(instruction.jf, 1);
    add(instruction.k, 4);
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

int InstallSeccomp(const sock_fprog& program) {
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0UL, &program) == 0 ? 0 : errno;
}

}  // namespace caisson::sys
