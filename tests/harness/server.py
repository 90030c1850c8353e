"""A running `caisson serve` and a client of its API.

Every JSON answer is checked against the server's own /openapi.json, so each test that calls a route
also proves that the document tells the truth about it.
"""

import http.client
import json
import os
import re
import select
import signal
import subprocess
import time
import urllib.parse

import jsonschema

from harness import paths
from harness.driver import Driver

DEADLINE = float(os.environ.get("CAISSON_TEST_DEADLINE", "60"))


class Answer:
    """What came back: status, headers (lower case), body."""

    def __init__(self, status, headers, body):
        self.status = status
        self.headers = {name.lower(): value for name, value in headers}
        self.body = body

    def json(self):
        return json.loads(self.body)

    def expect(self, status):
        assert self.status == status, f"{self.status} instead of {status}: {self.body[:2000]!r}"
        media = self.headers.get("content-type", "").split(";")[0]
        return self.json() if self.body and media in ("application/json", "application/problem+json") else self.body


class Document:
    """/openapi.json, to check answers by."""

    def __init__(self, text):
        self.spec = json.loads(text)
        self._patterns = []
        longest_first = sorted(self.spec["paths"].items(), key=lambda item: -len(item[0]))
        for tail in ("[^/]+", ".+"):  # a parameter at the end may stand for a whole tail
            for pattern, operations in longest_first:
                expression = re.sub(r"\\{[a-z_]+\\}$", tail, re.escape(pattern))
                expression = re.sub(r"\\{[a-z_]+\\}", "[^/]+", expression)
                self._patterns.append((re.compile(expression + "$"), operations))

    def operation(self, method, path):
        for expression, operations in self._patterns:
            if expression.match(path) and method.lower() in operations:
                return operations[method.lower()]
        return None

    def check(self, method, path, answer):
        operation = self.operation(method, path)
        if operation is not None and method != "HEAD":
            self.check_operation(operation, f"{method} {path}", answer)

    def check_operation(self, operation, what, answer):
        """`what` is how a failure names the call."""
        responses = operation["responses"]
        response = responses.get(str(answer.status)) or (responses["default"] if answer.status >= 400 else None)
        assert response is not None, f"{what}: {answer.status} is not in the document"
        media = answer.headers.get("content-type", "").split(";")[0]
        content = response.get("content", {})
        if not answer.body:
            return
        assert media in content or "*/*" in content, f"{what}: {media} is not in the document: {list(content)}"
        schema = content.get(media, {}).get("schema")
        if schema is not None:
            jsonschema.Draft202012Validator(
                {**schema, "components": self.spec["components"]}).validate(json.loads(answer.body))


