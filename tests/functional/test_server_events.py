"""Events and webhooks, through a real server."""

import hashlib
import hmac
import http.server
import json
import queue
import threading
import time

import pytest

DEADLINE = 60


def types(events):
    return [event["type"] for event in events]


def test_a_sessions_life_is_told_in_order(server):
    api = server.api()
    session = api.create()
    api.run(session, "true")
    path = f"/api/sessions/{session['session_id']}/events"
    told = types(api.get(path).expect(200)["events"])
    assert told[:2] == ["session.created", "session.running"]
    assert "exec.started" in told
    api.destroy(session)
    deadline = time.monotonic() + DEADLINE
    while "session.destroyed" not in types(api.get(path).expect(200)["events"]):
        assert time.monotonic() < deadline


def test_a_stream_goes_on_where_it_was_left(server):
    api = server.api()
    stream = api.events("GET", "/api/events", query={"after": 0})
    session = api.create()
    first = next(stream)
    assert first["type"] == "session.created" and first["session_id"] == session["session_id"]
    stream.close()
    again = api.stream("GET", "/api/events", headers={"Accept": "text/event-stream",
                                                      "Last-Event-ID": str(first["sequence"])})
    assert again.headers["content-type"].startswith("text/event-stream")
    for line in again:
        if line.startswith(b"data:"):
            assert json.loads(line[5:])["sequence"] == first["sequence"] + 1
            break
    again.connection.close()
    api.destroy(session)


def test_events_are_picked_by_type(server):
    api = server.api()
    session = api.create()
    page = api.get("/api/events", query={"type": "session.running", "session": session["session_id"]}).expect(200)
    assert types(page["events"]) == ["session.running"]
    api.get("/api/events", query={"type": "nonsense"}).expect(400)
    api.destroy(session)


class Receiver:
    """A target of webhooks: keeps what it gets, and answers what it is told to."""

    def __init__(self):
        received = self.received = queue.Queue()
        answers = self.answers = queue.Queue()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):  # noqa: N802
                body = self.rfile.read(int(self.headers["Content-Length"]))
                received.put((dict(self.headers), body))
                self.send_response(200 if answers.empty() else answers.get())
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def receiver():
    running = Receiver()
    yield running
    running.close()


def test_webhooks_are_signed_and_tried_again(make_server, receiver):
    api = make_server("--webhooks-to-private").api()
    receiver.answers.put(500)
    hook = api.post("/api/webhooks", {"url": receiver.url, "types": ["session.running"]}).expect(201)
    session = api.create()
    first = receiver.received.get(timeout=DEADLINE)
    headers, body = receiver.received.get(timeout=DEADLINE)
    assert first[1] == body
    event = json.loads(body)
    assert event["type"] == "session.running" and event["session_id"] == session["session_id"]
    fields = dict(part.split("=", 1) for part in headers["X-Caisson-Signature"].split(","))
    expected = hmac.new(hook["secret"].encode(), fields["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(fields["v1"], expected)
    path = f"/api/webhooks/{hook['id']}"
    deadline = time.monotonic() + DEADLINE
    while api.get(path + "/deliveries").expect(200)["deliveries"][0]["state"] != "delivered":
        assert time.monotonic() < deadline
    assert hook["secret"] not in json.dumps(api.get(path).expect(200))
    api.delete(path).expect(204)
    api.destroy(session)


def test_webhooks_to_this_machine_are_refused_unless_allowed(server, receiver):
    api = server.api()
    hook = api.post("/api/webhooks", {"url": receiver.url}).expect(201)
    api.call("POST", f"/api/webhooks/{hook['id']}/test").expect(202)
    deadline = time.monotonic() + DEADLINE
    while True:
        deliveries = api.get(f"/api/webhooks/{hook['id']}/deliveries").expect(200)["deliveries"]
        if deliveries and deliveries[0]["state"] == "dead":
            break
        assert time.monotonic() < deadline
    assert receiver.received.empty()
