"""kill -9 of the server costs nobody their sandbox; what was acknowledged is there afterwards."""

import json
import os
import subprocess
import time

from harness import paths
from harness.server import DEADLINE, Server, wait_until

import pytest


def state_of(api, session):
    return api.get(f"/api/sessions/{session['session_id']}").expect(200)["state"]


def test_sessions_commands_and_output_survive_the_servers_death(server):
    api = server.api()
    session = api.create(name="survivor", env={"COLOUR": "blue"}, labels={"a": "b"})
    api.run(session, "echo kept > /workspace/file")
    path = f"/api/sessions/{session['session_id']}"
    started = api.post(f"{path}/exec", {"command": "n=0; while :; do echo $n; n=$((n+1)); sleep 0.01; done",
                                        "background": True, "label": "counter"}).expect(202)
    process = f"{path}/processes/{started['process_id']}"
    wait_until(lambda: "5\n" in api.get(f"{process}/output").expect(200)["stdout"], "it counts")
    api.close()
    server.kill()
    server.start()
    api = server.api()
    back = api.get(path).expect(200)
    assert back["state"] == "running" and back["sandbox_id"] == session["sandbox_id"]
    assert back["labels"] == {"a": "b"} and back["name"] == "survivor"
    assert api.run(session, "cat /workspace/file; echo $COLOUR")["stdout"] == "kept\nblue\n"
    again = api.get(process).expect(200)
    assert again["state"] == "running" and again["label"] == "counter"
    numbers = api.get(f"{process}/output").expect(200)["stdout"].split()
    assert numbers[:6] == ["0", "1", "2", "3", "4", "5"], numbers[:10]
    assert numbers == [str(n) for n in range(len(numbers))]
    api.delete(process).expect(204)
    wait_until(lambda: api.get(process).expect(200)["state"] == "ended", "it has ended")
    # The kept log goes on where it was, too: every number once.
    api.destroy(session)
    wait_until(lambda: state_of(api, session) == "destroyed", "it is destroyed")
    lines = [json.loads(line) for line in api.get(f"{path}/logs").body.splitlines()]
    mine = [line for line in lines if line["process"] == started["process_id"]]
    assert [line["event"] for line in mine].count("started") == 1
    logged = "".join(line["data"] for line in mine if line["event"] == "stdout").split()
    assert len(logged) >= len(numbers) and logged == [str(n) for n in range(len(logged))]


def test_a_command_whose_end_nobody_saw_is_unknown(server):
    api = server.api()
    session = api.create()
    path = f"/api/sessions/{session['session_id']}"
    started = api.post(f"{path}/exec", {"argv": ["sleep", "1000"], "background": True}).expect(202)
    ended = api.run(session, "exit 7")
    api.close()
    server.kill()
    server.end_launcher()
    server.start()
    api = server.api()
    assert state_of(api, session) == "lost"
    processes = {p["process_id"]: p for p in api.get(f"{path}/processes").expect(200)["processes"]}
    unknown = processes[started["process_id"]]
    assert unknown["outcome"]["status"] == "unknown" and unknown["outcome"]["reason"]
    assert unknown["argv"] == ["sleep", "1000"] and "exit_code" not in unknown and "usage" not in unknown
    assert processes[ended["process_id"]]["exit_code"] == 7


def test_events_survive_the_servers_death_and_numbers_go_on(server):
    api = server.api()
    session = api.create()
    api.run(session, "true")
    before = api.get("/api/events").expect(200)["events"]
    assert [event["sequence"] for event in before] == list(range(1, len(before) + 1))
    api.close()
    server.kill()
    server.start()
    api = server.api()
    api.run(session, "true")
    page = api.get("/api/events").expect(200)
    assert page["missed"] is None
    assert page["events"][:len(before)] == before
    assert [event["sequence"] for event in page["events"]] == list(range(1, len(page["events"]) + 1))
    assert page["events"][-1]["sequence"] > before[-1]["sequence"]
    # A listener that comes back goes on with the first event that it has not seen.
    stream = api.events("GET", "/api/events", query={"after": before[0]["sequence"]})
    assert next(stream) == before[1]
    stream.close()
    api.destroy(session)


