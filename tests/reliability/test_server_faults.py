"""The server under faults of its host: full, failing and slow disks, no descriptors, no memory, wrong clocks,
closed logs, damaged state. Each test brings the fault on, sees what callers get, takes it away, and sees that
the server, or the next one, has everything."""

import errno
import http.client
import os
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import time

import pytest

from harness import paths, residue
from harness.server import DEADLINE, Server, wait_until

MIB = 1 << 20
YEAR = 365 * 86400


class Faults:
    """What tests/hooks/faults.cc does to a process that has it loaded."""

    def __init__(self, path):
        self._path = path
        self.order()

    def order(self, sync_errno=0, sync_delay_ms=0, clock_offset_s=0):
        """These faults from now on, and no others."""
        with open(self._path, "r+b" if self._path.exists() else "wb") as file:
            file.write(struct.pack("<3q", sync_errno, sync_delay_ms, clock_offset_s))

    def environment(self):
        return {"LD_PRELOAD": str(paths.require(paths.FAULTS)), "CAISSON_FAULTS": str(self._path)}


@pytest.fixture
def faults(tmp_path):
    return Faults(tmp_path / "faults")


def path_of(session):
    return f"/api/sessions/{session['session_id']}"


def state_of(api, session):
    return api.get(path_of(session)).expect(200)["state"]


def refused(answer, *statuses):
    """The problem of an answer that must have one of these statuses."""
    assert answer.status in statuses, (answer.status, answer.body)
    problem = answer.json()
    assert problem["code"] and problem["detail"] and problem["remediation"], problem
    return problem


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- disks ---------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path):
    """A directory on a file system of its own with 160 MiB: more than what the server wants left."""
    directory = tmp_path / "disk"
    directory.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m", "caisson-test", directory], check=True)
    yield directory
    subprocess.run(["umount", "-l", directory], check=True)