class Api:
    """Calls over one kept connection."""

    def __init__(self, address, key=None, document=None):
        self.address = address
        self.key = key
        self.document = document
        self._connection = None

    def connect(self):
        host, port = self.address.rsplit(":", 1)
        return http.client.HTTPConnection(host, int(port), timeout=DEADLINE)

    def call(self, method, path, body=None, headers=None, query=None):
        target = path + ("?" + urllib.parse.urlencode(query, doseq=True) if query else "")
        sent = dict(headers or {})
        if self.key and not any(name.lower() == "authorization" for name in sent):
            sent["Authorization"] = f"Bearer {self.key}"
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            sent.setdefault("Content-Type", "application/json")
        for attempt in (1, 2):
            if self._connection is None:
                self._connection = self.connect()
            try:
                self._connection.request(method, target, body=body, headers=sent)
                response = self._connection.getresponse()
                answer = Answer(response.status, response.getheaders(), response.read())
                break
            except (ConnectionError, http.client.BadStatusLine):
                self.close()
                if attempt == 2:
                    raise
        if answer.headers.get("connection") == "close":
            self.close()
        if self.document is not None:
            self.document.check(method, urllib.parse.unquote(path), answer)
        return answer

    def get(self, path, **more):
        return self.call("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.call("POST", path, body={} if body is None else body, **more)

    def put(self, path, body=None, **more):
        return self.call("PUT", path, body=body, **more)

    def patch(self, path, body=None, **more):
        return self.call("PATCH", path, body=body, **more)

    def delete(self, path, **more):
        return self.call("DELETE", path, **more)

    def stream(self, method, path, body=None, headers=None, query=None):
        """The open response of a streamed answer; the caller reads and closes it."""
        connection = self.connect()
        target = path + ("?" + urllib.parse.urlencode(query, doseq=True) if query else "")
        sent = dict(headers or {})
        if self.key:
            sent["Authorization"] = f"Bearer {self.key}"
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
            sent.setdefault("Content-Type", "application/json")
        connection.request(method, target, body=body, headers=sent)
        response = connection.getresponse()
        response.connection = connection
        return response

    def events(self, method, path, body=None, query=None):
        """The messages of an NDJSON stream, one by one."""
        response = self.stream(method, path, body, {"Accept": "application/x-ndjson"}, query)
        assert response.status == 200, (response.status, response.read())
        try:
            for line in response:
                if line.strip():
                    yield json.loads(line)
        finally:
            response.connection.close()

    def close(self):
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # --- the calls that nearly every test makes ---------------------------------------------------
    def create(self, **spec):
        return self.post("/api/sessions", spec).expect(201)

    def run(self, session, command, **more):
        return self.post(f"/api/sessions/{session['session_id']}/exec", {"command": command, **more}).expect(200)

    def destroy(self, session):
        self.delete(f"/api/sessions/{session['session_id']}").expect(204)


def wait_until(condition, what, seconds=DEADLINE):
    """The first true value of the condition, or a failure that says what was awaited."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s: {what}")


class Server:
    def __init__(self, data_dir, arguments=(), auth="none", env=None, binary=paths.CAISSON):
        self.data_dir = str(data_dir)
        self._binary = str(binary)
        self._arguments = list(arguments)
        self._auth = auth
        self._env = env or {}
        self.process = None
        self.address = None
        self.log = None

    def start(self, *more):
        """Starts it, with more arguments than it always has."""
        assert self.process is None
        environment = {**os.environ, **self._env}
        listen = [] if any("--listen" in a for a in self._arguments) else ["--listen", "127.0.0.1:0"]
        os.makedirs(self.data_dir, mode=0o700, exist_ok=True)
        self.log = open(f"{self.data_dir}.log", "ab")
        self.process = subprocess.Popen(
            [self._binary, "serve", *listen, "--data-dir", self.data_dir, "--auth", self._auth, *self._arguments,
             *more],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, env=environment)
        line = self._line()
        assert line.startswith("listening on "), line
        self.address = line.split("//", 1)[-1].strip() if "//" in line else line[len("listening on "):].strip()
        return self

    def _line(self):
        deadline = time.monotonic() + DEADLINE
        text = b""
        while not text.endswith(b"\n"):
            left = deadline - time.monotonic()
            ready = select.select([self.process.stdout], [], [], max(0, left))[0]
            piece = os.read(self.process.stdout.fileno(), 4096) if ready else b""
            if not piece:
                self.process.kill()
                self.process.wait()
                raise AssertionError(f"the server did not start: {self.messages()[-4000:]}")
            text += piece
        return text.decode().splitlines()[0]

    def messages(self):
        with open(f"{self.data_dir}.log", encoding="utf-8", errors="replace") as log:
            return log.read()

    def api(self, key=None, check=True):
        document = None
        if check:
            document = Document(Api(self.address).get("/openapi.json").body)
        return Api(self.address, key, document)

    def admin_key(self):
        with open(f"{self.data_dir}/admin.key", encoding="utf-8") as file:
            return file.read().strip()

    def stop(self, number=signal.SIGTERM):
        """Ends the server; its sandboxes live on. Gives the exit status."""
        process, self.process = self.process, None
        process.send_signal(number)
        try:
            return process.wait(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(f"the server did not end: {self.messages()[-4000:]}") from None
        finally:
            process.stdout.close()
            self.log.close()

    def kill(self):
        return self.stop(signal.SIGKILL)

    def launcher(self):
        """The pid of the launcher that works for this data directory, whoever started it; or None."""
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    arguments = file.read().decode(errors="replace").split("\0")
                with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                    state = file.read().rsplit(")", 1)[1].split()[0]
            except OSError:
                continue
            if arguments[0] == "caisson-launcher" and "--listen" in arguments and state != "Z":
                if f"{self.data_dir}/native" in arguments:
                    return int(entry)
        return None

    def end_launcher(self):
        """Ends what outlives the server: the launcher and every sandbox it holds."""
        with Driver(home=f"{self.data_dir}/native", arguments=["--keep"]) as driver:
            driver.shutdown()

    def close(self):
        if self.process is not None:
            self.stop()
        if os.path.exists(f"{self.data_dir}/native/launcher.sock"):
            self.end_launcher()
