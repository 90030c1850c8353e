"""Servers that the bench starts, uses and ends: `caisson serve`, and the HTTP library's hello-world."""

import contextlib
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import programs

START_SECONDS = 30
END_SECONDS = 60


class Listener:
    """A program that prints `listening on URL`, ended by its pid."""

    def __init__(self, argv, log):
        try:
            self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                             stderr=log)
        except OSError as error:
            raise programs.Skip(f"{argv[0]}: {error.strerror}") from error
        self.pid = self._process.pid
        try:
            self.url = self._read_url(argv[0])
        except BaseException:
            self.end()
            raise

    def _read_url(self, name):
        deadline = time.monotonic() + START_SECONDS
        text = b""
        while not text.endswith(b"\n"):
            left = max(0, deadline - time.monotonic())
            ready = select.select([self._process.stdout], [], [], left)[0]
            piece = os.read(self._process.stdout.fileno(), 4096) if ready else b""
            if not piece:
                raise programs.Skip(f"{os.path.basename(name)} did not start")
            text += piece
        found = re.fullmatch(r"listening on (http://\S+)\n", text.decode(errors="replace"))
        if not found:
            raise programs.Skip(f"{os.path.basename(name)} printed {text[:100]!r}")
        return found[1]

    def end(self):
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def end_launcher(build, data_dir):
    """Ends what outlives a server. What cannot be ended is said: the measurements still count."""
    try:
        programs.run_json([str(build / "http_bench"), "--json", "--end", data_dir], END_SECONDS)
    except programs.Skip as reason:
        print(f"bench: the launcher of {data_dir} may still run: {reason}", file=sys.stderr)


@contextlib.contextmanager
def serve(build, *arguments):
    """`caisson serve` on a loopback port with a new data directory; nothing is left of it."""
    for program in ("caisson", "http_bench"):
        if not os.access(build / program, os.X_OK):
            raise programs.Skip(f"{program} is not built")
    home = tempfile.mkdtemp(prefix="caisson-bench-", dir="/var/tmp")
    try:
        with open(f"{home}/log", "wb") as log:
            server = Listener([str(build / "caisson"), "serve", "--listen", "127.0.0.1:0",
                               "--data-dir", f"{home}/data", "--auth", "none", *arguments], log)
        try:
            yield server
        finally:
            server.end()
            end_launcher(build, f"{home}/data")
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def hello(build):
    if not os.access(build / "http_hello", os.X_OK):
        raise programs.Skip("http_hello is not built")
    server = Listener([str(build / "http_hello")], subprocess.DEVNULL)
    try:
        yield server
    finally:
        server.end()
