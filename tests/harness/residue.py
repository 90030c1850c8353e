"""The R observation: what a destroyed sandbox left on the host.

`snapshot()` before, `assert_clean(before)` after. Teardown may finish in the background, so the second
look is repeated for up to three seconds. Only what the product could have made is looked at: other
people's processes, mounts and sandboxes on the same machine come and go. The test process is a child
subreaper (`adopt_orphans`), so every process that anything under test started, and did not end, is below it.
"""

import collections
import ctypes
import os
import pathlib
import re
import time

OUR_NAME = re.compile(r"caisson")
# Unit tests of the cgroup class name their instances so; they may run beside these tests.
FOREIGN_CGROUP = re.compile(r"^caisson-test")
STANDING = {"cache", "run", "run/instances", "disks", "launcher.sock", "launcher.lock"}
# Root's launchers of the whole host are registered here, whatever their CAISSON_HOME.
REGISTRY = "/run/caisson/instances"
PR_SET_CHILD_SUBREAPER = 36
NAMESPACES = ("mnt", "net", "pid", "ipc", "uts", "user", "cgroup", "time")

Snapshot = collections.namedtuple(
    "Snapshot", "processes mounts namespaces cgroups loops terminals links state instances")

_seen_foreign = set()  # instances of other homes; their cgroups may outlive their entry by a moment


def adopt_orphans():
    """From now on a process whose parent died becomes a child of this one, not of PID 1."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def snapshot(home=None):
    """`home`: the CAISSON_HOME whose files count."""
    processes, namespaces = _processes_and_namespaces()
    return Snapshot(processes, _mounts(home), namespaces, _cgroups(home), _loops(home), _terminals(),
                    _links(), _state(home), _instances(home))


def difference(before, after):
    """What is in `after` and was not in `before`, by kind."""
    left = {}
    for kind in Snapshot._fields:
        new = set(getattr(after, kind)) - set(getattr(before, kind))
        if new:
            left[kind] = sorted(map(str, new))
    return left


def wait_until_clean(before, patience=3.0, **where):
    """What is still left after `patience` seconds; empty as soon as nothing is."""
    end = time.monotonic() + patience
    while True:
        left = difference(before, snapshot(**where))
        if not left or time.monotonic() >= end:
            return left
        time.sleep(0.03)


def assert_clean(before, patience=3.0, **where):
    left = wait_until_clean(before, patience, **where)
    if left:
        raise AssertionError("left behind:\n" + describe(left))


def describe(left):
    return "\n".join(f"  {kind} ({len(items)}): " + "; ".join(items[:8]) for kind, items in left.items())


def _read(path):
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "surrogateescape")
    except OSError:
        return ""


def descendants(pid):
    """Pids below `pid`, with their names."""
    table = _process_table()
    return {p: table[p][1] for p in _below(pid, table)}


def _process_table():
    """{pid: (parent, name, state, start time)} of everything."""
    table = {}
    for entry in os.listdir("/proc"):
        stat = _read(f"/proc/{entry}/stat") if entry.isdigit() else ""
        if ")" in stat:
            fields = stat[stat.rindex(")") + 2:].split()
            name = stat[stat.index("(") + 1:stat.rindex(")")]
            table[int(entry)] = (int(fields[1]), name, fields[0], fields[19])
    return table


def _below(pid, table):
    below, grown = {pid}, True
    while grown:
        grown = {p for p, (parent, *_) in table.items() if parent in below and p not in below}
        below |= grown
    return below - {pid}


def _processes_and_namespaces():
    """Everything below this process, and the namespaces it lives in that are not this process's own.

    A dead child of this very process is no residue: it is an orphan that was adopted and has ended."""
    table = _process_table()
    own = {kind: _link(f"/proc/self/ns/{kind}") for kind in NAMESPACES}
    processes, namespaces = set(), set()
    for pid in _below(os.getpid(), table):
        parent, name, state, start = table[pid]
        if state == "Z" and parent == os.getpid():
            continue
        processes.add(f"{pid}:{name}:{start}" + (":zombie" if state == "Z" else ""))
        for kind in NAMESPACES:
            link = _link(f"/proc/{pid}/ns/{kind}")
            if link and link != own[kind]:
                namespaces.add(link)
    return frozenset(processes), frozenset(namespaces)


def _link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _mounts(home):
    found = set()
    for pid in ("self", "1"):
        for line in _read(f"/proc/{pid}/mountinfo").splitlines():
            if (str(home) in line) if home else OUR_NAME.search(line):
                fields = line.split(" ")
                found.add(f"{pid}: {fields[4]} ({fields[2]})")
    return frozenset(found)


def _instances(home):
    """Entries of the registry whose state is below `home`; the rest is remembered as somebody else's.

    An entry without a readable state counts as ours: a launcher that died before it wrote one is residue."""
    found = set()
    for registry in _registries(home):
        try:
            names = os.listdir(registry)
        except OSError:
            continue
        for name in names:
            state = _read(f"{registry}/{name}/state")
            if home is not None and state and not state.startswith(os.path.realpath(home) + "/"):
                _seen_foreign.add(name.removeprefix(".new-"))
            elif registry == REGISTRY and os.path.isdir(f"{registry}/{name}"):
                found.add(name)
    return frozenset(found)


def _registries(home):
    """The host's, and those of running launchers that have one of their own."""
    found = {REGISTRY}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and _read(f"/proc/{entry}/comm").startswith("caisson-launch"):
            arguments = _read(f"/proc/{entry}/cmdline").split("\0")
            if "--run-dir" in arguments and "--state-dir" in arguments:
                if arguments[arguments.index("--state-dir") + 1] != str(home):
                    found.add(arguments[arguments.index("--run-dir") + 1] + "/instances")
    return found


