"""The S observation: things of the host that no sandbox may touch.

Sentinels stand while attempts run; `check()` names every one that changed. Each has a counterpart in the
probe (`connect`, `abstract`, `find`) that goes for it from inside.
"""

import ctypes
import hashlib
import os
import secrets
import socket
import subprocess
import threading

_libc = ctypes.CDLL(None, use_errno=True)

SETTINGS = ("kernel/core_pattern", "kernel/hostname", "kernel/pid_max", "kernel/modprobe",
            "vm/overcommit_memory", "net/ipv4/ip_forward")

IPC_CREAT, IPC_EXCL, IPC_RMID = 0o1000, 0o2000, 0
SYS_ADD_KEY, SYS_KEYCTL = 248, 250
KEYCTL_READ, KEYCTL_UNLINK, KEY_USER_KEYRING = 11, 9, -4


class Sentinels:
    def __init__(self, directory):
        self.token = "canary-" + secrets.token_hex(8)
        self.ipc_key = 0x43000000 | secrets.randbits(20)
        self.path = os.path.join(directory, self.token)
        self._accepted = {"tcp": 0, "tcp6": 0, "abstract": 0}
        self._listeners = []

    def __enter__(self):
        self._plant_file()
        self._plant_process()
        self.port = self._listen("tcp", socket.AF_INET, ("127.0.0.1", 0)).getsockname()[1]
        try:
            self._listen("tcp6", socket.AF_INET6, ("::1", self.port))
        except OSError:
            pass  # a host without IPv6
        self._listen("abstract", socket.AF_UNIX, b"\0" + self.token.encode())
        self._plant_ipc()
        self._settings = {name: _digest(f"/proc/sys/{name}") for name in SETTINGS}
        self._null = _identity("/dev/null")
        return self

    def __exit__(self, *_):
        for listener in self._listeners:
            listener.close()
        self._process.kill()
        self._process.wait()
        _libc.shmctl(self._segment, IPC_RMID, None)
        if self._queue is not None:
            os.close(self._queue)
            _libc.mq_unlink(b"/" + self.token.encode())
        if self._key is not None:
            _libc.syscall(SYS_KEYCTL, KEYCTL_UNLINK, self._key, KEY_USER_KEYRING)
        os.unlink(self.path)

    def changes(self):
        """Every sentinel that is not as it was, in words."""
        found = []
        stat = os.stat(self.path)
        if _digest(self.path) != self._content or stat.st_mode & 0o7777 != 0o600:
            found.append(f"the canary file {self.path} changed")
        if self._process.poll() is not None or self._start_time() != self._started:
            found.append(f"the canary process {self._process.pid} is gone")
        for kind, count in self._accepted.items():
            if count:
                found.append(f"the {kind} canary accepted {count} connections")
        if ctypes.string_at(self._memory, len(self.token)) != self.token.encode():
            found.append("the SysV segment changed")
        if self._attached() != 1:
            found.append(f"the SysV segment is attached {self._attached()} times")
        if self._key is not None and self._read_key() != self.token.encode():
            found.append("the keyring entry changed")
        for name, digest in self._settings.items():
            if _digest(f"/proc/sys/{name}") != digest:
                found.append(f"/proc/sys/{name} changed")
        if _identity("/dev/null") != self._null:
            found.append(f"/dev/null changed: {_identity('/dev/null')} was {self._null}")
        return found

    def check(self):
        found = self.changes()
        assert not found, "sentinels touched: " + "; ".join(found)

    def _plant_file(self):
        data = secrets.token_bytes(4096)
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        os.write(fd, data)
        os.close(fd)
        self._content = hashlib.sha256(data).hexdigest()

    def _plant_process(self):
        self._process = subprocess.Popen(["sleep", "3600"], stdin=subprocess.DEVNULL)
        self._started = self._start_time()

    def _start_time(self):
        try:
            with open(f"/proc/{self._process.pid}/stat", encoding="ascii") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
        except OSError:
            return None
        return None if fields[0] in "ZT" else fields[19]

    def _listen(self, kind, family, address):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.bind(address)
        listener.listen(16)
        self._listeners.append(listener)

        def accept():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                self._accepted[kind] += 1
                connection.close()

        threading.Thread(target=accept, daemon=True).start()
        return listener

    def _plant_ipc(self):
        _libc.shmat.restype = ctypes.c_void_p
        self._segment = _libc.shmget(self.ipc_key, 4096, IPC_CREAT | IPC_EXCL | 0o666)
        if self._segment < 0:
            raise OSError(ctypes.get_errno(), "shmget")
        self._memory = _libc.shmat(self._segment, None, 0)
        ctypes.memmove(self._memory, self.token.encode(), len(self.token))
        queue = _libc.mq_open(b"/" + self.token.encode(), os.O_CREAT | os.O_RDWR, 0o666, None)
        self._queue = queue if queue >= 0 else None
        key = _libc.syscall(SYS_ADD_KEY, b"user", self.token.encode(), self.token.encode(),
                            len(self.token), KEY_USER_KEYRING)
        self._key = key if key > 0 else None

    def _attached(self):
        """shm_nattch of the segment, from /proc/sysvipc/shm."""
        with open("/proc/sysvipc/shm", encoding="ascii") as table:
            next(table)
            for line in table:
                fields = line.split()
                if int(fields[1]) == self._segment:
                    return int(fields[6])
        return 0

    def _read_key(self):
        buffer = ctypes.create_string_buffer(256)
        size = _libc.syscall(SYS_KEYCTL, KEYCTL_READ, self._key, buffer, len(buffer))
        return buffer.raw[:size] if size > 0 else b""


def _digest(path):
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError as error:
        return f"unreadable: {error.errno}"


def _identity(path):
    stat = os.stat(path)
    return (oct(stat.st_mode), stat.st_uid, stat.st_gid, stat.st_rdev, stat.st_ino)
