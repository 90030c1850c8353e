"""The server dies at every crash point in its sources, during an operation that passes it, and starts again.

Whatever the point: what was acknowledged is there, nothing is there twice, a repeated create with the same
idempotency key gives one session, an acknowledged end stays, the audit chain is whole, and nothing is left."""

import http.client
import pathlib
import re
import subprocess

import pytest

from harness import paths
from harness.server import DEADLINE, wait_until

HOOK = "CAISSON_SERVER_CRASH"
NAMES = sorted(name for path in (paths.ROOT / "src").rglob("*.cc")
               for name in re.findall(r'CrashPoint\("([a-z_.]+)"\)', path.read_text(encoding="utf-8"))
               if path.parts[-2] != "launcher")


class Crashing:
    """A server of the hooks build, and one session that stands by: what happens to others is not its business."""

    def __init__(self, make_server, tmp_path):
        self.server = make_server("--warm-ceiling", "0", binary=paths.require(paths.CAISSON_HOOKS), auth="keys")
        self.key = self.server.admin_key()
        self.bystander = self.api().create(name="bystander")
        self.api().run(self.bystander, "echo mine > /workspace/file")

    def api(self):
        return self.server.api(key=self.key, check=False)

    def arm(self, name):
        """Restarts the server so that it dies at this point; False when it died on the way."""
        self.server.kill()
        self.server._env[HOOK] = name
        try:
            self.server.start()
            return True
        except AssertionError:
            assert f"crash point: {name}" in self.server.messages(), self.server.messages()[-2000:]
            self.server.process = None
            return False
        finally:
            del self.server._env[HOOK]

    def must_die(self, name):
        """The server has passed the point."""
        try:
            self.server.process.wait(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            pytest.fail(f"the operation does not pass {name}")
        assert f"crash point: {name}" in self.server.messages()

    def restart(self):
        if self.server.process is not None:
            self.server.kill()
        self.server.start()
        return self.api()

    def check(self, api):
        """What holds after every crash."""
        assert api.run(self.bystander, "cat /workspace/file")["stdout"] == "mine\n"
        sessions = api.get("/api/sessions", query={"limit": 100}).expect(200)["sessions"]
        sandboxes = [s["sandbox_id"] for s in sessions]
        assert len(set(sandboxes)) == len(sandboxes), "two sessions share a sandbox"
        for session in sessions:
            wait_until(lambda s=session: state_of(api, s) in ("running", "paused", "failed", "destroyed", "lost"),
                       "no session stays between two states")
        audit = api.get("/api/audit/verify").expect(200)
        assert audit["sound"], audit

    def finish(self, api):
        for session in api.get("/api/sessions", query={"limit": 100}).expect(200)["sessions"]:
            api.destroy(session)
        wait_until(lambda: api.get("/api/sessions").expect(200)["sessions"] == [], "all are gone")


@pytest.fixture
def crashing(make_server, tmp_path):
    return Crashing(make_server, tmp_path)


def path_of(session):
    return f"/api/sessions/{session['session_id']}"


def state_of(api, session):
    return api.get(path_of(session)).expect(200)["state"]


def attempt(call):
    """Makes a call that the server may not live to answer: the answer, or None."""
    try:
        return call()
    except (ConnectionError, http.client.HTTPException, TimeoutError):
        return None


def create_again_and_again(api):
    """The same create until it is answered with a session or its end, as a client that retries does."""
    return api.post("/api/sessions", {"name": "asked-for"}, headers={"Idempotency-Key": "once"})


def die_creating(crashing, name):
    crashing.arm(name)
    answer = attempt(lambda: create_again_and_again(crashing.api()))
    assert answer is None, "the create was answered before the crash"
    crashing.must_die(name)
    api = crashing.restart()
    crashing.check(api)
    again = create_again_and_again(api).expect(201)
    named = [s for s in api.get("/api/sessions").expect(200)["sessions"] if s["name"] == "asked-for"]
    assert [s["session_id"] for s in named] == [again["session_id"]], named
    assert create_again_and_again(api).expect(201)["session_id"] == again["session_id"]
    assert api.run(again, "echo works")["stdout"] == "works\n"
    return api


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("create.")])
def test_create(crashing, name):
    crashing.finish(die_creating(crashing, name))


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("create_warm.")])
def test_create_from_the_warm_pool(crashing, name):
    crashing.server._arguments = ["--warm", "1"]
    crashing.server.kill()
    crashing.server._env[HOOK] = name
    crashing.server.start()
    del crashing.server._env[HOOK]
    api = crashing.api()
    wait_until(lambda: b"\ncaisson_warm_ready 1" in api.get("/metrics").body, "one waits")
    assert attempt(lambda: create_again_and_again(api)) is None
    crashing.must_die(name)
    crashing.server._arguments = ["--warm-ceiling", "0"]
    api = crashing.restart()
    crashing.check(api)
    first = create_again_and_again(api).expect(201)
    assert create_again_and_again(api).expect(201)["session_id"] == first["session_id"]
    crashing.finish(api)


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("exec.")])
def test_exec(crashing, name):
    session = crashing.api().create()
    crashing.arm(name)
    answer = attempt(lambda: crashing.api().post(f"{path_of(session)}/exec", {"command": "echo x >> /workspace/ran"}))
    assert answer is None
    crashing.must_die(name)
    api = crashing.restart()
    crashing.check(api)
    assert state_of(api, session) == "running"
    # It ran once, whether or not its outcome could be told; and it is told as it was.
    wait_until(lambda: api.run(session, "cat /workspace/ran")["stdout"] == "x\n", "it ran once")
    for process in api.get(f"{path_of(session)}/processes").expect(200)["processes"]:
        outcome = wait_until(lambda p=process: api.get(f"{path_of(session)}/processes/{p['process_id']}").expect(200)
                             .get("outcome"), "it ends")
        assert outcome["status"] in ("exited", "lost", "cancelled"), outcome
    crashing.finish(api)


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("write.")])
def test_write_of_a_file(crashing, name):
    session = crashing.api().create()
    content = path_of(session) + "/files/content"
    crashing.api().put(content, b"old", query={"path": "/workspace/f"})
    crashing.arm(name)
    assert attempt(lambda: crashing.api().put(content, b"new" * 1000, query={"path": "/workspace/f"})) is None
    crashing.must_die(name)
    api = crashing.restart()
    crashing.check(api)
    found = api.run(session, "cat /workspace/f; ls -A /workspace | wc -l")["stdout"]
    assert found in ("old1\n", "new" * 1000 + "1\n"), "whole or absent, and nothing beside it"
    crashing.finish(api)


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith(("pause.", "resume."))])
def test_pause_and_resume(crashing, name):
    session = crashing.api().create()
    if name.startswith("resume."):
        crashing.api().post(f"{path_of(session)}/pause").expect(200)
    crashing.arm(name)
    assert attempt(lambda: crashing.api().post(f"{path_of(session)}/{name.split('.')[0]}")) is None
    crashing.must_die(name)
    api = crashing.restart()
    crashing.check(api)
    if state_of(api, session) == "paused":
        api.post(f"{path_of(session)}/resume").expect(200)
    assert api.run(session, "echo awake")["stdout"] == "awake\n"
    crashing.finish(api)


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("patch.")])
def test_patch_of_limits(crashing, name):
    session = crashing.api().create()
    change = {"limits": {"memory": 600 << 20}, "labels": {"a": "b"}}
    crashing.arm(name)
    assert attempt(lambda: crashing.api().patch(path_of(session), change)) is None
    crashing.must_die(name)
    api = crashing.restart()
    crashing.check(api)
    assert api.patch(path_of(session), change).expect(200)["labels"] == {"a": "b"}
    assert api.run(session, "echo fine")["stdout"] == "fine\n"
    crashing.finish(api)


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("destroy.")])
def test_destroy(crashing, name):
    session = crashing.api().create()
    crashing.arm(name)
    answer = attempt(lambda: crashing.api().delete(path_of(session)))
    crashing.must_die(name)
    api = crashing.restart()
    crashing.check(api)
    if answer is None and state_of(api, session) == "running":
        api.destroy(session)  # nobody was told that it is gone
    wait_until(lambda: state_of(api, session) == "destroyed", "it ends")
    crashing.finish(api)


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("key.")])
def test_making_a_key(crashing, name):
    crashing.arm(name)
    body = {"name": "second", "role": "developer"}
    assert attempt(lambda: crashing.api().post("/api/keys", body)) is None
    crashing.must_die(name)
    api = crashing.restart()
    crashing.check(api)
    # Nobody has its secret, so it opens nothing; it is listed, can be revoked, and another can be made.
    listed = api.get("/api/keys").expect(200)["keys"]
    for key in listed:
        if key["name"] == "second":
            api.delete(f"/api/keys/{key['id']}").expect(204)
    issued = api.post("/api/keys", body).expect(201)
    assert crashing.server.api(key=issued["key"], check=False).get("/api/sessions").status == 200
    crashing.finish(api)


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("store.")])
def test_a_write_of_the_state(crashing, name):
    kept = crashing.api().create(name="kept")
    if crashing.arm(name):  # it may write, and die, as it starts
        attempt(lambda: create_again_and_again(crashing.api()))
        crashing.must_die(name)
    api = crashing.restart()
    crashing.check(api)
    assert state_of(api, kept) == "running"
    assert create_again_and_again(api).status == 201
    crashing.finish(api)


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("recovery.")])
def test_recovery(crashing, name):
    """A second crash, while what the first one left is being taken up."""
    api = crashing.api()
    paused, ended = api.create(), api.create()
    api.post(f"{path_of(paused)}/pause").expect(200)
    started = api.post(f"{path_of(crashing.bystander)}/exec",
                       {"command": "n=0; while :; do echo $n; n=$((n+1)); sleep 0.01; done", "background": True}).expect(202)
    api.destroy(ended)
    assert not crashing.arm(name), f"recovery does not pass {name}"
    api = crashing.restart()
    crashing.check(api)
    assert state_of(api, paused) == "paused"
    wait_until(lambda: state_of(api, ended) == "destroyed", "an acknowledged end stays")
    process = f"{path_of(crashing.bystander)}/processes/{started['process_id']}"
    numbers = api.get(f"{process}/output").expect(200)["stdout"].split()
    assert numbers and numbers == [str(n) for n in range(len(numbers))]
    crashing.finish(api)


def test_every_point_belongs_to_an_operation_above():
    text = pathlib.Path(__file__).read_text(encoding="utf-8")
    assert len(NAMES) == len(set(NAMES)) >= 20, NAMES
    for name in NAMES:
        assert f'"{name.split(".")[0]}.' in text, f"no test passes {name}"


def test_the_shipped_program_has_no_crash_points(make_server):
    server = make_server(env={HOOK: "create.made"})
    api = server.api()
    api.destroy(api.create())
    for program, there in ((paths.CAISSON, False), (paths.CAISSON_HOOKS, True)):
        assert (HOOK.encode() in paths.require(program).read_bytes()) == there, program
