"""Several clients use a server that is killed again and again; its answers together must keep its promises.

The seed is in every failure; CAISSON_TEST_SEED repeats the same choices (the threads' timing is their own)."""

import http.client
import os
import random
import threading
import time

from harness.history import History, violations
from harness.server import wait_until

SEED = int(os.environ.get("CAISSON_TEST_SEED", time.time_ns() % 1_000_000))
CLIENTS = 3
KILLS = 4
BETWEEN_KILLS = 1.5


class Client(threading.Thread):
    """Creates, runs, looks, pauses and destroys at random; repeats a create that broke off, as the key allows."""

    def __init__(self, server, history, number, over):
        super().__init__()
        self._server, self._history, self._number, self._over = server, history, number, over
        self._random = random.Random(SEED * 100 + number)
        self._count = 0
        self._mine = []
        self._api = None
        self.failure = None

    def run(self):
        try:
            while not self._over.is_set():
                self._step()
        except Exception as failure:  # noqa: BLE001 - shown by the test
            self.failure = failure

    def _call(self, method, path, body=None, headers=None):
        """The answer, or None when the server did not live to give it."""
        try:
            if self._api is None:
                self._api = self._server.api(check=False)
            self._api.close()  # a call is made once: the client's own repetition would be a second one
            return self._api.call(method, path, body=body, headers=headers)
        except (OSError, http.client.HTTPException):
            self._api = None
            time.sleep(0.02)
            return None

    def _next(self):
        self._count += 1
        return f"{self._number}.{self._count}"

    def _step(self):
        choice = self._random.random()
        if not self._mine or (choice < 0.2 and len(self._mine) < 3):
            return self._create()
        session = self._random.choice(self._mine)
        if choice < 0.5:
            return self._run(session)
        if choice < 0.75:
            return self._look(session)
        if choice < 0.85:
            self._call("POST", f"/api/sessions/{session}/{self._random.choice(['pause', 'resume'])}", body={})
            return None
        if choice < 0.93:
            return self._list()
        return self._destroy(session)

    def _create(self):
        key = f"key-{self._next()}"

        def create():
            answer = self._call("POST", "/api/sessions", body={}, headers={"Idempotency-Key": key})
            if answer is None or answer.status == 503:
                return None
            assert answer.status == 201, answer.body
            return answer.json()["session_id"], "running"

        while not self._over.is_set():
            if self._history.record("create", None, create, note=key) is not None:
                self._mine.append(self._history_subject(key))
                return

    def _history_subject(self, key):
        return next(c.subject for c in self._history.calls if c.kind == "create" and c.note == key and c.subject)

    def _run(self, session):
        number = self._next()

        def run():
            answer = self._call("POST", f"/api/sessions/{session}/exec",
                                body={"command": f"echo {number} >> /workspace/log"})
            if answer is None or answer.status != 200:
                return None
            outcome = answer.json()
            return session, f"{outcome['outcome']['status']} {outcome['exit_code']}"

        self._history.record("exec", session, run, note=number)

    def _look(self, session):
        def look():
            answer = self._call("GET", f"/api/sessions/{session}")
            return (session, answer.expect(200)["state"]) if answer is not None else None

        self._history.record("state", session, look)

    def _list(self):
        def listed():
            answer = self._call("GET", "/api/sessions?limit=1000")
            if answer is None:
                return None
            return None, {s["session_id"]: s["sandbox_id"] for s in answer.expect(200)["sessions"]}

        self._history.record("list", None, listed)

    def _destroy(self, session):
        def destroy():
            answer = self._call("DELETE", f"/api/sessions/{session}")
            return (session, str(answer.expect(204) or 204)) if answer is not None else None

        self._history.record("destroy", session, destroy)
        self._mine.remove(session)


def test_the_answers_of_a_server_that_is_killed_again_and_again_keep_its_promises(server):
    history, over = History(), threading.Event()
    clients = [Client(server, history, number, over) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    moments = random.Random(SEED)
    try:
        for _ in range(KILLS):
            time.sleep(moments.uniform(0.3, 1) * BETWEEN_KILLS)
            server.kill()
            server.start()
        time.sleep(BETWEEN_KILLS)
    finally:
        over.set()
        for client in clients:
            client.join()
    assert [c.failure for c in clients] == [None] * CLIENTS, f"seed {SEED}"
    api = server.api()
    for call in [c for c in history.calls if c.kind == "create" and c.subject]:
        session, path = call.subject, f"/api/sessions/{call.subject}"
        settled = wait_until(lambda p=path: (s := api.get(p).expect(200)["state"]) not in ("creating", "stopping") and s,
                             "it settles")
        if settled == "paused":
            api.post(f"{path}/resume").expect(200)
        if settled in ("running", "paused"):
            history.record("log", session, lambda s={"session_id": session}, i=session: (
                i, api.run(s, "cat /workspace/log 2>/dev/null || true")["stdout"].split()))
            history.record("destroy", session, lambda p=path, i=session: (i, str(api.delete(p).expect(204) or 204)))
        history.record("state", session, lambda p=path, i=session: (i, api.get(p).expect(200)["state"]))
    broken = violations(history.calls)
    assert not broken, f"seed {SEED}, {len(history.calls)} calls:\n" + "\n".join(broken[:10])
    answered = [c for c in history.calls if c.answer is not None]
    assert len(answered) > 50 and any(c.answer is None for c in history.calls), "too little happened to tell"
