"""Sessions and commands over HTTP. Every answer is checked against /openapi.json by the client."""

import json
import re
import threading
import time

import pytest
import websocket

from harness.server import DEADLINE


def wait_until(condition, what, seconds=DEADLINE):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s: {what}")


def test_a_session_lives_from_create_to_destroy(api):
    session = api.create(environment="Python3", labels={"team": "search"}, metadata={"task": "7"})
    assert session["state"] == "running" and session["provider"] == "native"
    assert session["isolation"]["level"].startswith("namespaces")
    assert {"memory", "cpu", "pids"} <= {limit["name"] for limit in session["limits"] if limit["enforced"]}
    result = api.run(session, "echo out; echo err >&2; exit 3")
    assert (result["exit_code"], result["stdout"], result["stderr"]) == (3, "out\n", "err\n")
    assert result["outcome"]["status"] == "exited" and result["duration_ms"] > 0
    api.destroy(session)
    gone = api.post(f"/api/sessions/{session['session_id']}/exec", {"command": "true"})
    assert gone.status == 410 and gone.json()["code"] == "gone"
    ended = wait_until(
        lambda: (lambda s: s if s["state"] == "destroyed" else None)(
            api.get(f"/api/sessions/{session['session_id']}").expect(200)), "the session is destroyed")
    assert ended["ended_at"]


def test_an_unknown_session_is_not_found_and_destroying_twice_is_fine(api):
    missing = api.get("/api/sessions/nosuchsession0000")
    assert missing.status == 404 and missing.json()["code"] == "not_found"
    session = api.create()
    api.destroy(session)
    api.destroy(session)


def test_lists_are_filtered_by_label_and_paged_by_cursor(api):
    made = [api.create(labels={"n": str(i % 2)}, name=f"box-{i}") for i in range(5)]
    page = api.get("/api/sessions", query={"limit": 2}).expect(200)
    seen = [s["name"] for s in page["sessions"]]
    while page["next_cursor"]:
        page = api.get("/api/sessions", query={"limit": 2, "cursor": page["next_cursor"]}).expect(200)
        seen += [s["name"] for s in page["sessions"]]
    assert sorted(seen) == [f"box-{i}" for i in range(5)]
    odd = api.get("/api/sessions", query={"label": "n=1"}).expect(200)
    assert {s["name"] for s in odd["sessions"]} == {"box-1", "box-3"}
    assert api.get("/api/sessions/box-3").expect(200)["session_id"] == made[3]["session_id"]
    for session in made:
        api.destroy(session)


def test_the_same_idempotency_key_gives_the_same_session(api):
    first = api.post("/api/sessions", {"name": "once"}, headers={"Idempotency-Key": "k1"}).expect(201)
    again = api.post("/api/sessions", {"name": "once"}, headers={"Idempotency-Key": "k1"}).expect(201)
    assert first["session_id"] == again["session_id"]
    other = api.post("/api/sessions", {"name": "twice"}, headers={"Idempotency-Key": "k1"})
    assert other.status == 409 and other.json()["code"] == "conflict"
    api.destroy(first)


def test_two_live_sessions_cannot_have_one_name(api):
    session = api.create(name="alone")
    assert api.post("/api/sessions", {"name": "alone"}).status == 409
    api.destroy(session)


def test_patch_changes_limits_of_the_live_sandbox(api):
    session = api.create(limits={"memory": "64M"})
    path = f"/api/sessions/{session['session_id']}"
    hog = "python3 -c 'x = b\"x\" * (100 << 20); print(len(x))'"
    assert api.run(session, hog)["outcome"]["status"] == "out_of_memory"
    changed = api.patch(path, {"limits": {"memory": "256M"}, "metadata": {"a": "b"}, "timeout": "10m"}).expect(200)
    assert changed["metadata"] == {"a": "b"} and changed["timeout"] == 600
    assert api.run(session, hog)["exit_code"] == 0
    refused = api.patch(path, {"limits": {"memory": "1M"}})
    assert refused.status in (400, 422), refused.body
    api.destroy(session)


def test_a_paused_session_stands_still_and_goes_on(api):
    session = api.create()
    path = f"/api/sessions/{session['session_id']}"
    process = api.post(f"{path}/exec", {"command": "while :; do echo tick; sleep 0.02; done", "background": True}).expect(202)
    output = f"{path}/processes/{process['process_id']}/output"
    wait_until(lambda: "tick" in api.get(output).expect(200)["stdout"], "it ticks")
    assert api.post(f"{path}/pause").expect(200)["state"] == "paused"
    refused = api.post(f"{path}/exec", {"command": "true"})
    assert refused.status == 409, refused.body
    assert api.post(f"{path}/resume").expect(200)["state"] == "running"
    now = api.get(output).expect(200)["output"]["stdout_end"]
    wait_until(lambda: api.get(output).expect(200)["output"]["stdout_end"] > now, "it ticks on")
    api.destroy(session)


