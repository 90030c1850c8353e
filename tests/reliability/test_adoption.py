"""A launcher that is kept outlives its owner: the next owner finds the sandboxes, their processes and all of
their output."""

import os
import shutil
import signal
import tempfile
import time

import pytest

from harness import paths, residue
from harness.cli import Cli
from harness.driver import Driver, Refused
from harness.paths import require

MIB = 1 << 20

pytestmark = pytest.mark.judges_only  # the launcher outlives drivers on purpose; `kept` looks for residue


@pytest.fixture
def kept():
    """A short CAISSON_HOME (a socket's path has 107 bytes) whose launcher is ended afterwards."""
    home = tempfile.mkdtemp(prefix="caisson-kept-")
    before = residue.snapshot(home=home)
    try:
        yield home
        with Driver(require(paths.DRIVER), home=home, arguments=["--keep"]) as last:
            last.shutdown()
        residue.assert_clean(before, home=home)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def owner(home):
    return Driver(require(paths.DRIVER), home=home, arguments=["--keep"])


def counting(lines, pause="0.002"):
    return ["/bin/sh", "-c", f"i=0; while [ $i -lt {lines} ]; do i=$((i+1)); echo line $i; sleep {pause}; done; "
                             "echo end >&2; exit 7"]


def test_a_process_that_writes_while_its_owner_dies_loses_nothing(kept):
    first = owner(kept)
    sandbox = first.create()
    handle = sandbox.start(*counting(400), label="the counter").handle
    time.sleep(0.3)
    first.kill()
    time.sleep(0.3)
    with owner(kept) as second:
        assert second.list()["ids"] == [sandbox.id]
        adopted = second.adopt(sandbox.id)
        found = adopted.processes()
        assert [(p["process"], p["label"]) for p in found] == [(handle, "the counter")]
        outcome = adopted.attach(handle).wait()
        assert (outcome.status, outcome.exit_code, outcome.stderr) == ("exited", 7, "end\n"), repr(outcome)
        assert outcome.stdout == "".join(f"line {n}\n" for n in range(1, 401))
        adopted.exec("/bin/true").ok()
        adopted.destroy()
        assert second.list()["ids"] == []


def test_an_owner_that_dies_while_it_reads_leaves_the_output_to_the_next(kept):
    """Half of the output was on its way to the dead one; the ring gives it again."""
    first = owner(kept)
    sandbox = first.create()
    handle = sandbox.start(*counting(300)).handle
    first.send("wait", id=sandbox.id, process=handle)
    time.sleep(0.4)
    first.kill()
    with owner(kept) as second:
        adopted = second.adopt(sandbox.id)
        outcome = adopted.attach(handle).wait()
        assert outcome.stdout == "".join(f"line {n}\n" for n in range(1, 301)), repr(outcome)
        adopted.destroy()


def test_a_reader_comes_back_to_where_it_was(kept):
    first = owner(kept)
    sandbox = first.create()
    handle = sandbox.start(*counting(50)).handle
    time.sleep(0.6)
    first.kill()
    with owner(kept) as second:
        adopted = second.adopt(sandbox.id)
        whole = "".join(f"line {n}\n" for n in range(1, 51))
        outcome = adopted.attach(handle, stdout_from=100).wait()
        assert outcome.stdout == whole[100:], repr(outcome)
        adopted.destroy()


def test_what_nobody_reads_waits_for_the_next_owner(kept):
    """Three times what the ring holds: the writer blocks until somebody comes, and nothing is lost."""
    first = owner(kept)
    sandbox = first.create()
    handle = sandbox.start("/bin/sh", "-c", f"sleep 0.5; head -c {3 * MIB} /dev/zero | tr '\\0' x").handle
    first.kill()
    time.sleep(1)
    with owner(kept) as second:
        adopted = second.adopt(sandbox.id)
        time.sleep(0.3)
        outcome = adopted.attach(handle).wait()
        assert outcome.exit_code == 0 and outcome.stdout == "x" * (3 * MIB), (outcome.status, len(outcome.stdout))
        adopted.destroy()


