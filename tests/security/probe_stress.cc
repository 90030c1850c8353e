// Tools that press: memory, disk, processes, output; and the heartbeat that watches a neighbour.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "probe.h"

namespace caisson::probe {
namespace {

void Print(const std::string& text) {
  if (write(1, text.data(), text.size()) < 0) _exit(3);
}

uint64_t Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000u + static_cast<uint64_t>(now.tv_nsec);
}

long Number(std::span<char* const> arguments, size_t index, long otherwise) {
  return index < arguments.size() ? strtol(arguments[index], nullptr, 0) : otherwise;
}

int Report(const char* name, long reached, int error) {
  Print(std::string("{\"name\":\"") + name + "\",\"result\":\"" +
        (error != 0 ? "refused" : "open") + "\",\"errno\":" + JsonString(ErrnoName(error)) +
        ",\"detail\":\"" + std::to_string(reached) + "\"}\n");
  return 0;
}

constexpr size_t kMiB = 1 << 20;

// One MiB more of the kind, touched. 0 or an errno.
int EatMapped() {
  void* memory = mmap(nullptr, kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return errno;
  memset(memory, 1, kMiB);
  return 0;
}
int FillDescriptor(int fd) {
  static char block[65536];
  memset(block, 1, sizeof(block));
  for (size_t done = 0; done < kMiB;) {
    const ssize_t n = write(fd, block, sizeof(block));
    if (n <= 0) return errno;
    done += static_cast<size_t>(n);
  }
  return 0;
}
int EatFile(const char* directory) {
  static int fd = -1;
  if (fd < 0) {
    const std::string path = std::string(directory) + "/eaten-" + std::to_string(getpid());
    fd = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  }
  return fd < 0 ? errno : FillDescriptor(fd);
}
int EatMemfd() {
  static int fd = memfd_create("eaten", 0);
  return fd < 0 ? errno : FillDescriptor(fd);
}
int EatPipes() {
  for (int i = 0; i < 16; ++i) {
    int ends[2];
    static char block[65536];
    if (pipe2(ends, O_NONBLOCK) != 0) return errno;
    if (write(ends[1], block, sizeof(block)) < 0) return errno;
  }
  return 0;
}
int EatSockets() {
  for (int i = 0; i < 5; ++i) {
    int ends[2];
    static char block[65536];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0) return errno;
    while (write(ends[1], block, sizeof(block)) > 0) {
    }
  }
  return 0;
}
int EatPageTables() {  // 512 touched pages, each in a page table of its own: 2 MiB of tables and 2
                       // of pages
  static char* base = static_cast<char*>(mmap(nullptr, 1ull << 40, PROT_READ | PROT_WRITE,
                                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  static size_t next = 0;
  if (base == MAP_FAILED) return errno;
  for (int i = 0; i < 128; ++i, ++next) base[next * 2 * kMiB] = 1;
  return 0;
}
int EatSharedSegments() {
  const int id = shmget(IPC_PRIVATE, kMiB, IPC_CREAT | 0600);
  if (id < 0) return errno;
  void* memory = shmat(id, nullptr, 0);
  if (memory == reinterpret_cast<void*>(-1)) return errno;
  memset(memory, 1, kMiB);
  return 0;
}

// eat KIND MIB: takes memory of one kind until MIB or the wall.
int Eat(std::span<char* const> arguments) {
  if (arguments.empty()) return 2;
  const std::string kind = arguments[0];
  const long wanted = Number(arguments, 1, 4096);
  long reached = 0;
  int error = 0;
  for (; reached < wanted && error == 0; ++reached) {
    if (kind == "mmap")
      error = EatMapped();
    else if (kind == "tmp")
      error = EatFile("/tmp");
    else if (kind == "shm")
      error = EatFile("/dev/shm");
    else if (kind == "memfd")
      error = EatMemfd();
    else if (kind == "pipe")
      error = EatPipes();
    else if (kind == "socket")
      error = EatSockets();
    else if (kind == "tables")
      error = EatPageTables();
    else if (kind == "sysv")
      error = EatSharedSegments();
    else
      return 2;
  }
  return Report("eat", reached, error);
}

// fill-disk DIRECTORY MIB
int FillDisk(std::span<char* const> arguments) {
  if (arguments.size() < 2) return 2;
  signal(SIGXFSZ, SIG_IGN);
  long reached = 0;
  int error = 0;
  for (; reached < Number(arguments, 1, 0) && error == 0; ++reached) error = EatFile(arguments[0]);
  return Report("fill-disk", reached, error);
}

// fill-inodes DIRECTORY COUNT: empty files, directories, symlinks and hard links in turn.
int FillInodes(std::span<char* const> arguments) {
  if (arguments.size() < 2) return 2;
  const std::string base = std::string(arguments[0]) + "/inodes-" + std::to_string(getpid());
  if (mkdir(base.c_str(), 0700) != 0) return Report("fill-inodes", 0, errno);
  const long wanted = Number(arguments, 1, 0);
  long reached = 0;
  int error = 0;
  for (; reached < wanted && error == 0; ++reached) {
    const std::string path = base + "/" + std::to_string(reached);
    int result = 0;
    if (reached % 3 == 0) {
      const int fd = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
      result = fd < 0 ? -1 : close(fd);
    } else if (reached % 3 == 1) {
      result = mkdir(path.c_str(), 0700);
    } else {
      result = symlink("x", path.c_str());
    }
    if (result != 0) error = errno;
  }
  return Report("fill-inodes", reached, error);
}

// tree DIRECTORY: ten thousand nested directories, long names, a huge hole, many links.
int Tree(std::span<char* const> arguments) {
  if (arguments.empty() || chdir(arguments[0]) != 0) return 2;
  signal(SIGXFSZ, SIG_IGN);
  const int top = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  long depth = 0;
  for (; depth < Number(arguments, 1, 10000); ++depth)
    if (mkdir("d", 0700) != 0 || chdir("d") != 0) break;
  if (fchdir(top) != 0) return 2;
  const std::string name(255, 'n');
  int fd = open(name.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  (void)!ftruncate(fd, 1ll << 40);
  close(fd);
  (void)!symlink(std::string(4095, 's').c_str(), "symlink");
  (void)!mkdir("closed", 0700);
  (void)!symlink("/etc/passwd", "closed/passwd");
  (void)!chmod("closed", 0);
  long links = 0;
  for (; links < 5000; ++links)
    if (link(name.c_str(), ("link" + std::to_string(links)).c_str()) != 0) break;
  Print("{\"depth\":" + std::to_string(depth) + ",\"links\":" + std::to_string(links) + "}\n");
  return 0;
}

// fork-bomb SECONDS: every process forks for ever.
int ForkBomb(std::span<char* const> arguments) {
  const uint64_t end = Now() + static_cast<uint64_t>(Number(arguments, 0, 2)) * 1000000000u;
  while (Now() < end)
    if (fork() < 0) usleep(1000);
  _exit(0);
}

void* Burn(void*) {
  for (;;) asm volatile("");
}
// burn THREADS SECONDS
int BurnCpu(std::span<char* const> arguments) {
  pthread_t thread;
  for (long i = 0; i < Number(arguments, 0, 4); ++i)
    pthread_create(&thread, nullptr, Burn, nullptr);
  sleep(static_cast<unsigned>(Number(arguments, 1, 2)));
  _exit(0);
}

// flood BYTES: to stdout, without a newline; prints nothing else.
int Flood(std::span<char* const> arguments) {
  static char block[65536];
  memset(block, '\xff', sizeof(block));
  long left = Number(arguments, 0, 1 << 20);
  while (left > 0) {
    const ssize_t n = write(1, block, std::min<size_t>(sizeof(block), static_cast<size_t>(left)));
    if (n <= 0) return 1;
    left -= n;
  }
  return 0;
}

// daemonise SECONDS: leaves a process behind that ignores everything and holds no stdio.
int Daemonise(std::span<char* const> arguments) {
  const auto seconds = static_cast<unsigned>(Number(arguments, 0, 60));
  const bool keep_output = arguments.size() > 1 && strcmp(arguments[1], "keep") == 0;
  if (fork() != 0) _exit(0);
  setsid();
  if (fork() != 0) _exit(0);
  for (int number = 1; number < 65; ++number) signal(number, SIG_IGN);
  if (!keep_output) {
    close(0);
    close(1);
    close(2);
  }
  prctl(PR_SET_NAME, "left-behind");
  for (unsigned left = seconds; left > 0;) left = sleep(left);
  _exit(0);
}

// inotify HOLD_SECONDS: takes instances until refused, says how many, holds them.
int Inotify(std::span<char* const> arguments) {
  long count = 0;
  while (count < 5000 && inotify_init1(IN_CLOEXEC) >= 0) ++count;
  Report("inotify", count, errno);
  sleep(static_cast<unsigned>(Number(arguments, 0, 0)));
  return 0;
}

// overwrite-entering SECONDS: tries to open the program of anything that enters, for writing.
int OverwriteEntering(std::span<char* const> arguments) {
  const uint64_t end = Now() + static_cast<uint64_t>(Number(arguments, 0, 2)) * 1000000000u;
  const std::string own = std::to_string(getpid());
  std::string opened;
  long tries = 0;
  while (Now() < end) {
    for (const std::string& name : ListDirectory("/proc")) {
      if (name[0] < '0' || name[0] > '9' || name == own) continue;
      const std::string path = "/proc/" + name + "/exe";
      ++tries;
      const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
      if (fd < 0) continue;
      char target[256] = "";
      (void)!readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof(target) - 1);
      // A file of the image may be written by its owner; a memory file or a host path may not.
      if (strstr(target, "memfd") != nullptr || strstr(target, "caisson") != nullptr)
        opened += std::string(target) + " ";
      close(fd);
    }
  }
  Print("{\"tries\":" + std::to_string(tries) + ",\"opened\":" + JsonString(opened) + "}\n");
  return 0;
}

// exchange A B SECONDS: swaps two names as fast as it can.
int Exchange(std::span<char* const> arguments) {
  if (arguments.size() < 2) return 2;
  const uint64_t end = Now() + static_cast<uint64_t>(Number(arguments, 2, 2)) * 1000000000u;
  long count = 0;
  while (Now() < end)
    if (renameat2(AT_FDCWD, arguments[0], AT_FDCWD, arguments[1], RENAME_EXCHANGE) == 0) ++count;
  Print(std::to_string(count) + "\n");
  return 0;
}

uint64_t Percentile(std::vector<uint64_t>& values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1,
                         static_cast<size_t>(part * static_cast<double>(values.size())))];
}

struct Beat {
  std::vector<uint64_t> timer, disk, spawn;
  long failures = 0;
};

void BeatDisk(int fd, Beat& beat) {
  static char block[4096];
  const uint64_t begin = Now();
  if (pwrite(fd, block, sizeof(block), 0) != static_cast<ssize_t>(sizeof(block)) || fsync(fd) != 0)
    ++beat.failures;
  beat.disk.push_back(Now() - begin);
}

void BeatSpawn(Beat& beat) {
  const uint64_t begin = Now();
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "probe", "exit", nullptr);
    _exit(1);
  }
  int status = -1;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) ++beat.failures;
  beat.spawn.push_back(Now() - begin);
}