def test_a_paused_session_comes_back_paused(server):
    api = server.api()
    session = api.create()
    api.post(f"/api/sessions/{session['session_id']}/pause").expect(200)
    api.close()
    server.kill()
    server.start()
    api = server.api()
    assert state_of(api, session) == "paused"
    api.post(f"/api/sessions/{session['session_id']}/resume").expect(200)
    assert api.run(session, "echo on")["stdout"] == "on\n"
    api.destroy(session)


def test_an_acknowledged_destroy_is_not_undone(server):
    api = server.api()
    session = api.create()
    api.destroy(session)
    api.close()
    server.kill()
    server.start()
    api = server.api()
    wait_until(lambda: state_of(api, session) == "destroyed", "it stays destroyed")
    assert api.get("/api/sessions").expect(200)["sessions"] == []


def test_a_session_that_expired_meanwhile_is_reaped_at_the_start(server):
    api = server.api()
    session = api.create(timeout=1)
    api.close()
    server.kill()
    time.sleep(1.2)
    server.start()
    api = server.api()
    wait_until(lambda: state_of(api, session) == "destroyed", "it is reaped")


def test_the_same_idempotency_key_after_a_crash_gives_the_same_session(server):
    api = server.api()
    first = api.post("/api/sessions", {}, headers={"Idempotency-Key": "k"}).expect(201)
    api.close()
    server.kill()
    server.start()
    api = server.api()
    again = api.post("/api/sessions", {}, headers={"Idempotency-Key": "k"}).expect(201)
    assert first["session_id"] == again["session_id"]
    api.destroy(first)


def test_when_the_launcher_dies_its_sessions_are_lost_and_said_so(server):
    api = server.api()
    session = api.create()
    api.close()
    server.kill()
    with open(f"/proc/{server.launcher()}/comm", encoding="utf-8") as comm:
        assert comm.read().startswith("caisson-launch")
    os.kill(server.launcher(), 9)
    wait_until(lambda: server.launcher() is None, "the launcher is gone")
    subprocess.run([paths.CAISSON, "sweep"], check=True, stdout=subprocess.DEVNULL)
    server.start()
    api = server.api()
    lost = api.get(f"/api/sessions/{session['session_id']}").expect(200)
    assert lost["state"] == "lost" and lost["reason"]
    fresh = api.create()
    assert api.run(fresh, "echo new")["stdout"] == "new\n"
    api.destroy(fresh)


def test_a_second_server_on_the_same_data_refuses(server):
    second = Server(server.data_dir)
    with pytest.raises(AssertionError, match="did not start"):
        second.start()
    second.process = None
    assert server.api().get("/health").status == 200


def test_a_calm_end_lets_requests_finish_and_keeps_sandboxes(server):
    api = server.api()
    session = api.create()
    stream = api.events("POST", f"/api/sessions/{session['session_id']}/exec",
                        {"command": "echo begun; sleep 0.5; echo done"})
    assert next(stream)["type"] == "started"
    assert next(stream)["data"] == "begun\n"
    server.process.send_signal(15)
    rest = list(stream)
    assert [e.get("data") for e in rest[:-1]] == ["done\n"] and rest[-1]["exit_code"] == 0
    api.close()
    process, server.process = server.process, None
    assert process.wait(timeout=DEADLINE) == 0
    process.stdout.close()
    server.log.close()
    server.start()
    assert state_of(server.api(), session) == "running"
    server.api().destroy(session)


@pytest.mark.parametrize("moment", range(6))
def test_killed_while_creating_nothing_is_left_half_made(server, moment):
    """The server dies at different moments of a burst of creates: afterwards each session runs or is gone."""
    import threading

    api = server.api(check=False)
    acknowledged = []

    def create():
        client = server.api(check=False)
        try:
            acknowledged.append(client.create())
        except Exception:  # noqa: BLE001 - the server dies under it
            pass

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(0.004 * moment)
    server.kill()
    for thread in threads:
        thread.join()
    api.close()
    server.start()
    api = server.api()
    for session in acknowledged:
        assert state_of(api, session) == "running"
        assert api.run(session, "echo alive")["stdout"] == "alive\n"
    for session in api.get("/api/sessions", query={"limit": 100}).expect(200)["sessions"]:
        wait_until(lambda s=session: state_of(api, s) in ("running", "failed", "destroyed"), "no session hangs")
        api.destroy(session)