def test_a_process_that_ended_between_two_owners_still_tells_its_outcome(kept):
    first = owner(kept)
    sandbox = first.create()
    handle = sandbox.start("/bin/sh", "-c", "sleep 0.4; echo late; exit 9").handle
    first.kill()
    time.sleep(0.9)
    with owner(kept) as second:
        adopted = second.adopt(sandbox.id)
        assert [p["ended"] for p in adopted.processes()] == [True]
        outcome = adopted.attach(handle).wait()
        assert (outcome.exit_code, outcome.stdout) == (9, "late\n"), repr(outcome)
        adopted.destroy()


def test_files_limits_and_stats_are_there_for_the_next_owner(kept):
    first = owner(kept)
    sandbox = first.create(memory=64 * MIB)
    sandbox.write("/workspace/kept", b"still here")
    first.kill()
    with owner(kept) as second:
        adopted = second.adopt(sandbox.id)
        assert adopted.read("/workspace/kept") == b"still here"
        assert adopted.stats()["disk_used"] > 0
        assert adopted.exec("/usr/bin/python3", "-c", "x = b'x' * (1 << 28)").status == "out_of_memory"
        adopted.update(memory=256 * MIB)
        adopted.exec("/usr/bin/python3", "-c", "x = b'x' * (1 << 26)").ok()
        adopted.destroy()


def test_a_sandbox_that_was_paused_when_its_owner_died_can_be_destroyed(kept):
    first = owner(kept)
    sandbox = first.create()
    sandbox.start("/bin/sleep", "300")
    sandbox.pause()
    first.kill()  # ending the launcher ends the sandbox, too


def test_many_owners_die_and_the_sandbox_lives(kept):
    first = owner(kept)
    sandbox = first.create()
    sleeper = sandbox.start("/bin/sleep", "300").handle
    first.kill()
    for number in range(8):
        driver = owner(kept)
        adopted = driver.adopt(sandbox.id)
        assert adopted.exec("/bin/echo", number).ok().stdout == f"{number}\n"
        assert sleeper in [p["process"] for p in adopted.processes()]
        driver.kill()
    with owner(kept) as last:
        last.adopt(sandbox.id).destroy()


def test_a_sandbox_that_was_being_made_for_a_dead_owner_is_nobodys(kept):
    with owner(kept) as standing:
        for moment in (0, 0.001, 0.003, 0.006, 0.012):
            dying = owner(kept)
            dying.call("list")
            dying.send("create", spec={})
            time.sleep(moment)
            dying.kill()
        time.sleep(0.5)
        for left in standing.list()["ids"]:  # those that were done in time can be had
            standing.adopt(left).destroy()
        assert standing.list()["ids"] == []


def test_what_does_not_exist_cannot_be_adopted(kept):
    with owner(kept) as driver:
        for name in ("no-such-sandbox", "", "../x"):
            with pytest.raises(Refused) as caught:
                driver.adopt(name)
            assert caught.value.code in ("not_found", "invalid_argument"), caught.value
        driver.create().destroy()


def test_an_orderly_end_takes_the_socket_along(kept):
    with owner(kept) as driver:
        driver.list()
        assert os.path.exists(f"{kept}/launcher.sock")
        driver.shutdown()
    end = time.monotonic() + 3
    while os.path.exists(f"{kept}/launcher.sock") and time.monotonic() < end:
        time.sleep(0.02)
    assert not os.path.exists(f"{kept}/launcher.sock")


def test_owners_that_come_at_once_share_one_launcher(kept):
    owners = [owner(kept) for _ in range(4)]
    ids = sorted(driver.create().id for driver in owners)
    try:
        assert [sorted(driver.list()["ids"]) for driver in owners] == [ids] * 4
    finally:
        for driver in owners:
            driver.close()


def test_a_kept_launcher_that_is_killed_is_swept_and_replaced(kept):
    before = residue.snapshot(home=kept)
    first = owner(kept)
    sandbox = first.create()
    sandbox.start("/bin/sleep", "300")
    launcher = _launcher_of(first.pid)
    first.kill()
    os.kill(launcher, signal.SIGKILL)
    time.sleep(0.3)
    assert Cli(kept, require(paths.CAISSON)).run("sweep").returncode == 0
    residue.assert_clean(before, home=kept)
    with owner(kept) as second:
        assert second.list()["ids"] == []
        with second.create() as again:
            again.exec("/bin/true").ok()


def _launcher_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as children:
        for child in children.read().split():
            with open(f"/proc/{child}/comm", encoding="ascii") as name:
                if name.read().startswith("caisson-launch"):
                    return int(child)
    raise AssertionError("the driver has no launcher")
