"""Runs the command line, with or without a terminal."""

import errno
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
import fcntl

from harness import paths


class Cli:
    def __init__(self, home, binary=paths.CAISSON, env=None):
        self.binary = str(binary)
        self.env = {**os.environ, "CAISSON_HOME": str(home), **(env or {})}

    def run(self, *arguments, stdin=b"", timeout=60, text=True, env=None, **options):
        result = subprocess.run([self.binary, *map(str, arguments)], input=stdin, capture_output=True,
                                env={**self.env, **(env or {})}, timeout=timeout, **options)
        if text:
            result.stdout = result.stdout.decode("utf-8", "replace")
            result.stderr = result.stderr.decode("utf-8", "replace")
        return result

    def exec(self, *arguments, **options):
        return self.run("exec", *arguments, **options)

    def popen(self, *arguments, **options):
        return subprocess.Popen([self.binary, *map(str, arguments)], env=self.env, **options)

    def terminal(self, *arguments, rows=24, cols=80):
        return Terminal([self.binary, *map(str, arguments)], self.env, rows, cols)


class Terminal:
    """A child on a pseudo-terminal of its own."""

    def __init__(self, argv, env, rows, cols):
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                os.execve(argv[0], argv, env)
            finally:
                os._exit(125)
        self.output = b""
        self._status = None
        self.resize(rows, cols)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)

    def resize(self, rows, cols):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def write(self, data):
        os.write(self.master, data)

    def expect(self, wanted, timeout=15):
        """Reads until `wanted` shows after what was expected before; returns all output up to then."""
        end = time.monotonic() + timeout
        while wanted not in self.output:
            if not self._read(end - time.monotonic()):
                raise AssertionError(f"{wanted!r} did not show; the terminal has {self.output[-500:]!r}")
        before, self.output = self.output.split(wanted, 1)
        return before + wanted

    def wait(self, timeout=15):
        """The exit status, as a shell would give it."""
        end = time.monotonic() + timeout
        while self._status is None:
            self._read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > end:
                raise AssertionError(f"still running; the terminal has {self.output[-500:]!r}")
        while self._read(0.05):
            pass
        return self._status

    def _read(self, timeout):
        if not select.select([self.master], [], [], max(timeout, 0))[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError as error:
            if error.errno == errno.EIO:
                return False
            raise
        self.output += data
        return bool(data)
