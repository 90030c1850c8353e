"""Kernel features that have no command line tool in the machine: `features.py NAME [ARGUMENT]`.

Prints a line of what was found; exits 1 when the feature does not work.
"""

import ctypes
import errno
import fcntl
import os
import struct
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
AT_FDCWD, AT_EMPTY_PATH = -100, 0x1000
SYS_UNSHARE, SYS_OPEN_TREE, SYS_MOUNT_SETATTR, SYS_QUOTACTL_FD, SYS_LANDLOCK = 272, 428, 442, 443, 444
CLONE_NEWUSER, CLONE_NEWNS = 0x10000000, 0x00020000
MOUNT_ATTR_IDMAP = 0x00100000
FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR, FS_XFLAG_PROJINHERIT = 0x801C581F, 0x401C5820, 0x200
Q_SETQUOTA, Q_GETQUOTA, PRJQUOTA = 0x800008, 0x800007, 2


def syscall(number, *arguments):
    """Returns the result, or raises OSError with the call's errno."""
    result = LIBC.syscall(number, *arguments)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, errno.errorcode.get(code, str(code)))
    return result


def landlock():
    print("landlock ABI", syscall(SYS_LANDLOCK, None, 0, 1))


def user_namespace():
    """A descriptor of a user namespace that maps 0..65535 to 100000..; its maker is gone."""
    ready, done = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        syscall(SYS_UNSHARE, CLONE_NEWUSER)
        os.write(ready[1], b"r")
        os.read(done[0], 1)
        os._exit(0)
    os.read(ready[0], 1)
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{child}/{name}", "w") as mapping:
            mapping.write("0 100000 65536")
    descriptor = os.open(f"/proc/{child}/ns/user", os.O_RDONLY)
    os.write(done[1], b"d")
    os.waitpid(child, 0)
    return descriptor


def idmap(path):
    """An id-mapped clone of the mount at path."""
    tree = syscall(SYS_OPEN_TREE, AT_FDCWD, path.encode(), 1 | os.O_CLOEXEC)
    attributes = struct.pack("=QQQQ", MOUNT_ATTR_IDMAP, 0, 0, user_namespace())
    syscall(SYS_MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, attributes, len(attributes))
    print("id-mapped mount of", path, "works, root seen as", os.stat(f"/proc/self/fd/{tree}").st_uid)


def kib_written_by(user, path):
    """KiB, at most 4096, that a process of that user can write into the file at path."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setresuid(user, user, user)
        written = 0
        try:
            with open(path, "wb", buffering=0) as blob:
                while written < 4096:
                    written += blob.write(bytes(65536)) // 1024
        except OSError:
            pass
        os.write(writer, str(written).encode())
        os._exit(0)
    os.waitpid(child, 0)
    return int(os.read(reader, 16))


def quota(path):
    """A project of 1 MiB below path stops a writer. CAP_SYS_RESOURCE is exempt on ext4."""
    folder, project = os.path.join(path, "quota-check"), 4242
    os.mkdir(folder)
    directory = os.open(folder, os.O_RDONLY)
    attributes = bytearray(fcntl.ioctl(directory, FS_IOC_FSGETXATTR, bytes(28)))
    struct.pack_into("=I", attributes, 0, FS_XFLAG_PROJINHERIT)
    struct.pack_into("=I", attributes, 12, project)
    fcntl.ioctl(directory, FS_IOC_FSSETXATTR, bytes(attributes))
    # struct if_dqblk: limits in KiB, then the mask QIF_LIMITS.
    block = struct.pack("=QQQQQQQQI4x", 1024, 1024, 0, 0, 0, 0, 0, 0, 5)
    syscall(SYS_QUOTACTL_FD, directory, (Q_SETQUOTA << 8) | PRJQUOTA, project, block)
    os.chown(folder, 1000, 1000)
    written = kib_written_by(1000, os.path.join(folder, "blob"))
    unlimited = kib_written_by(0, os.path.join(folder, "blob"))
    print(f"uid 1000 wrote {written} KiB of 4096; root with CAP_SYS_RESOURCE wrote {unlimited}")
    os.unlink(os.path.join(folder, "blob"))
    os.close(directory)
    os.rmdir(folder)
    if not 0 < written <= 1024:
        raise SystemExit(f"1 MiB of quota let {written} KiB pass")


def main():
    name, *arguments = sys.argv[1:]
    try:
        {"landlock": landlock, "idmap": idmap, "quota": quota}[name](*arguments)
    except OSError as error:
        raise SystemExit(f"{name} {' '.join(arguments)}: {error}")


main()