def test_a_session_expires(api):
    session = api.create(timeout=1)
    ended = wait_until(
        lambda: (lambda s: s if s["state"] == "destroyed" else None)(
            api.get(f"/api/sessions/{session['session_id']}").expect(200)), "it is reaped")
    assert "time" in ended["reason"] or "expire" in ended["reason"]


def test_output_streams_as_it_is_written(api):
    session = api.create()
    path = f"/api/sessions/{session['session_id']}/exec"
    types = []
    for event in api.events("POST", path, {"command": "echo one; read x; echo $x", "stdin": "two\n"}):
        types.append(event["type"])
        if event["type"] == "ended":
            assert event["exit_code"] == 0 and event["outcome"]["status"] == "exited"
    assert types[0] == "started" and types[-1] == "ended" and types.count("ended") == 1
    response = api.stream("POST", path, {"command": "printf 'a\\303'; sleep 0.1; printf '\\244b'"},
                          {"Accept": "text/event-stream"})
    assert response.getheader("content-type").startswith("text/event-stream")
    text = response.read().decode()
    response.connection.close()
    data = "".join(json.loads(line[5:]).get("data", "") for line in text.splitlines() if line.startswith("data:"))
    assert data == "a\u00e4b"  # the character that came in two pieces is whole
    api.destroy(session)


def test_a_command_whose_client_goes_is_ended(api):
    session = api.create()
    path = f"/api/sessions/{session['session_id']}"
    stream = api.events("POST", f"{path}/exec", {"command": "echo go; exec sleep 1000"})
    assert next(stream)["type"] == "started"
    assert next(stream)["data"] == "go\n"
    stream.close()
    wait_until(lambda: not [p for p in api.get(f"{path}/processes").expect(200)["processes"] if p["state"] == "running"],
               "the command has gone with its client")
    api.destroy(session)


def test_background_commands_are_listed_waited_for_and_replayed(api):
    session = api.create()
    path = f"/api/sessions/{session['session_id']}"
    started = api.post(f"{path}/exec", {"argv": ["sh", "-c", "echo hello; read x; echo got $x; exit 4"],
                                        "background": True, "stdin_open": True, "label": "job"}).expect(202)
    process = f"{path}/processes/{started['process_id']}"
    assert [p["label"] for p in api.get(f"{path}/processes").expect(200)["processes"]] == ["job"]
    assert api.get(f"{process}/wait", query={"timeout": 0}).expect(200)["state"] == "running"
    api.post(f"{process}/input", {"data": "it\n", "eof": True}).expect(204)
    ended = api.get(f"{process}/wait").expect(200)
    assert ended["state"] == "ended" and ended["exit_code"] == 4
    assert api.get(f"{process}/output").expect(200)["stdout"] == "hello\ngot it\n"
    assert api.get(f"{process}/output", query={"stdout_from": 6}).expect(200)["stdout"] == "got it\n"
    replay = list(api.events("GET", f"{process}/output"))
    assert "".join(e.get("data", "") for e in replay) == "hello\ngot it\n" and replay[-1]["type"] == "ended"
    api.delete(process).expect(204)
    assert api.get(f"{process}/output").status in (404, 410)  # forgotten inside; the record stays
    assert api.get(process).expect(200)["exit_code"] == 4
    api.destroy(session)


def test_signals_reach_the_whole_tree(api):
    session = api.create()
    path = f"/api/sessions/{session['session_id']}"
    started = api.post(f"{path}/exec", {"command": "sleep 1000 & sleep 1000 & wait", "background": True}).expect(202)
    process = f"{path}/processes/{started['process_id']}"
    bad = api.post(f"{process}/signal", {"signal": "SIGNOTHING"})
    assert bad.status == 400
    api.post(f"{process}/signal", {"signal": "SIGKILL"}).expect(204)
    assert api.get(f"{process}/wait").expect(200)["outcome"]["status"] in ("signaled", "cancelled")
    assert "sleep" not in api.run(session, "ps -ef || cat /proc/[0-9]*/comm")["stdout"].replace("sleep 1000 &", "")
    api.destroy(session)


def test_a_terminal_over_a_websocket(server, api):
    session = api.create()
    socket = websocket.create_connection(
        f"ws://{server.address}/api/sessions/{session['session_id']}/exec", timeout=DEADLINE)
    socket.send(json.dumps({"argv": ["bash", "--norc"], "pty": True, "rows": 30, "cols": 90, "env": {"PS1": "$ "}}))
    assert json.loads(socket.recv())["type"] == "started"
    socket.send(json.dumps({"type": "stdin", "data": "stty size; exit 7\n"}))
    seen, ended = "", None
    while ended is None:
        event = json.loads(socket.recv())
        seen += event.get("data", "")
        ended = event if event["type"] == "ended" else None
    assert "30 90" in seen and ended["exit_code"] == 7
    socket.close()
    api.destroy(session)


