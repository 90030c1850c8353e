"""The launcher dies under a running server: its sessions are lost and say so; everybody else goes on."""

import os
import signal
import threading
import time

from harness.server import wait_until


def kill_launcher(server):
    """kill -9 of the launcher; gives its pid when it has gone."""
    pid = server.launcher()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: server.launcher() != pid, "the launcher is gone")
    return pid


def path_of(session):
    return f"/api/sessions/{session['session_id']}"


def is_lost(api, session):
    """Waits until the server has noticed. What it makes before that may still be the dead launcher's."""
    return wait_until(lambda: (r := api.get(path_of(session)).expect(200))["state"] == "lost" and r, "it is lost")


def test_its_sessions_are_lost_with_a_reason_and_new_ones_work_at_once(server):
    api = server.api()
    session = api.create(name="victim")
    paused = api.create()
    api.post(f"{path_of(paused)}/pause").expect(200)
    stream = api.events("POST", f"{path_of(session)}/exec", {"command": "echo begun; sleep 600"})
    assert next(stream)["type"] == "started"
    assert next(stream)["data"] == "begun\n"
    dead = kill_launcher(server)
    is_lost(api, session)

    began = time.monotonic()
    fresh = api.create(name="successor")
    waited = time.monotonic() - began
    assert api.run(fresh, "echo on")["stdout"] == "on\n"
    assert waited < 10, f"the first create took {waited:.1f} s"
    assert server.launcher() not in (None, dead)

    last = list(stream)[-1]
    assert last["outcome"]["status"] == "lost", last
    for lost in (session, paused):
        record = is_lost(api, lost)
        assert "launcher" in record["reason"], record
        problem = api.post(f"{path_of(lost)}/exec", {"command": "true"}).expect(410)
        assert problem["code"] == "gone" and "launcher" in problem["detail"] and problem["remediation"], problem
    events = api.get("/api/events", query={"limit": 1000}).expect(200)["events"]
    assert {e["session_id"] for e in events if e["type"] == "session.lost"} == {
        session["session_id"], paused["session_id"]}
    api.create(name="victim")  # its name is free again
    for left in api.get("/api/sessions").expect(200)["sessions"]:
        api.destroy(left)


def test_creates_that_are_under_way_are_made_by_the_next_launcher(server):
    made, errors = [], []

    def create():
        answer = server.api(check=False).post("/api/sessions", {})
        if answer.status == 201:
            made.append(answer.json())
        elif answer.status != 503 or not answer.json()["retryable"]:  # one that died as it was made
            errors.append(answer.body)

    api = server.api()
    threads = [threading.Thread(target=create) for _ in range(6)]
    for thread in threads:
        thread.start()
    kill_launcher(server)
    for thread in threads:
        thread.join()
    assert not errors, errors
    # Those that were made before the launcher died went with it; the others run. None hangs between.
    for session in made:
        state = wait_until(lambda s=session: (r := api.get(path_of(s)).expect(200)["state"]) in ("running", "lost") and r,
                           "it is one or the other")
        if state == "running" and api.post(f"{path_of(session)}/exec", {"command": "true"}).status == 200:
            api.destroy(session)
    wait_until(lambda: api.get("/api/sessions").expect(200)["sessions"] == [], "none is left")


def test_the_warm_pool_fills_again(make_server):
    server = make_server("--warm", "2")
    api = server.api()

    def ready():
        for line in api.get("/metrics").body.decode().splitlines():
            if line.startswith("caisson_warm_ready "):
                return float(line.split()[1])
        raise AssertionError("no metric of the pool")

    victim = api.create()
    wait_until(lambda: ready() == 2, "the pool is full")
    kill_launcher(server)
    is_lost(api, victim)
    session = api.create()
    assert api.run(session, "echo warm")["stdout"] == "warm\n"
    wait_until(lambda: ready() == 2, "the pool is full again")
    api.destroy(session)


def test_launchers_that_keep_dying_are_replaced_ever_more_slowly_and_leave_no_zombie(server):
    api = server.api()
    for _ in range(4):
        session = api.create()
        assert api.run(session, "echo again")["stdout"] == "again\n"
        kill_launcher(server)
        is_lost(api, session)
    api.destroy(api.create())

    def zombies():
        with open(f"/proc/{server.process.pid}/task/{server.process.pid}/children", encoding="ascii") as children:
            pids = children.read().split()
        return [pid for pid in pids if open(f"/proc/{pid}/stat", encoding="ascii").read().rsplit(")", 1)[1].split()[0] == "Z"]

    wait_until(lambda: not zombies(), "no zombie")
