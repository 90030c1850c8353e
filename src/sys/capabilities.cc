#include "sys/capabilities.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <optional>
#include <span>

#include "sys/text_file.h"

namespace caisson::sys {
namespace {

constexpr size_t kMaxStatusBytes = 64 * 1024;

static_assert(kLockedSecurebits ==
              (SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP_LOCKED |
               SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
               SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED));

constexpr std::string_view kNames[] = {
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
};
static_assert(std::size(kNames) == CAP_CHECKPOINT_RESTORE + 1);

long Prctl(int option, unsigned long a, unsigned long b) {
  return ::syscall(SYS_prctl, option, a, b, 0UL, 0UL);
}

// What follows "Key:" on its line, without the white space around it.
std::optional<std::string_view> FieldOf(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = NextPiece(text, '\n');
    if (!line.starts_with(key) || line.substr(key.size(), 1) != ":") continue;
    line.remove_prefix(key.size() + 1);
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return std::string_view{};
    return line.substr(begin, line.find_last_not_of(" \t") - begin + 1);
  }
  return std::nullopt;
}

template <typename T>
std::optional<T> Parse(std::string_view text, int base) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc{} || rest != end) return std::nullopt;
  return value;
}

Error Malformed(std::string_view key) {
  return Error(ErrorCode::kProtocol,
               "process status has no readable \"" + std::string(key) + "\" line");
}

template <typename T>
Result<T> NumberField(std::string_view text, std::string_view key, int base) {
  const auto field = FieldOf(text, key);
  const auto value = field ? Parse<T>(*field, base) : std::nullopt;
  if (!value) return Malformed(key);
  return *value;
}

Result<std::array<uint32_t, 4>> IdField(std::string_view text, std::string_view key) {
  const auto field = FieldOf(text, key);
  if (!field) return Malformed(key);
  std::array<uint32_t, 4> ids{};
  std::string_view rest = *field;
  for (uint32_t& id : ids) {
    const auto value = Parse<uint32_t>(NextPiece(rest, '\t'), 10);
    if (!value) return Malformed(key);
    id = *value;
  }
  if (!rest.empty()) return Malformed(key);
  return ids;
}

}  // namespace

int SetCapabilities(uint64_t effective, uint64_t permitted, uint64_t inheritable) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
  for (int word = 0; word < _LINUX_CAPABILITY_U32S_3; ++word) {
    const int shift = 32 * word;
    data[word] = {static_cast<uint32_t>(effective >> shift),
                  static_cast<uint32_t>(permitted >> shift),
                  static_cast<uint32_t>(inheritable >> shift)};
  }
  return ::syscall(SYS_capset, &header, data) == 0 ? 0 : errno;
}

int DropBoundingExcept(uint64_t keep) {
  for (int capability = 0; capability < 64; ++capability) {
    const long in_set = Prctl(PR_CAPBSET_READ, capability, 0);
    if (in_set < 0) return capability > 0 && errno == EINVAL ? 0 : errno;  // past the last one
    if (in_set == 0 || (keep & CapBit(capability)) != 0) continue;
    if (Prctl(PR_CAPBSET_DROP, capability, 0) != 0) return errno;
  }
  return 0;
}

int ClearAmbient() { return Prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0) == 0 ? 0 : errno; }

int LockSecurebits() { return Prctl(PR_SET_SECUREBITS, kLockedSecurebits, 0) == 0 ? 0 : errno; }

Result<CapabilityState> ParseCapabilities(std::string_view status_text) {
  CapabilityState state;
  CAISSON_ASSIGN(state.effective, NumberField<uint64_t>(status_text, "CapEff", 16));
  CAISSON_ASSIGN(state.permitted, NumberField<uint64_t>(status_text, "CapPrm", 16));
  CAISSON_ASSIGN(state.inheritable, NumberField<uint64_t>(status_text, "CapInh", 16));
  CAISSON_ASSIGN(state.bounding, NumberField<uint64_t>(status_text, "CapBnd", 16));
  CAISSON_ASSIGN(state.ambient, NumberField<uint64_t>(status_text, "CapAmb", 16));
  CAISSON_ASSIGN(const int no_new_privs, NumberField<int>(status_text, "NoNewPrivs", 10));
  state.no_new_privs = no_new_privs == 1;
  CAISSON_ASSIGN(state.seccomp_mode, NumberField<int>(status_text, "Seccomp", 10));
  CAISSON_ASSIGN(state.uid, IdField(status_text, "Uid"));
  CAISSON_ASSIGN(state.gid, IdField(status_text, "Gid"));
  return state;
}

Result<CapabilityState> ReadCapabilities(pid_t pid) {
  const std::string path = "/proc/" + std::to_string(pid) + "/status";
  auto text = ReadText(AT_FDCWD, path.c_str(), kMaxStatusBytes);
  if (!text) {
    const int error = text.error().sys_errno();
    const bool gone = error == ENOENT || error == ESRCH;
    return std::move(text).error().WithCode(gone ? ErrorCode::kNotFound : ErrorCode::kIo);
  }
  return ParseCapabilities(*text);
}

std::string CapabilityNames(uint64_t mask) {
  if (mask == 0) return "none";
  std::string names;
  for (size_t bit = 0; bit < 64; ++bit) {
    if ((mask & CapBit(static_cast<int>(bit))) == 0) continue;
    if (!names.empty()) names += ',';
    names += "CAP_";
    if (bit < std::size(kNames)) {
      names += kNames[bit];
    } else {
      names += std::to_string(bit);
    }
  }
  return names;
}

}  // namespace caisson::sys
