"""Group I: a sandbox meets its own wall, says which, and its neighbour keeps its rhythm."""

import subprocess
import time

import pytest

from harness import paths
from harness.driver import Refused
from harness.neighbour import Neighbour

PROBE = "/mnt/probe/probe"
MIB = 1 << 20


@pytest.fixture
def make(driver, probe_mount):
    return lambda **spec: driver.create(mounts=[probe_mount], **spec)


def test_i01_a_fork_bomb_ends_at_the_process_limit(make):
    with make(pids=64) as box:
        outcome = box.exec("/bin/sh", "-c", ":(){ :|:& };:; sleep 1; exit 3", timeout_ms=4000, user="1000")
        assert outcome.status in ("process_limit", "timeout", "exited"), repr(outcome)
        stats = box.stats()
        assert stats.get("ok")
        box.exec("/bin/true").ok()


def test_i01_the_outcome_names_the_process_limit(make):
    with make(pids=32) as box:
        outcome = box.exec("/bin/sh", "-c", "for i in $(seq 100); do sleep 5 & done; wait", timeout_ms=10_000)
        assert outcome.status == "process_limit", repr(outcome)


@pytest.mark.parametrize("attempt", ["I01", "I02"])
def test_i01_i02_processes_and_threads_share_one_counter(make, attempt):
    with make(pids=40) as box:
        verdict = box.exec(PROBE, attempt).json()
        assert verdict["errno"] == "EAGAIN" and int(verdict["detail"].split()[0]) < 40, verdict


def test_i03_a_memory_hog_is_reported_as_out_of_memory(make):
    with make(memory=64 * MIB) as box:
        outcome = box.exec(PROBE, "eat", "mmap", "256")
        assert outcome.status == "out_of_memory", repr(outcome)
        box.exec("/bin/true").ok()


@pytest.mark.parametrize("kind", ["tmp", "shm", "memfd", "pipe", "socket", "tables", "sysv"])
def test_i04_every_kind_of_memory_is_charged_to_the_sandbox(make, kind):
    """256 MiB of anything do not fit 64 MiB: killed for memory, or stopped by a smaller wall."""
    with make(memory=64 * MIB) as box:
        outcome = box.exec(PROBE, "eat", kind, "256", timeout_ms=20_000)
        if outcome.status == "exited" and outcome.exit_code == 0:
            assert outcome.json()["result"] == "refused", repr(outcome)
        else:
            assert outcome.status in ("out_of_memory", "disk_full"), repr(outcome)
        if kind != "sysv":  # segments outlive the process that made them: the sandbox stays full
            assert box.exec("/bin/true").status == "exited"


def test_i04_a_sandbox_that_stays_full_says_so_until_it_ends(make):
    """Segments of nobody leave the kernel nothing to kill but init: each command until then has a typed end."""
    with make(memory=64 * MIB) as box:
        for _ in range(40):
            try:
                outcome = box.exec(PROBE, "eat", "sysv", "256", timeout_ms=20_000)
                assert outcome.status == "out_of_memory", repr(outcome)
            except Refused as refused:
                assert (refused.code, "memory limit" in str(refused)) == ("gone", True), refused
                return


@pytest.mark.parametrize("directory", ["/tmp", "/workspace"])
def test_i07_inodes_end(make, directory):
    with make(inodes=2000, memory=256 * MIB) as box:
        verdict = box.exec(PROBE, "fill-inodes", directory, "20000", timeout_ms=20_000).json()
        assert verdict["errno"] in ("ENOSPC", "EDQUOT"), verdict


@pytest.mark.parametrize("directory", ["/tmp", "/workspace"])
def test_i09_disk_ends(make, directory):
    with make(disk=32 * MIB, memory=256 * MIB) as box:
        verdict = box.exec(PROBE, "fill-disk", directory, "200", timeout_ms=20_000).json()
        assert verdict["errno"] in ("ENOSPC", "EDQUOT", "EFBIG") and int(verdict["detail"]) <= 64, verdict