def test_attach_and_come_back_with_replay(server, api):
    session = api.create(min_isolation="any")
    path = f"/api/sessions/{session['session_id']}"
    started = api.post(f"{path}/exec", {"command": "cat", "background": True, "stdin_open": True}).expect(202)
    target = f"ws://{server.address}{path}/processes/{started['process_id']}/attach"
    first = websocket.create_connection(target, timeout=DEADLINE)
    first.recv()
    first.send_binary(b"one\n")
    assert json.loads(first.recv())["data"] == "one\n"
    first.close()
    second = websocket.create_connection(target + "?stdout_from=2", timeout=DEADLINE)
    second.recv()
    assert json.loads(second.recv())["data"] == "e\n"
    second.send(json.dumps({"type": "nonsense"}))
    assert json.loads(second.recv())["type"] == "error"
    second.send(json.dumps({"type": "eof"}))
    assert json.loads(second.recv())["type"] == "ended"
    second.close()
    api.destroy(session)


@pytest.mark.parametrize("body, part", [
    ({"enviroment": "host"}, "environment"),
    ({"limits": {"memroy": "1G"}}, "limits.memory"),
    ({"limits": {"memory": "lots"}}, "limits.memory"),
    ({"timeout": -1}, "timeout"),
    ({"network": "full"}, "network"),
    ({"labels": {"a": 1}}, "labels"),
    ({"profile": "lax"}, "profile"),
    ({"min_isolation": "vm"}, "min_isolation"),
    ({"environment": "nosuch"}, "nosuch"),
    ([], "object"),
])
def test_a_create_that_makes_no_sense_is_refused_by_name(api, body, part):
    answer = api.post("/api/sessions", body)
    assert answer.status == (501 if part == "network" else answer.status) and answer.status in (400, 404, 422, 501), answer.body
    problem = answer.json()
    assert part in problem["detail"] + problem.get("remediation", ""), problem
    assert answer.headers["content-type"].startswith("application/problem+json")
    assert answer.headers["x-request-id"] == problem["request_id"]


@pytest.mark.parametrize("body", [b"{", b'{"a":1,"a":2}', b'\xff', b'{"name": "\\ud800"}', b"[" * 100, b'{} x'])
def test_invalid_json_is_a_400_that_says_where(api, body):
    answer = api.call("POST", "/api/sessions", body=body, headers={"Content-Type": "application/json"})
    assert answer.status == 400 and answer.json()["code"] == "invalid_argument"


def test_form_posts_are_not_taken_for_json(api):
    answer = api.call("POST", "/api/sessions", body=b"{}", headers={"Content-Type": "text/plain"})
    assert answer.status in (400, 415)


@pytest.mark.parametrize("command, code, status", [
    ({"argv": ["/no/such"]}, 404, "not_found"),
    ({"command": "true", "argv": ["true"]}, 400, "invalid_argument"),
    ({}, 400, "invalid_argument"),
    ({"command": "true", "on_overflow": "block"}, 400, "invalid_argument"),
    ({"command": "true", "background": True, "artifacts": ["*"]}, 400, "invalid_argument"),
    ({"command": "true", "cwd": "/nowhere"}, 400, "invalid_argument"),
    ({"command": "true", "user": "nobody-here"}, 400, "invalid_argument"),
])
def test_a_command_that_cannot_start_is_an_error_with_a_remedy(api, command, code, status):
    session = api.create()
    answer = api.post(f"/api/sessions/{session['session_id']}/exec", command)
    assert (answer.status, answer.json()["code"]) == (code, status), answer.body
    api.destroy(session)


def test_unknown_paths_methods_and_parameters(api):
    assert api.get("/api/nothing").status == 404
    answer = api.call("PUT", "/api/sessions")
    assert answer.status == 405 and "GET" in answer.headers["allow"]
    answer = api.get("/api/sessions", query={"limt": 5})
    assert answer.status == 400 and "limit" in answer.json()["remediation"]
    assert api.get("/api/sessions", query={"limit": 0}).status == 400
    assert api.get("/api/sessions", query={"cursor": "zzz"}).status == 400