def _cgroups(home):
    """Directories the product made, at the top of every hierarchy and where this process is."""
    found = set()
    _instances(home)
    own = {line.split(":")[2] for line in _read("/proc/self/cgroup").splitlines()}
    tops = [pathlib.Path("/sys/fs/cgroup")]
    tops += [p for p in pathlib.Path("/sys/fs/cgroup").glob("*") if p.is_dir() and not p.is_symlink()]
    for top in tops:
        for below in {top} | {top / path.lstrip("/") for path in own}:
            try:
                entries = [e for e in os.scandir(below) if e.is_dir() and e.name.startswith("caisson-")]
            except OSError:
                continue
            for entry in entries:
                if not FOREIGN_CGROUP.match(entry.name):
                    found.update((entry.name, path) for path, _, _ in os.walk(entry.path))
    _instances(home)  # whoever came meanwhile is somebody else's as well
    foreign = {f"caisson-{instance}" for instance in _seen_foreign}
    return frozenset(path for name, path in found if name not in foreign)


def _loops(home):
    found = set()
    for path in pathlib.Path("/sys/block").glob("loop*/loop/backing_file"):
        backing = _read(path).strip()
        if (str(home) in backing) if home else OUR_NAME.search(backing):
            found.add(f"{path.parts[3]} {backing}")
    return frozenset(found)


def _terminals():
    """The host's own pool; a sandbox has an instance of its own, so none may appear here."""
    try:
        return frozenset(name for name in os.listdir("/dev/pts") if name.isdigit())
    except OSError:
        return frozenset()


def _links():
    try:
        return frozenset(os.listdir("/sys/class/net"))
    except OSError:
        return frozenset()


def _state(home):
    """Files below CAISSON_HOME that belong to one sandbox or launcher. Caches and standing directories stay."""
    if home is None:
        return frozenset()
    found = set()
    home = os.path.realpath(home)
    for path, directories, files in os.walk(home):
        relative = os.path.relpath(path, home)
        if relative.split(os.sep)[0] in ("cache", "."):
            directories[:] = [d for d in directories if not (relative == "." and d == "cache")]
            if relative != ".":
                continue
        for name in directories + files:
            found.add(os.path.normpath(os.path.join(relative, name)))
    return frozenset(found - STANDING)