// heartbeat SECONDS: a 1 ms timer, 4 KiB written and synced and a program started every 50 ms;
// prints how late each was, in microseconds.
int Heartbeat(std::span<char* const> arguments) {
  const uint64_t end = Now() + static_cast<uint64_t>(Number(arguments, 0, 2)) * 1000000000u;
  const std::string path = ScratchPath("heartbeat");
  const int file = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  unlink(path.c_str());
  Beat beat;
  for (uint64_t round = 0; Now() < end; ++round) {
    const uint64_t due = Now() + 1000000;
    timespec pause{0, 1000000};
    nanosleep(&pause, nullptr);
    const uint64_t now = Now();
    beat.timer.push_back(now > due ? now - due : 0);
    if (round % 50 == 0) {
      BeatDisk(file, beat);
      BeatSpawn(beat);
    }
  }
  const auto line = [](const char* name, std::vector<uint64_t>& values) {
    return std::string("\"") + name + "\":{\"count\":" + std::to_string(values.size()) +
           ",\"p50\":" + std::to_string(Percentile(values, 0.5) / 1000) +
           ",\"p99\":" + std::to_string(Percentile(values, 0.99) / 1000) + "}";
  };
  Print("{" + line("timer", beat.timer) + "," + line("disk", beat.disk) + "," +
        line("spawn", beat.spawn) + ",\"failures\":" + std::to_string(beat.failures) + "}\n");
  return 0;
}

int Exit(std::span<char* const> arguments) { return static_cast<int>(Number(arguments, 0, 0)); }

const Tool kTools[] = {
    {"eat", "eat mmap|tmp|shm|memfd|pipe|socket|tables|sysv MIB", Eat},
    {"fill-disk", "fill-disk DIRECTORY MIB", FillDisk},
    {"fill-inodes", "fill-inodes DIRECTORY COUNT", FillInodes},
    {"tree", "tree DIRECTORY [DEPTH]", Tree},
    {"fork-bomb", "fork-bomb SECONDS", ForkBomb},
    {"burn", "burn THREADS SECONDS", BurnCpu},
    {"flood", "flood BYTES", Flood},
    {"daemonise", "daemonise SECONDS [keep]", Daemonise},
    {"inotify", "inotify HOLD_SECONDS", Inotify},
    {"overwrite-entering", "overwrite-entering SECONDS", OverwriteEntering},
    {"exchange", "exchange A B SECONDS", Exchange},
    {"heartbeat", "heartbeat SECONDS", Heartbeat},
    {"exit", "exit CODE", Exit},
};

}  // namespace

std::span<const Tool> StressTools() { return kTools; }

}  // namespace caisson::probe
