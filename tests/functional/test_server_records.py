"""What a server remembers: commands, events, logs, and for how long."""

import gzip
import io
import json
import tarfile
import time

import websocket

DEADLINE = 60


def until(condition, what):
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {DEADLINE} s: {what}")


def test_ended_commands_are_listed_also_after_the_sessions_end(server):
    api = server.api()
    session = api.create(name="recorded")
    path = f"/api/sessions/{session['session_id']}/processes"
    api.run(session, "exit 3", env={"TOKEN": "s3cr3t"}, stdin="t0ps3cret", cwd="/tmp")
    api.run(session, "echo out; kill -9 $$")
    running = api.post(f"/api/sessions/{session['session_id']}/exec",
                       {"argv": ["sleep", "1000"], "background": True, "label": "nap"}).expect(202)
    listed = api.get(path).expect(200)["processes"]
    assert [p["state"] for p in listed] == ["running", "ended", "ended"]
    assert listed[0]["process_id"] == running["process_id"]
    killed, failed = listed[1:]
    assert killed["outcome"]["status"] == "signaled" and killed["signal"] == 9
    assert killed["usage"]["stdout_bytes"] == 4
    assert failed["exit_code"] == 3 and failed["cwd"] == "/tmp" and failed["argv"][-1] == "exit 3"
    assert failed["ended_at"] >= failed["started_at"]
    assert "s3cr3t" not in json.dumps(listed) and "t0ps3cret" not in json.dumps(listed)
    # By state, and in pages.
    assert [p["state"] for p in api.get(path, query={"state": "running"}).expect(200)["processes"]] == ["running"]
    first = api.get(path, query={"state": "ended", "limit": 1}).expect(200)
    second = api.get(path, query={"state": "ended", "limit": 1, "cursor": first["next_cursor"]}).expect(200)
    assert first["processes"] == [killed] and second["processes"] == [failed]
    assert second["next_cursor"] is None
    api.get(path, query={"state": "asleep"}).expect(400)
    one = f"{path}/{failed['process_id']}"
    assert api.get(one).expect(200) == failed
    assert api.get(f"{one}/wait").expect(200) == failed
    assert "logs" in api.get(f"{one}/output").expect(410)["remediation"]
    # After the end of the session, and under its name too.
    api.destroy(session)
    until(lambda: len(api.get(path, query={"state": "ended"}).expect(200)["processes"]) == 3, "all have ended")
    assert api.get("/api/sessions/recorded/processes").expect(200)["processes"][1:] == [killed, failed]
    assert api.get(path).expect(200)["processes"][0]["outcome"]["status"] != "exited"


def test_the_name_of_an_ended_session_is_gone_like_its_id(server):
    api = server.api()
    session = api.create(name="short-lived")
    api.destroy(session)
    for name in ("short-lived", session["session_id"]):
        until(lambda name=name: api.get(f"/api/sessions/{name}").expect(200)["state"] == "destroyed", "it ends")
        answer = api.post(f"/api/sessions/{name}/exec", {"command": "true"}).expect(410)
        assert answer["code"] == "gone"
    api.post("/api/sessions/never/exec", {"command": "true"}).expect(404)
    # A new one takes the name over.
    again = api.create(name="short-lived")
    assert api.get("/api/sessions/short-lived").expect(200)["session_id"] == again["session_id"]
    api.destroy(again)


def test_what_is_old_is_forgotten(server):
    api = server.api()
    session = api.create()
    api.run(session, "echo kept > /workspace/file")
    kept = api.post(f"/api/sessions/{session['session_id']}/artifacts", {"patterns": ["/workspace/file"]}).expect(201)
    assert len(kept["artifacts"]) == 1
    api.destroy(session)
    path = f"/api/sessions/{session['session_id']}"
    until(lambda: api.get(path).expect(200)["state"] == "destroyed", "it ends")
    last = api.get("/api/events").expect(200)["next_after"]
    api.close()
    server.stop()
    server.start()
    api = server.api()
    assert api.get(path).expect(200)["state"] == "destroyed"  # it is young
    assert len(api.get(f"{path}/artifacts").expect(200)["artifacts"]) == 1
    api.close()
    server.stop()
    server.start("--keep-records", "1ms", "--keep-logs", "1ms", "--keep-artifacts", "1ms", "--keep-events", "1ms")
    api = server.api()
    until(lambda: api.get(path).status == 404, "the session is forgotten")
    until(lambda: api.get(f"{path}/artifacts").status == 404, "its artifact is forgotten")
    page = until(lambda: (lambda p: p if p["missed"] else None)(api.get("/api/events").expect(200)),
                 "its events are forgotten")
    assert page["missed"]["from"] == 1 and page["missed"]["to"] >= last - 1
    live = api.create()
    assert api.get(f"/api/sessions/{live['session_id']}").expect(200)["state"] == "running"
    api.destroy(live)


