"""The calls of the original descriptions, by plain curl, with exactly the fields that they give."""

import json
import subprocess

import pytest

from harness.server import DEADLINE


@pytest.fixture
def curl(server):
    """The status and the JSON of a call; `body` is sent as it stands."""

    def call(method, path, body=None):
        data = [] if body is None else ["-H", "Content-Type: application/json", "-d", body]
        command = ["curl", "-sS", "-X", method, "-w", "\n%{http_code}", *data, f"http://{server.address}{path}"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=True)
        text, _, status = run.stdout.rpartition("\n")
        return int(status), json.loads(text) if text else None

    return call


def test_create_session_execute_cleanup(curl):
    status, made = curl("POST", "/create_session")
    assert status == 200 and set(made) == {"session_id"}
    session = made["session_id"]
    ran = curl("POST", "/execute", json.dumps({"session_id": session, "command": "echo out; echo err >&2; exit 4"}))
    assert ran[0] == 200 and set(ran[1]) == {"exit_code", "output"} and ran[1]["exit_code"] == 4
    assert sorted(ran[1]["output"].split()) == ["err", "out"]
    assert curl("POST", "/cleanup", json.dumps({"session_id": session}))[0] == 200
    assert curl("POST", "/execute", json.dumps({"session_id": session, "command": "true"}))[0] == 410


def test_a_task_is_refused_with_a_remedy_and_health_is_told(curl):
    status, refused = curl("POST", "/execute", '{"task": "write a program"}')
    assert status == 501 and refused["code"] == "unsupported" and refused["remediation"]
    status, health = curl("GET", "/health")
    assert status == 200 and health["status"] == "ok"


def test_sessions_with_code_and_files(curl):
    status, session = curl("POST", "/api/sessions", '{"provider": "native", "environment": "Python3"}')
    assert status == 201 and {"session_id", "sandbox_id", "provider", "url"} <= set(session)
    name, sandbox = session["session_id"], session["sandbox_id"]
    assert curl("GET", f"/api/sessions/{name}")[1]["session_id"] == name
    ran = curl("POST", "/api/e2b/execute", json.dumps({"session_id": name, "code": "print(6 * 7)"}))
    assert ran == (200, {"stdout": "42\n", "stderr": "", "results": [], "artifacts": []})
    assert curl("POST", "/api/e2b/files", json.dumps({"session_id": name, "path": "a.txt", "content": "x"}))[0] == 200
    both = json.dumps({"session_id": name, "path": "a.txt", "content": "x", "content_base64": "eA=="})
    assert curl("POST", "/api/e2b/files", both)[0] == 400
    listed = curl("GET", f"/api/e2b/files/{name}")
    assert listed[0] == 200 and [file["path"] for file in listed[1]["files"]] == ["/workspace/a.txt"]
    assert curl("DELETE", f"/api/sessions/{name}?sandbox_id=another")[0] == 409
    assert curl("DELETE", f"/api/sessions/{name}?sandbox_id={sandbox}")[0] == 204
