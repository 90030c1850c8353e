"""A Docker daemon of the bench's own, which leaves nothing behind.

dockerd runs in its own pid, mount and network namespaces, with its socket, data and state in one
temporary directory and its containers below one cgroup of a name of its own. docker0 exists only in
that network namespace. Every process below it dies with this process, even on SIGKILL.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time

IMAGE = "caisson-bench:true"
FOLDER = pathlib.Path("/var/tmp")  # a disk by convention, and a path short enough for a socket
PREFIX = "caisson-bench-docker."
START_SECONDS = 30
STOP_SECONDS = 15

# PID 1 of the namespace: reaps shims, and passes SIGTERM on to the daemon. unshare itself ignores
# SIGTERM, so stop() signals this shell.
PID1 = '"$@" & child=$!; trap "kill $child" TERM; wait; wait'


class Unavailable(Exception):
    """Docker cannot be measured here; the text says why."""


def find(program):
    """Debian's own program first: a client elsewhere on PATH may be of another version."""
    for folder in ("/usr/bin", "/usr/sbin"):
        if os.access(f"{folder}/{program}", os.X_OK):
            return f"{folder}/{program}"
    return shutil.which(program)


def program_files(program):
    """The program, its interpreter and its libraries, as ldd names them."""
    output = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    words = [word for word in output.split() if word.startswith("/")]
    return [program, *words]


class PrivateDocker:
    """A context manager: entering starts the daemon and imports the image, leaving removes both."""

    def __init__(self):
        self._root = None
        self._process = None
        self._cgroup = cgroup_name(os.getpid())

    def __enter__(self):
        self._client = find("docker")
        daemon = find("dockerd")
        if not daemon or not self._client:
            raise Unavailable("docker.io is not installed")
        if os.geteuid() != 0:
            raise Unavailable("dockerd needs root")
        self._sweep()
        prefix = f"{PREFIX}{os.getpid()}."
        self._root = pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir=FOLDER))
        try:
            self._start(daemon)
            self._import_image()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def command(self, *options):
        """argv of one `docker run --rm` of /bin/true."""
        return [*self._docker(), "run", "--rm", *options, IMAGE, "/bin/true"]

    def version(self):
        argv = [*self._docker(), "version", "--format", "{{.Server.Version}}"]
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()

    def _docker(self):
        return [self._client, "--host", f"unix://{self._root}/docker.sock"]

    def _start(self, daemon):
        argv = ["setpriv", "--pdeathsig", "KILL",
                "unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
                "--propagation", "private", "sh", "-c", PID1, "dockerd", daemon,
                "--host", f"unix://{self._root}/docker.sock",
                "--data-root", f"{self._root}/data", "--exec-root", f"{self._root}/exec",
                "--pidfile", f"{self._root}/pid", "--cgroup-parent", f"/{self._cgroup}",
                "--iptables=false", "--ip6tables=false", "--userland-proxy=false"]
        log = self._root / "log"
        with log.open("wb") as sink:
            self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=sink,
                                             stderr=sink, start_new_session=True)
        deadline = time.monotonic() + START_SECONDS
        while self._process.poll() is None and time.monotonic() < deadline:
            ready = subprocess.run([*self._docker(), "info"], capture_output=True, check=False)
            if ready.returncode == 0 and b"Server Version" in ready.stdout:
                return
            # The shell that is PID 1 outlives a daemon that gave up.
            if b"failed to start daemon" in log.read_bytes():
                break
            time.sleep(0.1)
        lines = log.read_text(errors="replace").strip().splitlines() or ["no log"]
        raise Unavailable(f"dockerd did not start: {lines[-1][:200]}")

    def _import_image(self):
        archive = self._root / "root.tar"
        with tarfile.open(archive, "w", dereference=True) as tar:
            for path in program_files("/bin/true"):
                tar.add(path, arcname=path.lstrip("/"))
        for argv in (["import", str(archive), IMAGE], ["run", "--rm", IMAGE, "/bin/true"]):
            done = subprocess.run([*self._docker(), *argv], capture_output=True, text=True,
                                  check=False)
            if done.returncode != 0:
                last = (done.stderr.strip().splitlines() or ["no message"])[-1]
                raise Unavailable(f"docker {argv[0]} failed: {last[:200]}")

    def stop(self):
        """Stops the daemon, then everything left in its pid namespace, then removes its files."""
        if self._process:
            self._terminate()
            self._process = None
        if self._root:
            remove_cgroups(self._cgroup)
            shutil.rmtree(self._root, ignore_errors=True)
            self._root = None

    def _terminate(self):
        pid = self._process.pid
        try:
            children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            for child in children:
                os.kill(int(child), signal.SIGTERM)
            self._process.wait(STOP_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            pass
        self._process.kill()  # --kill-child takes the whole namespace along
        self._process.wait()

    @staticmethod
    def _sweep():
        """Removes what a bench that was killed left; its processes died with it."""
        for folder in FOLDER.glob(f"{PREFIX}*.*"):
            owner = folder.name.removeprefix(PREFIX).split(".")[0]
            if owner.isdecimal() and not pathlib.Path(f"/proc/{owner}").exists():
                remove_cgroups(cgroup_name(owner))
                shutil.rmtree(folder, ignore_errors=True)


def cgroup_name(pid):
    return f"caisson-bench-{pid}"


def remove_cgroups(name):
    """Removes the groups of this name in every hierarchy, waiting a moment for the dying."""
    base = pathlib.Path("/sys/fs/cgroup")
    for top in [base / name, *base.glob(f"*/{name}")]:
        for folder, _, _ in os.walk(top, topdown=False):
            for _ in range(50):
                try:
                    os.rmdir(folder)
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.02)
