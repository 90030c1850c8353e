"""Requests by chance from /openapi.json: no server error, every answer as the document says, the server unmoved.

More of them: CAISSON_RANDOM_REQUESTS=20000 CAISSON_RANDOM_SEED=7.
"""

import collections
import os

from harness.random_requests import RandomRequests, judge, operations_of, send
from harness.server import DEADLINE

SEED = int(os.environ.get("CAISSON_RANDOM_SEED", "1"))
REQUESTS = int(os.environ.get("CAISSON_RANDOM_REQUESTS", "700"))
LIVE = 3  # sessions that are there for the requests to find
# Drawn less often: they take away what the others need.
ENDINGS = {"destroySession", "classicCleanup", "pauseSession", "removeFile"}


def live_sessions(api):
    listed = api.get("/api/sessions", query={"limit": 500}).expect(200)["sessions"]
    return [session for session in listed if session["state"] in ("creating", "running", "paused")]


def tend(api, source):
    """Sees to it that the source knows a few running sessions, each with a process and a file, and no others."""
    for session in live_sessions(api):
        if session["state"] != "running" or session["session_id"] not in source.known("sessions")[-LIVE:]:
            api.destroy(session)
    alive = {session["session_id"] for session in live_sessions(api)}
    for session_id in source.known("sessions"):
        if session_id not in alive:
            source.forget("sessions", session_id)
    while len(source.known("sessions")) < LIVE:
        session = api.create(limits={"memory": "32M"}, artifacts=["*.txt"])
        api.run(session, "mkdir -p /tmp/x && echo hello >/tmp/x/a && echo kept >/workspace/a.txt")
        waiting = api.post(f"/api/sessions/{session['session_id']}/exec",
                           {"command": "read line", "background": True, "stdin_open": True, "timeout": 1}).expect(202)
        source.know("sessions", session["session_id"])
        source.know("processes", str(waiting["process_id"]))


def test_requests_by_chance_get_the_answers_that_the_document_promises(make_server):
    server = make_server("--webhooks-to-private")
    api = server.api()
    source = RandomRequests(api.document.spec, SEED)
    operations = operations_of(api.document.spec)
    answered, flawed = collections.defaultdict(collections.Counter), collections.Counter()
    name = None
    for turn in range(REQUESTS):
        if turn % 20 == 0 or name == "pauseSession":  # in a paused one, a wait lasts its whole minute
            tend(api, source)
        # Each in its turn, so that a short run reaches them all.
        operation = operations[turn % len(operations)]
        name = operation.about["operationId"]
        if name in ENDINGS and turn >= len(operations) and source.chance.random() < 0.7:
            continue
        request = source.make(operation, sound=source.chance.random() < 0.5)
        answer = send(server.address, request, DEADLINE)
        judge(api.document, request, answer)
        source.learn(operation, answer)
        answered[name][answer.status] += 1
        flawed[name] += bool(request.flaws)
    for name, statuses in sorted(answered.items()):
        print(f"{name}: {dict(sorted(statuses.items()))}, {flawed[name]} had to be refused")
    never = [name for name, statuses in answered.items() if min(statuses) >= 400]
    assert len(never) <= len(operations) // 2, f"chance gets nowhere with {never}"
    assert api.get("/health").expect(200)["status"] == "ok"
    assert api.get("/api/audit/verify").expect(200)["sound"]
    for session in live_sessions(api):
        api.destroy(session)