def fill(directory):
    """Takes all that is left."""
    ballast = os.open(directory / "ballast", os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        while True:
            os.write(ballast, b"\0" * MIB)
    except OSError as full:
        assert full.errno == errno.ENOSPC
    finally:
        os.close(ballast)
    return directory / "ballast"


@pytest.mark.judges_only  # the data directory is on a file system of its own; looked at below
def test_a_full_disk_refuses_creates_lets_destroys_through_and_recovers(small_disk):
    native = small_disk / "data" / "native"
    before = residue.snapshot(home=native)
    server = Server(small_disk / "data").start()
    try:
        api = server.api()
        kept, ended = api.create(), api.create()
        ballast = fill(small_disk)
        problem = refused(api.post("/api/sessions", {}), 503, 507)
        assert problem["retryable"] is True, problem
        assert api.get("/health").status == 200
        assert api.run(kept, "echo still")["stdout"] == "still\n"
        api.destroy(ended)
        wait_until(lambda: state_of(api, ended) == "destroyed", "a destroy needs no space")
        ballast.unlink()
        fresh = wait_until(lambda: (a := api.post("/api/sessions", {})).status == 201 and a.json(), "creates work again")
        server.kill()
        server.start()
        api = server.api()
        assert {s["session_id"] for s in api.get("/api/sessions").expect(200)["sessions"]} == {
            kept["session_id"], fresh["session_id"]}
        assert state_of(api, ended) == "destroyed"
        assert api.get("/api/audit/verify").expect(200)["sound"]
        for session in (kept, fresh):
            api.destroy(session)
    finally:
        server.close()
    residue.assert_clean(before, home=native)


def test_a_flush_that_fails_acknowledges_nothing_more_until_the_next_start(make_server, faults):
    server = make_server(auth="keys", env=faults.environment())
    key = server.admin_key()
    api = server.api(key=key)
    session = api.create()
    faults.order(sync_errno=errno.EIO)
    problem = refused(api.post("/api/keys", {"name": "second", "role": "developer"}), 503)
    assert "restart" in problem["remediation"], problem
    faults.order()  # the disk seems well again; what was not flushed is still in doubt
    refused(api.post("/api/keys", {"name": "third", "role": "developer"}), 503)
    assert api.get("/health").status == 200
    assert api.get("/ready").status == 503
    server.kill()
    server.start()
    api = server.api(key=key)
    assert api.get("/ready").status == 200
    assert api.run(session, "echo mine")["stdout"] == "mine\n"
    issued = api.post("/api/keys", {"name": "third", "role": "developer"}).expect(201)
    assert server.api(key=issued["key"]).get("/api/sessions").status == 200
    assert api.get("/api/audit/verify").expect(200)["sound"]
    api.destroy(session)


def test_a_slow_disk_delays_only_what_waits_for_it(make_server, faults):
    server = make_server(auth="keys", env=faults.environment())
    api = server.api(key=server.admin_key())
    session = api.create()
    faults.order(sync_delay_ms=3000)
    waiting = api.connect()
    waiting.request("POST", "/api/keys", body='{"name": "slow", "role": "viewer"}',
                    headers={"Authorization": f"Bearer {api.key}", "Content-Type": "application/json"})
    time.sleep(0.3)  # the flush is under way
    for _ in range(5):
        assert api.get("/health").status == 200
        assert api.get(path_of(session)).expect(200)["state"] == "running"
    assert select.select([waiting.sock], [], [], 0)[0] == [], "the key was acknowledged before it was on the disk"
    faults.order()
    assert waiting.getresponse().status == 201
    waiting.close()
    api.destroy(session)


# --- descriptors and memory ----------------------------------------------------------------------


def test_without_descriptors_connections_are_refused_and_the_server_rests_and_recovers(server):
    api = server.api()
    session = api.create()
    pid = server.process.pid
    numbers = [int(name) for name in os.listdir(f"/proc/{pid}/fd")]
    limit = max(numbers) + 1
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, hard))
    host, port = server.address.rsplit(":", 1)
    # As many as there are numbers left, and twenty for whom there is none.
    crowd = [socket.create_connection((host, int(port)), timeout=DEADLINE) for _ in range(limit - len(numbers) + 20)]
    try:
        # A few may find a descriptor that was just given back; the others are closed.
        wait_until(lambda: len(select.select(crowd, [], [], 0)[0]) >= 15, "they are turned away")
        busy = processor_seconds(pid)
        time.sleep(1)
        assert processor_seconds(pid) - busy < 0.5, "the accept loop spins"
        assert api.get("/health").status == 200  # over the connection that it has
        refused(api.post("/api/sessions", {}), 503)
    finally:
        for other in crowd:
            other.close()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (hard, hard))
    fresh = wait_until(lambda: (a := api.post("/api/sessions", {})).status == 201 and a.json(), "creates work again")
    assert server.api().run(session, "echo kept")["stdout"] == "kept\n"
    for left in (session, fresh):
        api.destroy(left)


def fate_of(server):
    """"lives", "died", or nothing yet: one that dies answers nobody a while before it has gone."""
    if server.process.poll() is not None:
        return "died"
    try:
        return "lives" if server.api(check=False).get("/health").status == 200 else None
    except (OSError, http.client.HTTPException):
        return None