def test_the_original_routes_speak_their_own_shapes(api):
    session = api.post("/create_session").expect(200)
    assert set(session) == {"session_id"}
    result = api.post("/execute", {"session_id": session["session_id"], "command": "echo hi; echo err >&2; exit 2"}).expect(200)
    assert result == {"exit_code": 2, "output": "hi\nerr\n"}
    task = api.post("/execute", {"task": "write a program"})
    assert task.status == 501 and task.json()["remediation"]
    code = api.post("/api/e2b/execute", {"session_id": session["session_id"], "code": "print(6*7)"}).expect(200)
    assert code == {"stdout": "42\n", "stderr": "", "results": [], "artifacts": []}
    written = api.post("/api/e2b/files", {"session_id": session["session_id"], "path": "a/b.txt", "content": "text"}).expect(200)
    assert written == {"path": "/workspace/a/b.txt", "size": 4}
    listed = api.get(f"/api/e2b/files/{session['session_id']}").expect(200)
    assert [f["name"] for f in listed["files"]] == ["a"]
    assert api.post("/cleanup", {"session_id": session["session_id"]}).expect(200)["status"] == "cleaned"
    gone = api.post("/execute", {"session_id": session["session_id"], "command": "true"})
    assert gone.status == 410 and "error" in gone.json()


def test_answers_say_how_long_the_server_took(api):
    for answer in (api.get("/health"), api.get("/api/sessions/nosuchsession0000")):
        assert re.fullmatch(r"total;dur=\d+\.\d{3}", answer.headers["server-timing"])


def test_health_ready_metrics_and_docs(api):
    assert api.get("/health").expect(200)["status"] == "ok"
    assert api.get("/ready").expect(200)["status"] == "ready"
    session = api.create()
    api.run(session, "true")
    metrics = api.get("/metrics").expect(200).decode()
    assert "caisson_sessions 1\n" in metrics
    assert 'caisson_session_create_seconds_count{provider="native",environment="host"} 1\n' in metrics
    assert session["session_id"] not in metrics
    assert {"caisson_warm_ready", "caisson_warm_hits_total", "caisson_warm_misses_total"} <= set(metrics.split())
    page = api.get("/docs")
    assert page.status == 200 and b"/api/sessions/{id}/exec" in page.body
    assert "default-src 'none'" in page.headers["content-security-policy"]
    api.destroy(session)


def test_many_creates_at_once_all_succeed(server, api):
    made, failures = [], []

    def work():
        client = server.api(check=False)
        try:
            session = client.create()
            assert client.run(session, "echo $$")["exit_code"] == 0
            made.append(session)
        except BaseException as error:  # noqa: BLE001 - shown below
            failures.append(error)
        finally:
            client.close()

    threads = [threading.Thread(target=work) for _ in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len({s["sandbox_id"] for s in made}) == 24
    for session in made:
        api.destroy(session)


def test_max_sessions_is_a_wall_and_a_queue_waits_for_room(make_server):
    server = make_server("--max-sessions", "1")
    api = server.api()
    first = api.create()
    full = api.post("/api/sessions")
    assert full.status in (429, 503) and full.json()["retryable"] and "retry-after" in full.headers
    waiting = []
    thread = threading.Thread(target=lambda: waiting.append(server.api(check=False).post("/api/sessions", {"queue": 30})))
    thread.start()
    time.sleep(0.2)
    assert not waiting
    api.destroy(first)
    thread.join()
    api.destroy(waiting[0].expect(201))


def test_processes_of_a_paused_session_are_seen_but_not_touched(api):
    session = api.create()
    path = f"/api/sessions/{session['session_id']}"
    process = api.post(f"{path}/exec", {"command": "read line", "background": True, "stdin_open": True}).expect(202)
    one = f"{path}/processes/{process['process_id']}"
    api.post(f"{path}/pause").expect(200)
    assert api.get(one).expect(200)["state"] == "running"
    for touch in (lambda: api.delete(one), lambda: api.post(f"{one}/signal", {"signal": "SIGTERM"}),
                  lambda: api.post(f"{one}/input", {"data": "x"}), lambda: api.post(f"{one}/resize", {"rows": 1, "cols": 1})):
        refused = touch()
        assert refused.status == 409 and refused.json()["remediation"] == "resume it first"
    api.post(f"{path}/resume").expect(200)
    assert api.post(f"{one}/resize", {"rows": 1, "cols": 1}).status == 409  # it has no terminal
    api.delete(one).expect(204)
    api.destroy(session)


def test_a_command_that_bars_every_path_is_killed_when_its_time_is_over(api):
    session = api.create()
    result = api.run(session, "chmod 0 / && setsid sleep 600 & sleep 600", timeout="1s")
    assert result["outcome"]["status"] == "timeout"
    assert not [p for p in api.get(f"/api/sessions/{session['session_id']}/processes").expect(200)["processes"]
                if p["state"] == "running"]
    api.destroy(session)
