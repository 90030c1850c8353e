// The protocol between whoever owns a sandbox (the server or the CLI) and caisson-init, PID 1
// inside it.
//
// Theory of operation. Init answers every request with exactly one reply of the same tag: the
// named reply, `Done`, or `Failed`. Events (tag 0) come in between: `Output`, `Exited`,
// `WatchEvent`.
//
// An owner opens with `Hello`, choosing a fresh epoch. Init drops every attachment and every
// pending reply of the former owner and answers `HelloReply` with that epoch; a new owner discards
// what it reads until then. So a server that died in mid-sentence costs nothing: the launcher
// kept the socket, packets are whole, and `List` plus `Attach` with an offset replays output.
//
// Output. Each process has a ring per stream, addressed by the absolute offset of the byte in
// the stream. Init sends `Output` to the attached owner only while the process has credit; the
// owner grants more with `Credit`. A ring that is full of unsent bytes blocks the process
// (Overflow::kBlock, nothing is lost) or drops its oldest bytes and counts them (kDropOldest).
// After process and pipes have ended, `Exited` tells the final offsets; it is repeated to an owner
// that attaches later. `Release` forgets an ended process and frees its ring.
//
// Process tree. Each command runs below a supervisor that is a child subreaper, so daemonised
// grandchildren stay in the command's tree and a signal with Scope::kTree reaches all of them. A
// timeout, an exceeded output limit and Scope::kTree with SIGKILL end the whole tree.
//
// Files. Paths are absolute inside the sandbox and are resolved there, by the kernel, with the
// identity of `user`; there is nothing outside for a `..` or a link to reach.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/frame.h"

