"""What outlives a session: artifacts and logs."""

import hashlib
import json


def lines(answer):
    return [json.loads(line) for line in answer.expect(200).splitlines() if line]


def test_artifacts_are_kept_listed_downloaded_and_removed(api):
    session = api.create()
    place = f"/api/sessions/{session['session_id']}/artifacts"
    api.run(session, "mkdir -p /workspace/out; echo result > /workspace/out/a.txt; head -c 200000 /dev/urandom > /workspace/out/b.bin")
    digest = api.run(session, "sha256sum /workspace/out/b.bin")["stdout"].split()[0]
    kept = api.post(place, {"patterns": ["out/*"]}).expect(201)["artifacts"]
    assert {artifact["path"] for artifact in kept} == {"/workspace/out/a.txt", "/workspace/out/b.bin"}
    api.destroy(session)
    listed = {artifact["path"]: artifact for artifact in api.get(place).expect(200)["artifacts"]}
    assert set(listed) == {"/workspace/out/a.txt", "/workspace/out/b.bin"}
    big = listed["/workspace/out/b.bin"]
    assert big["sha256"] == digest and big["size"] == 200000
    whole = api.get(big["url"])
    assert hashlib.sha256(whole.expect(200)).hexdigest() == digest
    assert api.get(big["url"], headers={"Range": "bytes=-10"}).expect(206) == whole.body[-10:]
    assert api.get(big["url"], headers={"If-None-Match": whole.headers["etag"]}).status == 304
    assert api.get(f"{place}/workspace/out/a.txt").expect(200) == b"result\n"
    api.delete(f"{place}/{listed['/workspace/out/a.txt']['name']}").expect(204)
    assert api.get(f"{place}/workspace/out/a.txt").status == 404
    assert [a["path"] for a in api.get(place).expect(200)["artifacts"]] == ["/workspace/out/b.bin"]


def test_declared_artifacts_of_a_paused_session_are_kept(api):
    session = api.create(artifacts=["*.txt"])
    place = f"/api/sessions/{session['session_id']}"
    api.run(session, "echo end > /workspace/end.txt")
    api.post(f"{place}/pause").expect(200)
    events = api.events("GET", f"{place}/logs", query={"follow": "true"})
    assert next(events)["event"] == "started"
    api.destroy(session)
    for _ in events:  # ends with the session
        pass
    assert [a["path"] for a in api.get(f"{place}/artifacts").expect(200)["artifacts"]] == ["/workspace/end.txt"]


def test_declared_artifacts_are_kept_at_the_sessions_end(api):
    session = api.create(artifacts=["/workspace/*.txt"])
    api.run(session, "echo end > /workspace/end.txt")
    place = f"/api/sessions/{session['session_id']}/artifacts"
    events = api.events("GET", f"/api/sessions/{session['session_id']}/logs", query={"follow": "true"})
    assert next(events)["event"] == "started"
    api.destroy(session)
    for _ in events:  # ends with the session
        pass
    kept = api.get(place).expect(200)["artifacts"]
    assert [artifact["path"] for artifact in kept] == ["/workspace/end.txt"]


def test_a_log_tells_what_ran_and_what_it_said_also_after_the_end(api):
    session = api.create()
    place = f"/api/sessions/{session['session_id']}/logs"
    api.run(session, "echo out; echo err >&2; exit 4")
    api.destroy(session)
    told = lines(api.get(place))
    assert [line["event"] for line in told if line["event"] in ("started", "ended")] == ["started", "ended"]
    assert "".join(line["data"] for line in told if line["event"] == "stdout") == "out\n"
    assert "".join(line["data"] for line in told if line["event"] == "stderr") == "err\n"
    assert told[-1]["exit_code"] == 4
    assert api.get("/api/sessions/nosuchsession0000/logs").status == 404


def test_a_log_is_followed_while_commands_run(api):
    session = api.create()
    place = f"/api/sessions/{session['session_id']}/logs"
    events = api.events("GET", place, query={"follow": "true"})
    for number in range(3):
        api.run(session, f"echo line {number}")
        said = next(event for event in events if event["event"] == "stdout")
        assert said["data"] == f"line {number}\n"
    api.destroy(session)
    assert all(event["event"] != "stdout" for event in events)


def test_patterns_must_be_proper(api):
    session = api.create()
    place = f"/api/sessions/{session['session_id']}/artifacts"
    for body in ({}, {"patterns": []}, {"patterns": "x"}, {"patterns": ["x"], "more": 1}, {"patterns": [""]}):
        assert api.post(place, body).status == 400, body
    assert api.get(f"{place}/nosuch").status == 404
    api.destroy(session)
