// Which device nodes a sandbox may open: the v1 device list and the v2 device filter.
#include <fcntl.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "sys/cgroup_internal.h"

namespace caisson::sys::internal {
namespace {

struct Rule {
  uint32_t major;
  int32_t minor;  // -1: any
  std::string_view v1;
};
constexpr Rule kAllowed[] = {
    {1, 3, "c 1:3 rw"},      // null
    {1, 5, "c 1:5 rw"},      // zero
    {1, 7, "c 1:7 rw"},      // full
    {1, 8, "c 1:8 rw"},      // random
    {1, 9, "c 1:9 rw"},      // urandom
    {5, 0, "c 5:0 rw"},      // tty
    {5, 2, "c 5:2 rw"},      // ptmx
    {136, -1, "c 136:* rw"}  // pts/*
};

constexpr bpf_insn Instruction(int code, int dst, int src, int off, int imm) {
  return bpf_insn{static_cast<__u8>(code), static_cast<__u8>(dst), static_cast<__u8>(src),
                  static_cast<__s16>(off), imm};
}
constexpr bpf_insn Load32(int dst, int src, int off) {
  return Instruction(BPF_LDX | BPF_MEM | BPF_W, dst, src, off, 0);
}
constexpr bpf_insn Alu(int op, int dst, int imm) {
  return Instruction(BPF_ALU | op | BPF_K, dst, 0, 0, imm);
}
constexpr bpf_insn Copy(int dst, int src) {
  return Instruction(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0);
}
constexpr bpf_insn Jump(int op, int dst, int imm, int off) {
  return Instruction(BPF_JMP | op | BPF_K, dst, 0, off, imm);
}

// r1 points to struct bpf_cgroup_dev_ctx {access << 16 | type, major, minor}; r0 = 1 allows.
std::vector<bpf_insn> FilterProgram() {
  std::vector<bpf_insn> program = {
      Load32(BPF_REG_2, BPF_REG_1, 0), Load32(BPF_REG_3, BPF_REG_1, 4),
      Load32(BPF_REG_4, BPF_REG_1, 8), Copy(BPF_REG_5, BPF_REG_2), Alu(BPF_AND, BPF_REG_5, 0xffff),
      Alu(BPF_RSH, BPF_REG_2, 16), Alu(BPF_MOV, BPF_REG_0, 0),
      // Anything but a character device, and any mknod, is denied.
      Jump(BPF_JEQ, BPF_REG_5, BPF_DEVCG_DEV_CHAR, 1), Instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
      Jump(BPF_JSET, BPF_REG_2, BPF_DEVCG_ACC_MKNOD, 0),  // offset is set below
  };
  const size_t mknod_check = program.size() - 1;
  for (const Rule& rule : kAllowed) {
    const bool any_minor = rule.minor < 0;
    program.push_back(Jump(BPF_JNE, BPF_REG_3, static_cast<int>(rule.major), any_minor ? 2 : 3));
    if (!any_minor) program.push_back(Jump(BPF_JNE, BPF_REG_4, rule.minor, 2));
    program.push_back(Alu(BPF_MOV, BPF_REG_0, 1));
    program.push_back(Instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
  }
  program[mknod_check].off = static_cast<__s16>(program.size() - mknod_check - 1);
  program.push_back(Instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
  return program;
}

int Bpf(bpf_cmd command, bpf_attr& attributes) {
  return static_cast<int>(::syscall(SYS_bpf, command, &attributes, sizeof(attributes)));
}

}  // namespace

Status ApplyDeviceListV1(const GroupDir& dir) {
  if (const int error = dir.TryWrite("devices.deny", "a"); error != 0)
    return WriteError(dir, "devices.deny", "a", error);
  for (const Rule& rule : kAllowed) {
    if (const int error = dir.TryWrite("devices.allow", rule.v1); error != 0)
      return WriteError(dir, "devices.allow", rule.v1, error);
  }
  return {};
}

Status AttachDeviceFilter(int dir_fd) {
  const std::vector<bpf_insn> program = FilterProgram();
  static constexpr char kLicense[] = "Apache-2.0";
  bpf_attr load = {};
  load.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  load.insns = reinterpret_cast<uintptr_t>(program.data());
  load.insn_cnt = static_cast<__u32>(program.size());
  load.license = reinterpret_cast<uintptr_t>(kLicense);
  load.expected_attach_type = BPF_CGROUP_DEVICE;
  const UniqueFd loaded(Bpf(BPF_PROG_LOAD, load));
  if (!loaded) return Error::FromErrno("cannot load the device filter (bpf)");

  // bpf(2) wants a real descriptor of the directory, not an O_PATH one.
  const UniqueFd directory(::openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return Error::FromErrno("cannot open the instance's cgroup directory");
  bpf_attr attach = {};
  attach.target_fd = static_cast<__u32>(directory.get());
  attach.attach_bpf_fd = static_cast<__u32>(loaded.get());
  attach.attach_type = BPF_CGROUP_DEVICE;
  attach.attach_flags = BPF_F_ALLOW_MULTI;
  if (Bpf(BPF_PROG_ATTACH, attach) != 0)
    return Error::FromErrno("cannot attach the device filter to the cgroup (bpf)");
  return {};
}

}  // namespace caisson::sys::internal
