"""The harness watches for what it says it watches for."""

import os
import subprocess
import time

import pytest

from harness import catalogue, neighbour, paths, residue
from harness.sentinels import Sentinels

pytestmark = pytest.mark.judges_only


def test_a_process_left_behind_is_found_and_named():
    before = residue.snapshot()
    process = subprocess.Popen([str(paths.PROBE), "inotify", "60"], stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.2)
        with pytest.raises(AssertionError, match="probe"):
            residue.assert_clean(before, patience=0.1)
    finally:
        process.kill()
        process.wait()
    residue.assert_clean(before)


def test_an_orphan_of_an_orphan_is_found_and_its_end_is_seen():
    before = residue.snapshot()
    subprocess.run([str(paths.PROBE), "daemonise", "1"], check=True)
    time.sleep(0.2)
    left = residue.wait_until_clean(before, patience=0.1)
    assert "left-behind" in residue.describe(left)
    residue.assert_clean(before)


def test_a_dead_child_that_nobody_waits_for_is_found():
    before = residue.snapshot()
    parent = subprocess.Popen(["/usr/bin/python3", "-c",
                               "import os, time\nif os.fork() == 0: os._exit(0)\ntime.sleep(60)"])
    try:
        time.sleep(0.3)
        with pytest.raises(AssertionError, match=":zombie"):
            residue.assert_clean(before, patience=0.1)
    finally:
        parent.kill()
        parent.wait()


@pytest.mark.skipif(not paths.IS_ROOT, reason="making cgroups and mounts needs root")
def test_a_cgroup_left_behind_is_found():
    before = residue.snapshot()
    path = next((p for p in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup") if os.access(p, os.W_OK)), None)
    if path is None:
        pytest.skip("no writable cgroup hierarchy")
    os.mkdir(f"{path}/caisson-harness")
    try:
        with pytest.raises(AssertionError, match="caisson-harness"):
            residue.assert_clean(before, patience=0.1)
    finally:
        os.rmdir(f"{path}/caisson-harness")
    residue.assert_clean(before)


@pytest.mark.skipif(not paths.IS_ROOT, reason="making cgroups and mounts needs root")
def test_a_mount_left_behind_is_found(tmp_path):
    target = tmp_path / "caisson-mount"
    target.mkdir()
    before = residue.snapshot()
    subprocess.run(["mount", "-t", "tmpfs", "none", target], check=True)
    try:
        with pytest.raises(AssertionError, match="caisson-mount"):
            residue.assert_clean(before, patience=0.1)
    finally:
        subprocess.run(["umount", target], check=True)
    residue.assert_clean(before)


def test_a_file_left_below_home_is_found_and_a_cache_is_not(tmp_path):
    before = residue.snapshot(home=tmp_path)
    (tmp_path / "cache" / "host-1").mkdir(parents=True)
    (tmp_path / "cache").joinpath("x").write_text("kept")
    after = residue.difference(before, residue.snapshot(home=tmp_path))
    assert "state" not in after
    (tmp_path / "layers").mkdir()
    (tmp_path / "layers" / "upper").mkdir()
    with pytest.raises(AssertionError, match="layers/upper"):
        residue.assert_clean(before, patience=0.1, home=tmp_path)


def test_sentinels_stay_silent_when_nobody_touches_them(tmp_path):
    with Sentinels(tmp_path) as standing:
        assert standing.changes() == []


@pytest.mark.parametrize("touch, words", [
    (lambda s: open(s.path, "ab").write(b"x"), "canary file"),
    (lambda s: os.chmod(s.path, 0o644), "canary file"),
    (lambda s: s._process.kill() or s._process.wait(), "canary process"),
    (lambda s: os.kill(s._process.pid, 19) or time.sleep(0.1), "canary process"),
    (lambda s: probe("connect", "127.0.0.1", str(s.port)), "tcp canary accepted"),
    (lambda s: probe("abstract", s.token), "abstract canary accepted"),
])
def test_sentinels_notice(tmp_path, touch, words):
    with Sentinels(tmp_path) as standing:
        touch(standing)
        time.sleep(0.1)
        assert any(words in change for change in standing.changes()), standing.changes()


def test_the_probe_finds_on_the_host_what_sentinels_planted(tmp_path):
    with Sentinels(tmp_path) as standing:
        found = probe("find", standing.token, hex(standing.ipc_key))
        assert '"open"' in found and "shm" in found and "mq" in found, found


def test_the_neighbour_is_judged_by_ratio_above_the_floor():
    quiet = {k: {"count": 9, "p99": 30_000} for k in neighbour.FLOOR} | {"failures": 0}
    fine = {k: {"count": 9, "p99": 55_000} for k in neighbour.FLOOR} | {"failures": 0}
    slow = {k: {"count": 9, "p99": 99_000} for k in neighbour.FLOOR} | {"failures": 0}
    assert neighbour.complaints(quiet, fine) == []
    assert len(neighbour.complaints(quiet, slow)) == 3
    assert neighbour.complaints(quiet, fine | {"failures": 1}) == ["1 failures"]


def test_the_bare_host_is_open_so_the_probe_can_tell():
    lines = subprocess.run([paths.PROBE, "--all"], capture_output=True, text=True, check=True,
                           stdin=subprocess.DEVNULL).stdout.splitlines()
    rows = catalogue.attempts()
    verdicts = {v["name"]: v for v in map(catalogue.json.loads, lines)}
    assert set(verdicts) == set(rows)
    for name in ("A01", "A19.own", "A19.filter", "A23", "C07", "C11", "E03", "E14.getpid", "E16", "E17.exec",
                 "F10", "F12", "G07", "G08.high", "H14", "I01"):
        assert verdicts[name]["result"] == "open", verdicts[name]
    errors = [v for v in verdicts.values() if v["result"] == "error"]
    assert not errors, errors


def test_every_attempt_of_the_table_is_judged():
    rows = catalogue.attempts()
    assert len(rows) > 250
    for row in rows.values():
        for profile in ("default", "strict"):
            for user in ("0", "1000"):
                assert catalogue.expected(row, profile, user), row
    open_verdict = {"name": "A01", "result": "open", "errno": "", "detail": ""}
    assert catalogue.complaint(rows["A01"], open_verdict, "default", "0")
    assert not catalogue.complaint(rows["A01"], open_verdict | {"result": "refused", "errno": "EPERM"},
                                   "default", "0")


def probe(*arguments):
    return subprocess.run([str(paths.PROBE), *arguments], capture_output=True, text=True).stdout
