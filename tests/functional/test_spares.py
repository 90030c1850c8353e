"""Spares: whole sandboxes that stand ready, so that a create is a claim. Seen from outside, through the launcher's
children; a sandbox is known by the host ids of its init."""

import os
import signal
import subprocess
import time

import pytest

from harness import paths
from harness.paths import require

MIB = 1 << 20


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]


def field(pid, name):
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            return next(line.split()[1] for line in file if line.startswith(name + ":"))
    except (FileNotFoundError, ProcessLookupError, StopIteration):
        return None


def launcher_of(driver):
    return next(pid for pid in children(driver.pid) if field(pid, "Name").startswith("caisson-launch"))


def inits(driver):
    """Host uid -> pid of every init that runs, spares included."""
    found = {}
    for pid in children(launcher_of(driver)):
        if field(pid, "Name") == "caisson-init" and field(pid, "Uid") not in (None, "0"):
            found[int(field(pid, "Uid"))] = pid
    return found


def init_of(driver, sandbox):
    return inits(driver)[int(sandbox.created["isolation"]["uid_range"].split("+")[0])]


def spares_of(driver, sandboxes=(), at_least=1):
    """Waits until there are spares, and gives their pids."""
    known = {init_of(driver, sandbox) for sandbox in sandboxes}
    end = time.monotonic() + 30
    while True:
        found = set(inits(driver).values()) - known
        if len(found) >= at_least:
            return found
        assert time.monotonic() < end, "no spare was made"
        time.sleep(0.01)


@pytest.fixture
def warm(driver):
    """A driver whose launcher was asked for the same twice."""
    for _ in range(2):
        driver.create().destroy()
    return driver


def test_a_create_is_a_claim_of_a_sandbox_that_ran_before(warm):
    ready = spares_of(warm, at_least=2)
    with warm.create() as first, warm.create() as second:
        assert {init_of(warm, first), init_of(warm, second)} <= ready
        assert first.exec("/bin/hostname").ok().stdout == "caisson\n"
        assert first.created["isolation"]["uid_range"] != second.created["isolation"]["uid_range"]
        first.write("/workspace/mine", b"x")
        assert second.list("/workspace")["entries"] == []


def test_a_claimed_sandbox_reports_what_a_created_one_reports(driver):
    with driver.create() as made:
        driver.create().destroy()
        ready = spares_of(driver, [made])
        with driver.create() as claimed:
            assert init_of(driver, claimed) in ready
            assert claimed.created["limits"] == made.created["limits"]
            facts = {"uid_range"}
            assert ({k: v for k, v in claimed.created["isolation"].items() if k not in facts}
                    == {k: v for k, v in made.created["isolation"].items() if k not in facts})


def test_a_spare_is_nobodys_until_it_is_claimed(warm):
    spares_of(warm)
    assert warm.list()["ids"] == []


def test_another_kind_is_not_served_by_a_spare(warm):
    ready = spares_of(warm)
    with warm.create(memory=64 * MIB) as small, warm.create(profile="strict") as strict:
        assert init_of(warm, small) not in ready
        assert small.limit("memory")["value"] == 64 * MIB
        assert strict.created["isolation"]["profile"] == "strict"


def test_a_spare_that_dies_is_not_handed_out(warm):
    ready = spares_of(warm, at_least=4)
    for pid in ready:
        os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + 30
    while ready & set(inits(warm).values()) and time.monotonic() < end:
        time.sleep(0.01)
    with warm.create() as sandbox:
        assert sandbox.exec("/bin/echo", "alive").ok().stdout == "alive\n"


def test_an_update_of_a_claimed_sandbox_is_its_own(warm):
    spares_of(warm)
    with warm.create() as changed:
        changed.update(memory=96 * MIB, pids=32)
        changed.destroy()
        for _ in range(6):
            with warm.create() as other:
                assert other.limit("memory")["value"] == 512 * MIB
                assert other.exec("/bin/sh", "-c", "for i in $(seq 60); do sleep 1 & done; wait").ok()


TRAFFIC = ("import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
           "s.sendto(b'secret', ('127.0.0.1', 9))")


def test_a_network_namespace_that_was_used_is_not_used_again(warm):
    for _ in range(8):
        with warm.create() as sandbox:
            sandbox.exec("/usr/bin/python3", "-c", TRAFFIC).ok()
            assert counters(sandbox) != 0
    for _ in range(24):
        with warm.create() as sandbox:
            assert counters(sandbox) == 0, "another life's packets are visible"


def counters(sandbox):
    table = sandbox.exec("/bin/cat", "/proc/net/dev").ok().stdout
    return sum(int(word) for line in table.splitlines()[2:] for word in line.split(":")[1].split())


def test_a_kept_launcher_with_neither_owner_nor_sandbox_ends(tmp_path):
    launcher = require(paths.CAISSON).parent / "caisson-launcher"
    socket = tmp_path / "socket"
    with subprocess.Popen([launcher, "--run-dir", tmp_path, "--state-dir", tmp_path, "--listen", socket,
                           "--linger", "1"]) as running:
        assert running.wait(timeout=30) == 0
    assert not socket.exists()