def test_one_websocket_carries_events_and_many_commands(server):
    api = server.api()
    session = api.create()
    exec_path = f"/api/sessions/{session['session_id']}/exec"
    processes = [api.post(exec_path, {"command": f"echo hello {n}; read line; echo got $line", "background": True,
                                      "stdin_open": True}).expect(202)["process_id"] for n in range(3)]
    socket = websocket.create_connection(f"ws://{server.address}/api/stream", timeout=DEADLINE)
    socket.send(json.dumps({"type": "events", "channel": "e", "session": session["session_id"], "after": 0}))
    for process in processes:
        socket.send(json.dumps({"type": "follow", "channel": f"p{process}", "session": session["session_id"],
                                "process": process}))
    socket.send(json.dumps({"type": "follow", "channel": "none", "session": session["session_id"], "process": 9999}))
    socket.send(json.dumps({"type": "dance", "channel": "x"}))
    for process in processes:
        api.post(f"/api/sessions/{session['session_id']}/processes/{process}/input",
                 {"data": f"{process}\n"}).expect(204)
    output = {f"p{process}": "" for process in processes}
    closed, errors, told = set(), {}, []
    while closed != set(output) or told.count("exec.ended") < 3 or len(errors) < 2:
        message = json.loads(socket.recv())
        if message.get("type") == "error":
            errors[message["channel"]] = message["code"]
        elif message.get("type") == "closed":
            closed.add(message["channel"])
        elif message.get("type") != "opened":
            inner = message["message"]
            if message["channel"] == "e":
                told.append(inner["type"])
            elif inner["type"] == "stdout":
                output[message["channel"]] += inner["data"]
    assert output == {f"p{process}": f"hello {n}\ngot {process}\n" for n, process in enumerate(processes)}
    assert errors == {"none": "not_found", "x": "invalid_argument"}
    assert told[:2] == ["session.created", "session.running"]
    # A channel that is closed says no more, and its name is free.
    socket.send(json.dumps({"type": "close", "channel": "e"}))
    while json.loads(socket.recv()) != {"type": "closed", "channel": "e"}:
        pass
    api.run(session, "true")
    socket.send(json.dumps({"type": "close", "channel": "e"}))
    answer = json.loads(socket.recv())
    assert answer["type"] == "error" and answer["code"] == "not_found"
    socket.close()
    api.destroy(session)


def test_archives_may_be_gzip_both_ways(server):
    api = server.api()
    session = api.create()
    files = f"/api/sessions/{session['session_id']}/files"
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        member = tarfile.TarInfo("dir/file")
        member.size = 100_000
        archive.addfile(member, io.BytesIO(b"abc\n" * 25_000))
    packed = gzip.compress(plain.getvalue())
    for path, headers in (("/workspace/a", {}), ("/workspace/b", {"Content-Encoding": "gzip"})):
        result = api.put(f"{files}/tar", body=packed, headers=headers, query={"path": path}).expect(200)
        assert result["bytes"] == 100_000
    assert api.run(session, "cmp /workspace/a/dir/file /workspace/b/dir/file && wc -c < /workspace/a/dir/file")[
        "stdout"].strip() == "100000"
    answer = api.get(f"{files}/tar", query={"path": "/workspace/a", "format": "tar.gz"})
    assert answer.headers["content-type"] == "application/gzip" and answer.body[:2] == b"\x1f\x8b"
    with tarfile.open(fileobj=io.BytesIO(answer.body), mode="r:gz") as archive:
        assert any(name.endswith("dir/file") for name in archive.getnames())
    answer = api.get(f"{files}/tar", query={"path": "/workspace/a"}, headers={"Accept-Encoding": "br, gzip;q=0.5"})
    assert answer.headers["content-encoding"] == "gzip" and answer.headers["content-type"] == "application/x-tar"
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(answer.body))) as archive:
        assert any(name.endswith("dir/file") for name in archive.getnames())
    answer = api.get(f"{files}/tar", query={"path": "/workspace/a"}, headers={"Accept-Encoding": "gzip;q=0"})
    assert "content-encoding" not in answer.headers and answer.body[:2] != b"\x1f\x8b"
    # What is cut off, damaged, or a bomb is refused.
    for body in (packed[:-20], packed[:50] + b"\0" * 50 + packed[100:], b"\x1f\x8b\x08" + bytes(100)):
        api.put(f"{files}/tar", body=body, query={"path": "/workspace/c"}).expect(400)
    bomb = gzip.compress(bytes(96 << 20))
    answer = api.put(f"{files}/tar", body=bomb, query={"path": "/workspace/d"})
    assert answer.status in (400, 413), answer.body
    api.destroy(session)


def test_the_host_is_in_the_metrics(server):
    text = server.api().get("/metrics").body.decode()
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("caisson_host_"))
    assert float(values["caisson_host_cpus"]) >= 1
    assert float(values["caisson_host_memory_bytes"]) > float(values["caisson_host_memory_available_bytes"]) > 0
    assert float(values["caisson_host_disk_bytes"]) > 0
    assert float(values["caisson_host_cpu_busy_seconds_total"]) > 0
