// System calls that touch neither errno nor any other thread-local state, and a clone that runs a
// function on a stack of its own. Processes that share init's memory (supervisors, and commands
// before their exec) use nothing else: libc's errno lives in memory that init is using too.
#pragma once

#include <sys/syscall.h>

// Processes that share memory run on stacks the sanitizers do not know.
#define CAISSON_NO_SANITIZE __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

namespace caisson::init {

#if defined(__x86_64__)

// The result, or minus the errno.
inline long RawSyscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
               : "rcx", "r11", "memory");
  return result;
}

// Starts `entry(argument)` in a new process on the stack that ends at `stack_top` (16-byte
// aligned); the process exits with what `entry` returns. The pid, or minus the errno; the kernel
// also stores the pid in `*parent_tid` when `flags` has CLONE_PARENT_SETTID.
inline long RawClone(unsigned long flags, void* stack_top, int* parent_tid, int (*entry)(void*),
                     void* argument) {
  long result;
  register long r10 asm("r10") = 0;
  register long r8 asm("r8") = 0;
  register auto fn asm("r12") = entry;
  register auto arg asm("r13") = argument;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "mov %%r13, %%rdi\n\t"
      "call *%%r12\n\t"
      "mov %%eax, %%edi\n\t"
      "mov %[exit_group], %%eax\n\t"
      "syscall\n\t"
      "hlt\n"
      "1:\n"
      : "=a"(result)
      : "a"(long{SYS_clone}), "D"(flags), "S"(stack_top), "d"(parent_tid), "r"(r10), "r"(r8),
        "r"(fn), "r"(arg), [exit_group] "i"(SYS_exit_group)
      : "rcx", "r11", "memory", "cc");
  return result;
}

#elif defined(__aarch64__)

inline long RawSyscall(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0) {
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4) : "memory");
  return x0;
}

inline long RawClone(unsigned long flags, void* stack_top, int* parent_tid, int (*entry)(void*),
                     void* argument) {
  register long x8 asm("x8") = SYS_clone;
  register unsigned long x0 asm("x0") = flags;
  register void* x1 asm("x1") = stack_top;
  register int* x2 asm("x2") = parent_tid;
  register long x3 asm("x3") = 0;
  register long x4 asm("x4") = 0;
  register auto fn asm("x20") = entry;
  register auto arg asm("x21") = argument;
  asm volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, #0\n\t"
      "mov x0, x21\n\t"
      "blr x20\n\t"
      "mov x8, %[exit_group]\n\t"
      "svc #0\n\t"
      "brk #1\n"
      "1:\n"
      : "+r"(x0)
      : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(fn),
        "r"(arg), [exit_group] "i"(SYS_exit_group)
      : "memory", "cc");
  return static_cast<long>(x0);
}

#else
#error "caisson-init knows the system call convention of x86-64 and arm64 only"
#endif

}  // namespace caisson::init