def test_i09_the_outcome_names_the_disk(make):
    with make(disk=16 * MIB, memory=256 * MIB) as box:
        outcome = box.exec("/bin/dd", "if=/dev/zero", "of=/workspace/big", "bs=1M", "count=100")
        assert outcome.exit_code != 0 and outcome.status == "disk_full", repr(outcome)


def test_i11_inotify_instances_are_counted_per_sandbox(make):
    host_before = _host_inotify()
    with make() as one, make() as two:
        hog = one.start(PROBE, "inotify", "20", user="0")
        time.sleep(0.5)
        second = int(two.exec(PROBE, "inotify", "0", user="0").json()["detail"])
        host = _host_inotify()
        hog.signal(9)
        first = int(hog.wait().answer["stdout"].split('"detail":"')[1].split('"')[0])
    assert second >= min(first, 64) > 0
    assert host >= host_before - 8


def _host_inotify():
    text = subprocess.run([paths.PROBE, "inotify", "0"], capture_output=True, text=True).stdout
    return int(text.split('"detail":"')[1].split('"')[0])


def test_i19_an_output_flood_stops_at_its_limit_and_not_in_our_memory(driver, make):
    with make() as box:
        box.exec("/bin/true").ok()
        before = driver.rss_kib()
        outcome = box.exec(PROBE, "flood", str(1 << 30), output_limit=MIB, timeout_ms=20_000)
        assert outcome.status == "output_limit", repr(outcome)[:300]
        outcome = box.exec("/usr/bin/yes", output_limit=MIB, timeout_ms=20_000)
        assert outcome.status == "output_limit", repr(outcome)[:300]
        assert driver.rss_kib() - before < 20 * 1024


def test_i19_any_bytes_come_through_unharmed(make):
    with make() as box:
        outcome = box.exec("/bin/sh", "-c", r"printf '\001\033[31m\r\n'; echo end")
        assert outcome.ok().stdout == "\x01\x1b[31m\r\nend\n"


def test_i20_output_that_nobody_reads_blocks_the_writer_only(driver, make):
    with make() as box:
        before = driver.rss_kib()
        floods = [box.start(PROBE, "flood", str(1 << 30)) for _ in range(4)]
        time.sleep(1)
        box.exec("/bin/true").ok()
        assert driver.rss_kib() - before < 20 * 1024
        for flood in floods:
            flood.signal(9)


def memory_cgroups():
    with open("/proc/cgroups", encoding="ascii") as table:
        for line in table:
            if line.startswith("memory\t"):
                return int(line.split()[2])
    return None


def test_i25_churn_leaves_no_dead_memory_cgroups(make):
    before = memory_cgroups()
    if before is None:
        pytest.skip("this kernel does not count memory cgroups in /proc/cgroups")
    for round_number in range(40):
        with make() as box:
            box.write("/tmp/file", b"x" * 4096)
            box.exec("/bin/cat", "/etc/hostname", "/usr/bin/env")
    time.sleep(0.5)
    # Pools hold some while the owner lives; forty dead ones would show.
    assert memory_cgroups() - before < 25


ATTACKS = {
    "i01-fork-bomb": ({"pids": 200}, ["fork-bomb", "3"]),
    "i17-cpu-burn": ({}, ["burn", "64", "3"]),
    "i04-memory": ({"memory": 128 * MIB}, ["eat", "mmap", "4096"]),
    "i05-disk": ({"memory": 256 * MIB, "disk": 128 * MIB}, ["fill-disk", "/workspace", "1000"]),
    "i19-flood": ({}, ["flood", str(1 << 33)]),
}


@pytest.mark.neighbour
@pytest.mark.parametrize("name", ATTACKS)
def test_a_neighbour_keeps_its_rhythm(driver, probe_mount, name):
    spec, attack = ATTACKS[name]
    with Neighbour(driver, probe_mount, seconds=2) as neighbour:
        with driver.create(mounts=[probe_mount], cpus=0.5, **spec) as hostile:
            process = hostile.start(PROBE, *attack, user="1000")
            beat = neighbour.start()
            neighbour.judge(beat)
            process.signal(9)
