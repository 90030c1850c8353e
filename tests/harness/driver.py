"""A client of the engine's test driver: JSON lines on stdin and stdout.

One Driver is one owner process with its own launcher. Requests are answered in order; every answer
has a deadline, after which the driver is killed and the test fails with what it last said.
"""

import base64
import json
import os
import select
import signal
import subprocess
import time

from harness import paths


DEADLINE = float(os.environ.get("CAISSON_TEST_DEADLINE", "60"))  # seconds for one answer


class Refused(Exception):
    """The engine answered with an error."""

    def __init__(self, request, error):
        self.code = error.get("code", "")
        self.message = error.get("message", "")
        self.remedy = error.get("remedy", "")
        super().__init__(f"{request.get('op')}: {self.code}: {self.message} ({self.remedy})")


class Driver:
    def __init__(self, binary=paths.DRIVER, env=None, home=None, deadline=DEADLINE, arguments=(), prefix=(), **options):
        """`prefix` goes before the program (another user, say), `options` to Popen."""
        environment = dict(os.environ)
        if home is not None:
            environment["CAISSON_HOME"] = str(home)
        environment.update(env or {})
        self._deadline = deadline
        self._buffer = b""
        self._process = subprocess.Popen(
            [*prefix, str(binary), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, **options)

    @property
    def pid(self):
        return self._process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def send(self, op, **fields):
        request = {"op": op, **fields}
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return request

    def receive(self, request, deadline=None):
        answer = json.loads(self._line(deadline or self._deadline, request))
        if not answer.get("ok"):
            raise Refused(request, answer.get("error") or {"message": repr(answer)})
        return answer

    def call(self, op, deadline=None, **fields):
        return self.receive(self.send(op, **fields), deadline)

    def create(self, **spec):
        return Sandbox(self, self.call("create", spec=spec))

    def list(self):
        return self.call("list")

    def adopt(self, sandbox_id):
        """A sandbox that an earlier owner of the same launcher made (`--keep`)."""
        return Sandbox(self, self.call("adopt", id=sandbox_id))

    def shutdown(self):
        """Ends the launcher, which a driver with `--keep` leaves running."""
        return self.call("shutdown")

    def kill(self):
        """The owner dies without a word."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._close_pipes()

    def close(self):
        if self._process.poll() is None:
            try:
                self.send("quit")
                self._process.stdin.close()
                self._process.wait(timeout=30)
            except (BrokenPipeError, subprocess.TimeoutExpired, ValueError):
                self._process.kill()
                self._process.wait()
        self._close_pipes()

    def alive(self):
        return self._process.poll() is None

    def rss_kib(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def _close_pipes(self):
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                pipe.close()
            except BrokenPipeError:
                pass

    def _line(self, deadline, request):
        end = time.monotonic() + deadline
        while b"\n" not in self._buffer:
            left = end - time.monotonic()
            ready = left > 0 and select.select([self._process.stdout], [], [], left)[0]
            chunk = os.read(self._process.stdout.fileno(), 1 << 20) if ready else b""
            if not chunk:
                state = "did not answer in time" if not ready else "ended"
                self._process.kill()
                self._process.wait()
                raise AssertionError(f"the driver {state} after {json.dumps(request)[:300]}; "
                                     f"it had said {self._buffer[-300:]!r}")
            self._buffer += chunk
        line, self._buffer = self._buffer.split(b"\n", 1)
        return line


class Sandbox:
    """One sandbox of a driver. Destroyed at the end of its `with` block."""

    def __init__(self, driver, answer):
        self.driver = driver
        self.id = answer["id"]
        self.created = answer
        self._gone = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if not self._gone and self.driver.alive():
            self.destroy()

    def call(self, op, deadline=None, **fields):
        return self.driver.call(op, deadline, id=self.id, **fields)

    def exec(self, *argv, deadline=None, **fields):
        return Outcome(self.call("exec", deadline, argv=[str(a) for a in argv], **fields))

    def start(self, *argv, **fields):
        return Process(self, self.call("start", argv=[str(a) for a in argv], **fields)["process"])

    def processes(self):
        return self.call("processes")["processes"]

    def attach(self, handle, **fields):
        self.call("attach", process=handle, **fields)
        return Process(self, handle)

    def write(self, path, data, user="root", **fields):
        return self.call("file.write", path=path, data_b64=base64.b64encode(data).decode(), user=user,
                         **fields)

    def read(self, path, user="root"):
        return base64.b64decode(self.call("file.read", path=path, user=user)["data_b64"])

    def stat(self, path, user="root"):
        return self.call("file.stat", path=path, user=user)

    def list(self, path, user="root"):
        return self.call("file.list", path=path, user=user)

    def mkdir(self, path, user="root", **fields):
        return self.call("file.mkdir", path=path, user=user, **fields)

    def move(self, source, target, user="root", **fields):
        return self.call("file.move", **{"from": source}, to=target, user=user, **fields)

    def remove(self, path, user="root", recursive=False):
        return self.call("file.remove", path=path, user=user, recursive=recursive)

    def update(self, **limits):
        return self.call("update", limits=limits)

    def pause(self):
        return self.call("pause")

    def resume(self):
        return self.call("resume")

    def stats(self):
        return self.call("stats")

    def destroy(self):
        self._gone = True
        return self.call("destroy")

    def limit(self, name):
        return next((l for l in self.created["limits"] if l["name"] == name), None)


class Process:
    def __init__(self, sandbox, handle):
        self.sandbox = sandbox
        self.handle = handle

    def wait(self, deadline=None):
        return Outcome(self.sandbox.call("wait", deadline, process=self.handle))

    def signal(self, number, scope="tree"):
        return self.sandbox.call("signal", process=self.handle, signal=int(number), scope=scope)


class Outcome:
    """How a command ended."""

    def __init__(self, answer):
        self.answer = answer
        self.exit_code = answer.get("exit_code")
        self.signal = answer.get("signal")
        self.stdout = answer.get("stdout", "")
        self.stderr = answer.get("stderr", "")
        self.status = answer.get("outcome", {}).get("status")
        self.reason = answer.get("outcome", {}).get("reason")
        self.usage = answer.get("usage", {})

    def __repr__(self):
        return (f"<{self.status} ({self.reason}) exit {self.exit_code} signal {self.signal}; "
                f"stdout {self.stdout[-300:]!r} stderr {self.stderr[-300:]!r}>")

    def ok(self):
        assert self.status == "exited" and self.exit_code == 0, repr(self)
        return self

    def json(self):
        return json.loads(self.ok().stdout)

    def json_lines(self):
        return [json.loads(line) for line in self.ok().stdout.splitlines() if line]