namespace caisson::wire::init {

inline constexpr uint32_t kVersion = 1;

// Bounds. argv and env together must also fit one frame.
inline constexpr size_t kMaxArgs = 4096;
inline constexpr size_t kMaxPath = 4096;
inline constexpr size_t kMaxString = 96 * 1024;
inline constexpr size_t kMaxUser = 64;
inline constexpr size_t kMaxRlimits = 16;
inline constexpr size_t kMaxText = 1024;
inline constexpr size_t kMaxProcesses = 1024;
inline constexpr size_t kMaxEntries = 512;
inline constexpr size_t kMaxRing = 16 * 1024 * 1024;

enum class Type : uint16_t {
  kReady = 1,
  kHello,
  kHelloReply,
  kDone,
  kFailed,
  kStart = 16,
  kStarted,
  kInput,
  kSignal,
  kResize,
  kAttach,
  kAttached,
  kCredit,
  kDetach,
  kRelease,
  kListProcesses,
  kProcesses,
  kOutput,
  kExited,
  kUsage = 48,
  kUsageReply,
  kShutdown,
  kUpdateDefaults,
  kStat = 64,
  kStatReply,
  kListDir,
  kEntries,
  kOpen,
  kOpened,
  kRead,
  kData,
  kWrite,
  kWritten,
  kClose,
  kMkdir,
  kMove,
  kRemove,
  kWatch,
  kWatching,
  kUnwatch,
  kWatchEvent,
  kSetMode,
  kSymlink,
};

// Init → owner, once, when it has become PID 1 and is ready. The launcher consumes it.
struct Ready {
  static constexpr Type kType = Type::kReady;
  uint32_t version = kVersion;
  template <typename A>
  void Fields(A& a) {
    a.Int(version);
  }
};

struct Hello {
  static constexpr Type kType = Type::kHello;
  uint32_t version = kVersion;
  uint64_t epoch = 0;
  template <typename A>
  void Fields(A& a) {
    a.Int(version);
    a.Int(epoch);
  }
};
struct HelloReply {
  static constexpr Type kType = Type::kHelloReply;
  uint32_t version = kVersion;
  uint64_t epoch = 0;
  uint32_t processes = 0;  // known ones, ended and not released included
  template <typename A>
  void Fields(A& a) {
    a.Int(version);
    a.Int(epoch);
    a.Int(processes);
  }
};

struct Done {
  static constexpr Type kType = Type::kDone;
  template <typename A>
  void Fields(A&) {}
};
// A request that could not be carried out. `error_number` is an errno; `what` names the object.
struct Failed {
  static constexpr Type kType = Type::kFailed;
  int32_t error_number = 0;
  std::string what;
  template <typename A>
  void Fields(A& a) {
    a.Int(error_number);
    a.Str(what, kMaxText);
  }
};

// --- processes -----------------------------------------------------------------------------

enum class Stdio : uint8_t { kPipes = 0, kPty = 1 };
enum class Stdin : uint8_t { kNull = 0, kOpen = 1 };
enum class Overflow : uint8_t { kBlock = 0, kDropOldest = 1 };
enum class Stream : uint8_t { kStdout = 0, kStderr = 1 };  // a PTY has only kStdout

struct Rlimit {
  uint32_t resource = 0;  // RLIMIT_*
  uint64_t soft = 0, hard = 0;
  template <typename A>
  void Fields(A& a) {
    a.Int(resource);
    a.Int(soft);
    a.Int(hard);
  }
};

struct Start {
  static constexpr Type kType = Type::kStart;
  std::vector<std::string> argv;  // argv[0] is looked up in PATH of `env` when it has no slash
  std::vector<std::string> env;   // complete: "NAME=value"
  std::string cwd;                // absolute; empty: the user's home, or "/"
  std::string user;  // a name of the root's passwd or a decimal uid; empty: the default user
  std::vector<Rlimit> rlimits;  // on top of the sandbox's own
  Stdio stdio = Stdio::kPipes;
  Stdin stdin_kind = Stdin::kNull;
  Overflow overflow = Overflow::kBlock;
  uint16_t rows = 24, cols = 80;     // of a PTY
  uint64_t timeout_ns = 0;           // 0: none
  uint64_t output_limit = 0;         // bytes over both streams; 0: none
  uint32_t ring_bytes = 256 * 1024;  // capacity of each stream's ring, at most kMaxRing
  uint64_t credit = 0;               // bytes that may be sent at once; > 0 attaches the caller
  std::string label;                 // free text of the owner, given back by ListProcesses
  template <typename A>
  void Fields(A& a) {
    a.StrList(argv, kMaxArgs, kMaxString);
    a.StrList(env, kMaxArgs, kMaxString);
    a.Str(cwd, kMaxPath);
    a.Str(user, kMaxUser);
    a.StructList(rlimits, kMaxRlimits);
    a.Int(stdio);
    a.Int(stdin_kind);
    a.Int(overflow);
    a.Int(rows);
    a.Int(cols);
    a.Int(timeout_ns);
    a.Int(output_limit);
    a.Int(ring_bytes);
    a.Int(credit);
    a.Str(label, kMaxText);
  }
};
// Why a Start failed, beyond the errno: the stage in the child.
enum class StartStage : uint8_t { kSetup = 0, kUser, kCwd, kRlimit, kStdio, kExec };
struct Started {
  static constexpr Type kType = Type::kStarted;
  uint32_t process = 0;  // the handle; unique for the life of the sandbox
  int32_t pid = 0;       // of the command, in the sandbox's pid namespace
  // 0, or the errno with which the command could not be started: no process exists then.
  int32_t error_number = 0;
  StartStage stage = StartStage::kSetup;
  template <typename A>
  void Fields(A& a) {
    a.Int(process);
    a.Int(pid);
    a.Int(error_number);
    a.Int(stage);
  }
};

// Bytes for stdin. Answered by Done when all of it has been written or the process ended reading
// (then Failed with EPIPE). One request at a time per process. `eof` closes stdin afterwards
// (on a PTY it sends the EOF character).
struct Input {
  static constexpr Type kType = Type::kInput;
  uint32_t process = 0;
  uint8_t eof = 0;
  std::string data;
  template <typename A>
  void Fields(A& a) {
    a.Int(process);
    a.Int(eof);
    a.Str(data, kMaxData);
  }
};

enum class Scope : uint8_t { kProcess = 0, kGroup = 1, kTree = 2 };
struct Signal {
  static constexpr Type kType = Type::kSignal;
  uint32_t process = 0;
  int32_t signo = 0;
  Scope scope = Scope::kTree;
  template <typename A>
  void Fields(A& a) {
    a.Int(process);
    a.Int(signo);
    a.Int(scope);
  }
};
struct Resize {
  static constexpr Type kType = Type::kResize;
  uint32_t process = 0;
  uint16_t rows = 0, cols = 0;
  template <typename A>
  void Fields(A& a) {
    a.Int(process);
    a.Int(rows);
    a.Int(cols);
  }
};

// From now on send this process's output to me, from these offsets (or from the oldest byte
// kept, if that is later).
struct Attach {
  static constexpr Type kType = Type::kAttach;
  uint32_t process = 0;
  uint64_t stdout_from = 0, stderr_from = 0;
  uint64_t credit = 0;
  template <typename A>
  void Fields(A& a) {
    a.Int(process);
    a.Int(stdout_from);
    a.Int(stderr_from);
    a.Int(credit);
  }
};
struct Attached {
  static constexpr Type kType = Type::kAttached;
  uint64_t stdout_from = 0, stderr_from = 0;  // the offsets from which output will really come
  template <typename A>
  void Fields(A& a) {
    a.Int(stdout_from);
    a.Int(stderr_from);
  }
};
struct Credit {  // no reply
  static constexpr Type kType = Type::kCredit;
  uint32_t process = 0;
  uint64_t bytes = 0;
  template <typename A>
  void Fields(A& a) {
    a.Int(process);
    a.Int(bytes);
  }
};
struct Detach {
  static constexpr Type kType = Type::kDetach;
  uint32_t process = 0;
  template <typename A>
  void Fields(A& a) {
    a.Int(process);
  }
};
// Forget an ended process. EBUSY while it lives.
struct Release {
  static constexpr Type kType = Type::kRelease;
  uint32_t process = 0;
  template <typename A>
  void Fields(A& a) {
    a.Int(process);
  }
};

struct Output {
  static constexpr Type kType = Type::kOutput;
  uint32_t process = 0;
  Stream stream = Stream::kStdout;
  uint64_t offset = 0;
  std::string data;
  template <typename A>
  void Fields(A& a) {
    a.Int(process);
    a.Int(stream);
    a.Int(offset);
    a.Str(data, kMaxData);
  }
};

enum class Ended : uint8_t { kExited = 0, kSignaled = 1 };
enum class Cause : uint8_t { kItself = 0, kTimeout = 1, kOutputLimit = 2, kKilledByOwner = 3 };
struct ProcessUsage {  // wait4(2) of the command and what it waited for
  uint64_t user_us = 0, system_us = 0, max_rss_kib = 0;
  uint64_t read_blocks = 0, write_blocks = 0, voluntary_switches = 0, involuntary_switches = 0;
  uint64_t wall_ns = 0;
  template <typename A>
  void Fields(A& a) {
    a.Int(user_us);
    a.Int(system_us);
    a.Int(max_rss_kib);
    a.Int(read_blocks);
    a.Int(write_blocks);
    a.Int(voluntary_switches);
    a.Int(involuntary_switches);
    a.Int(wall_ns);
  }
};
struct Exited {
  static constexpr Type kType = Type::kExited;
  uint32_t process = 0;
  Ended ended = Ended::kExited;
  int32_t code = 0;  // exit code or signal number
  Cause cause = Cause::kItself;
  ProcessUsage usage;
  uint64_t stdout_end = 0, stderr_end = 0;  // bytes the process wrote to each
  uint64_t stdout_dropped = 0, stderr_dropped = 0;
  // The root's file system when the command ended: what a disk-full verdict rests on.
  uint64_t disk_free_bytes = 0, disk_free_inodes = 0;
  template <typename A>
  void Fields(A& a) {
    a.Int(process);
    a.Int(ended);
    a.Int(code);
    a.Int(cause);
    a.Struct(usage);
    a.Int(stdout_end);
    a.Int(stderr_end);
    a.Int(stdout_dropped);
    a.Int(stderr_dropped);
    a.Int(disk_free_bytes);
    a.Int(disk_free_inodes);
  }
};

struct ListProcesses {
  static constexpr Type kType = Type::kListProcesses;
  template <typename A>
  void Fields(A&) {}
};
struct ProcessInfo {
  uint32_t process = 0;
  int32_t pid = 0;
  uint8_t ended = 0;  // 1: Exited has the details
  Stdio stdio = Stdio::kPipes;
  uint64_t started_ns = 0;  // CLOCK_REALTIME
  uint64_t stdout_begin = 0, stdout_end = 0, stderr_begin = 0,
           stderr_end = 0;  // what the rings hold
  std::string command;      // argv, shortened
  std::string label;
  template <typename A>
  void Fields(A& a) {
    a.Int(process);
    a.Int(pid);
    a.Int(ended);
    a.Int(stdio);
    a.Int(started_ns);
    a.Int(stdout_begin);
    a.Int(stdout_end);
    a.Int(stderr_begin);
    a.Int(stderr_end);
    a.Str(command, kMaxText);
    a.Str(label, kMaxText);
  }
};
// At most as many as fit one frame; `more` says that some were left out (release ended ones).
struct Processes {
  static constexpr Type kType = Type::kProcesses;
  uint8_t more = 0;
  std::vector<ProcessInfo> processes;
  template <typename A>
  void Fields(A& a) {
    a.Int(more);
    a.StructList(processes, kMaxProcesses);
  }
};

// --- the sandbox ---------------------------------------------------------------------------

struct Usage {
  static constexpr Type kType = Type::kUsage;
  template <typename A>
  void Fields(A&) {}
};
struct UsageReply {
  static constexpr Type kType = Type::kUsageReply;
  uint32_t processes = 0;  // all in the pid namespace
  uint64_t disk_bytes = 0, disk_free_bytes = 0, disk_inodes = 0,
           disk_free_inodes = 0;  // statfs of the root
  uint64_t output_bytes = 0;      // written by all commands so far
  uint64_t uptime_ns = 0;
  template <typename A>
  void Fields(A& a) {
    a.Int(processes);
    a.Int(disk_bytes);
    a.Int(disk_free_bytes);
    a.Int(disk_inodes);
    a.Int(disk_free_inodes);
    a.Int(output_bytes);
    a.Int(uptime_ns);
  }
};
// New default rlimits for processes started from now on (they replace those of the same resource).
struct UpdateDefaults {
  static constexpr Type kType = Type::kUpdateDefaults;
  std::vector<Rlimit> rlimits;
  template <typename A>
  void Fields(A& a) {
    a.StructList(rlimits, kMaxRlimits);
  }
};
// Kill everything and exit. No reply: the socket closes.
struct Shutdown {
  static constexpr Type kType = Type::kShutdown;
  template <typename A>
  void Fields(A&) {}
};

// --- files ---------------------------------------------------------------------------------

struct FileInfo {
  std::string name;  // in a listing: the entry's name; otherwise the path asked for
  uint32_t mode = 0, uid = 0, gid = 0, links = 0;
  uint64_t size = 0, inode = 0, mtime_ns = 0, ctime_ns = 0, atime_ns = 0;
  std::string target;  // of a symbolic link
  template <typename A>
  void Fields(A& a) {
    a.Str(name, kMaxPath);
    a.Int(mode);
    a.Int(uid);
    a.Int(gid);
    a.Int(links);
    a.Int(size);
    a.Int(inode);
    a.Int(mtime_ns);
    a.Int(ctime_ns);
    a.Int(atime_ns);
    a.Str(target, kMaxPath);
  }
};

struct Stat {
  static constexpr Type kType = Type::kStat;
  std::string path, user;
  uint8_t follow = 0;
  template <typename A>
  void Fields(A& a) {
    a.Str(path, kMaxPath);
    a.Str(user, kMaxUser);
    a.Int(follow);
  }
};
struct StatReply {
  static constexpr Type kType = Type::kStatReply;
  FileInfo info;
  template <typename A>
  void Fields(A& a) {
    a.Struct(info);
  }
};
// One page of a directory. `cursor` 0 starts; the reply's `next` continues; 0 there: the end.
// Order is the directory's own. A page costs its own size, not the directory's.
struct ListDir {
  static constexpr Type kType = Type::kListDir;
  std::string path, user;
  uint64_t cursor = 0;
  uint32_t max = 256;
  template <typename A>
  void Fields(A& a) {
    a.Str(path, kMaxPath);
    a.Str(user, kMaxUser);
    a.Int(cursor);
    a.Int(max);
  }
};
struct Entries {
  static constexpr Type kType = Type::kEntries;
  uint64_t next = 0;
  std::vector<FileInfo> entries;
  template <typename A>
  void Fields(A& a) {
    a.Int(next);
    a.StructList(entries, kMaxEntries);
  }
};

enum class OpenMode : uint8_t {
  kRead = 0,
  kWrite = 1,      // create or truncate in place
  kReplace = 2,    // write to a temporary beside it; Close with `commit` renames it into place
  kCreateNew = 3,  // EEXIST when it is there
  kResume = 4,     // write into an existing file, which is not truncated; create when absent
};
// Regular files only (EINVAL for anything else). `parents` makes missing directories.
struct Open {
  static constexpr Type kType = Type::kOpen;
  std::string path, user;
  OpenMode mode = OpenMode::kRead;
  uint32_t permissions = 0644;
  uint8_t parents = 0;
  template <typename A>
  void Fields(A& a) {
    a.Str(path, kMaxPath);
    a.Str(user, kMaxUser);
    a.Int(mode);
    a.Int(permissions);
    a.Int(parents);
  }
};
struct Opened {
  static constexpr Type kType = Type::kOpened;
  uint32_t handle = 0;
  FileInfo info;
  template <typename A>
  void Fields(A& a) {
    a.Int(handle);
    a.Struct(info);
  }
};
struct Read {
  static constexpr Type kType = Type::kRead;
  uint32_t handle = 0;
  uint64_t offset = 0;
  uint32_t size = 0;
  template <typename A>
  void Fields(A& a) {
    a.Int(handle);
    a.Int(offset);
    a.Int(size);
  }
};
struct Data {
  static constexpr Type kType = Type::kData;
  uint8_t eof = 0;
  std::string data;
  template <typename A>
  void Fields(A& a) {
    a.Int(eof);
    a.Str(data, kMaxData);
  }
};
struct Write {
  static constexpr Type kType = Type::kWrite;
  uint32_t handle = 0;
  uint64_t offset = 0;
  std::string data;
  template <typename A>
  void Fields(A& a) {
    a.Int(handle);
    a.Int(offset);
    a.Str(data, kMaxData);
  }
};
struct Written {
  static constexpr Type kType = Type::kWritten;
  uint32_t size = 0;
  template <typename A>
  void Fields(A& a) {
    a.Int(size);
  }
};
enum class CloseMode : uint8_t {
  kKeep = 0,
  kCommit = 1,
  kDiscard = 2
};  // of an OpenMode::kReplace handle
struct Close {
  static constexpr Type kType = Type::kClose;
  uint32_t handle = 0;
  CloseMode mode = CloseMode::kCommit;
  template <typename A>
  void Fields(A& a) {
    a.Int(handle);
    a.Int(mode);
  }
};
struct Mkdir {
  static constexpr Type kType = Type::kMkdir;
  std::string path, user;
  uint32_t permissions = 0755;
  uint8_t parents = 0;  // 1: make missing parents, and do not mind that it exists
  template <typename A>
  void Fields(A& a) {
    a.Str(path, kMaxPath);
    a.Str(user, kMaxUser);
    a.Int(permissions);
    a.Int(parents);
  }
};
struct Move {
  static constexpr Type kType = Type::kMove;
  std::string from, to, user;
  uint8_t replace = 0;
  template <typename A>
  void Fields(A& a) {
    a.Str(from, kMaxPath);
    a.Str(to, kMaxPath);
    a.Str(user, kMaxUser);
    a.Int(replace);
  }
};
// Recursive removal runs in a child process, so that a big tree does not hold up other requests.
struct Remove {
  static constexpr Type kType = Type::kRemove;
  std::string path, user;
  uint8_t recursive = 0;
  template <typename A>
  void Fields(A& a) {
    a.Str(path, kMaxPath);
    a.Str(user, kMaxUser);
    a.Int(recursive);
  }
};
struct SetMode {
  static constexpr Type kType = Type::kSetMode;
  std::string path, user;
  uint32_t permissions = 0;
  template <typename A>
  void Fields(A& a) {
    a.Str(path, kMaxPath);
    a.Str(user, kMaxUser);
    a.Int(permissions);
  }
};
struct Symlink {
  static constexpr Type kType = Type::kSymlink;
  std::string target, path, user;
  template <typename A>
  void Fields(A& a) {
    a.Str(target, kMaxPath);
    a.Str(path, kMaxPath);
    a.Str(user, kMaxUser);
  }
};

// Watches a directory, or a file, and with `recursive` what is below (bounded; ENOSPC past it).
struct Watch {
  static constexpr Type kType = Type::kWatch;
  std::string path, user;
  uint8_t recursive = 0;
  template <typename A>
  void Fields(A& a) {
    a.Str(path, kMaxPath);
    a.Str(user, kMaxUser);
    a.Int(recursive);
  }
};
struct Watching {
  static constexpr Type kType = Type::kWatching;
  uint32_t watch = 0;
  template <typename A>
  void Fields(A& a) {
    a.Int(watch);
  }
};
struct Unwatch {
  static constexpr Type kType = Type::kUnwatch;
  uint32_t watch = 0;
  template <typename A>
  void Fields(A& a) {
    a.Int(watch);
  }
};
enum class Change : uint8_t {
  kCreated = 0,
  kWritten = 1,
  kRemoved = 2,
  kRenamed = 3,
  kAttributes = 4,
  kOverflow = 5
};
struct WatchEvent {
  static constexpr Type kType = Type::kWatchEvent;
  uint32_t watch = 0;
  Change change = Change::kCreated;
  std::string path;  // relative to the watched path
  template <typename A>
  void Fields(A& a) {
    a.Int(watch);
    a.Int(change);
    a.Str(path, kMaxPath);
  }
};

}  // namespace caisson::wire::init