def test_without_memory_the_request_fails_or_the_next_server_has_everything(server):
    api = server.api()
    session = api.create()
    pid = server.process.pid
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    resource.prlimit(pid, resource.RLIMIT_AS, (size + MIB, resource.RLIM_INFINITY))
    try:
        for number in range(8):
            answer = server.api(check=False).put(f"{path_of(session)}/files/content", b"x" * (8 * MIB),
                                                 query={"path": f"/workspace/{number}"})
            assert answer.status < 500 or answer.status in (500, 503), answer.body
    except (ConnectionError, http.client.HTTPException):
        pass
    if wait_until(lambda: fate_of(server), "it lives or has died") == "lives":
        resource.prlimit(pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    else:
        server.process.stdout.close()
        server.process = None
        server.start()
    api = server.api()
    assert state_of(api, session) == "running"
    assert api.run(session, "echo here")["stdout"] == "here\n"
    assert api.get("/api/audit/verify").expect(200)["sound"]
    api.destroy(session)


# --- time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("jump", [3600, -3600, YEAR, -YEAR])
def test_a_clock_that_jumps_ends_no_session_early_and_none_late(make_server, faults, jump):
    server = make_server(env=faults.environment())
    api = server.api()
    long, short = api.create(timeout=900), api.create(timeout=2)
    running = api.post(f"{path_of(long)}/exec", {"command": "sleep 600", "background": True}).expect(202)
    faults.order(clock_offset_s=jump)
    wait_until(lambda: state_of(api, short) == "destroyed", "its own two seconds are over")
    assert state_of(api, long) == "running"
    assert api.get(f"{path_of(long)}/processes/{running['process_id']}").expect(200)["state"] == "running"
    assert api.create()["session_id"] not in (long["session_id"], short["session_id"])
    for session in api.get("/api/sessions").expect(200)["sessions"]:
        api.destroy(session)


def test_a_server_that_was_stopped_goes_on(server):
    api = server.api()
    session, expiring = api.create(), api.create(timeout=2)
    stream = api.events("POST", f"{path_of(session)}/exec", {"command": "for i in 1 2 3 4 5; do echo $i; sleep 0.2; done"})
    assert next(stream)["type"] == "started"
    server.process.send_signal(signal.SIGSTOP)
    time.sleep(3)
    server.process.send_signal(signal.SIGCONT)
    messages = list(stream)
    assert "".join(m.get("data", "") for m in messages) == "1\n2\n3\n4\n5\n"
    assert messages[-1]["exit_code"] == 0
    wait_until(lambda: state_of(api, expiring) == "destroyed", "what expired meanwhile goes")
    api.destroy(session)


# --- logs and state ------------------------------------------------------------------------------


def test_closed_output_ends_nothing(make_server):
    server = make_server("--log-level", "debug")
    server.process.stdout.close()
    server.stop()
    reader, writer = os.pipe()
    server.log = os.fdopen(writer, "wb")
    process = subprocess.Popen(
        [str(paths.CAISSON), "serve", "--listen", "127.0.0.1:0", "--data-dir", server.data_dir, "--auth", "none",
         "--log-level", "debug"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=server.log)
    server.process = process
    server.address = server._line().split("//", 1)[-1].strip()
    os.close(reader)  # whoever read the log has gone
    process.stdout.close()
    api = server.api()
    session = api.create()
    assert api.run(session, "echo unheard")["stdout"] == "unheard\n"
    api.destroy(session)
    assert process.poll() is None


def database_of(server):
    return f"{server.data_dir}/caisson.db"


def damage(path, kind):
    if kind == "no database":
        with open(path, "r+b") as file:
            file.write(b"this is not a database at all")
    elif kind == "cut":
        os.truncate(path, os.path.getsize(path) // 2)
    else:
        with open(path, "r+b") as file:
            size = os.path.getsize(path)
            for offset in range(4096, size, 4096):
                file.seek(offset)
                file.write(b"\xff" * 64)


@pytest.mark.parametrize("kind", ["no database", "cut", "flipped bytes"])
def test_damaged_state_is_refused_with_a_remedy_and_costs_no_sandbox(server, kind):
    api = server.api()
    session = api.create()
    api.run(session, "echo precious > /workspace/file")
    api.close()
    server.stop()  # calmly, so that the log is in the file
    shutil.copytree(server.data_dir, f"{server.data_dir}.kept", ignore=shutil.ignore_patterns("native"))
    try:
        for log in ("-wal", "-shm"):
            if os.path.exists(database_of(server) + log):
                os.unlink(database_of(server) + log)
        damage(database_of(server), kind)
        with open(database_of(server), "rb") as file:
            damaged = file.read()
        with pytest.raises(AssertionError, match="did not start") as failure:
            server.start()
        server.process = None
        assert "caisson.db" in str(failure.value), failure.value
        with open(database_of(server), "rb") as file:
            assert file.read() == damaged, "what is damaged is left as it is"
        for name in ("caisson.db", "caisson.db-wal", "caisson.db-shm"):
            if os.path.exists(f"{server.data_dir}/{name}"):
                os.unlink(f"{server.data_dir}/{name}")
            if os.path.exists(f"{server.data_dir}.kept/{name}"):
                shutil.copy(f"{server.data_dir}.kept/{name}", f"{server.data_dir}/{name}")
    finally:
        shutil.rmtree(f"{server.data_dir}.kept")
    server.start()
    api = server.api()
    assert api.run(session, "cat /workspace/file")["stdout"] == "precious\n", "its sandbox was left alone"
    api.destroy(session)
