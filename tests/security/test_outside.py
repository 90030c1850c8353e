"""Cases that need a look from outside: what the host, a neighbour or the owner sees."""

import hashlib
import os
import re
import stat
import subprocess
import threading
import time

import pytest

from harness import paths
from harness.driver import Driver, Refused
from harness.paths import require
from harness.residue import descendants

PROBE = "/mnt/probe/probe"


@pytest.fixture
def box(driver, probe_mount):
    with driver.create(mounts=[probe_mount]) as sandbox:
        yield sandbox


def test_a16_a_setuid_file_left_in_a_shared_directory_is_no_setuid_root_file(driver, probe_mount, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    if paths.IS_ROOT:
        os.chown(shared, 12345, 12345)
    os.chmod(shared, 0o777)
    mounts = [probe_mount, {"source": str(shared), "target": "/mnt/shared", "mode": "rw"}]
    made = 0
    with driver.create(mounts=mounts) as sandbox:
        for user in ("0", "1000"):
            script = f"cp /mnt/probe/probe /mnt/shared/x{user} && chmod 6755 /mnt/shared/x{user}"
            made += sandbox.exec("/bin/sh", "-c", script, user=user).exit_code == 0
    assert made > 0
    for path in shared.iterdir():
        info = path.stat()
        assert not (info.st_mode & 0o6000 and (info.st_uid == 0 or info.st_gid == 0)), path


@pytest.mark.skipif(not paths.IS_ROOT, reason="only root could give what is root's")
def test_a16_a_directory_of_roots_is_not_given_to_a_sandbox_for_writing(driver, tmp_path):
    (tmp_path / "roots").mkdir()
    with pytest.raises(Refused) as caught:
        driver.create(mounts=[{"source": str(tmp_path / "roots"), "target": "/mnt/x", "mode": "rw"}])
    assert "/mnt/x" in caught.value.message and caught.value.remedy


@pytest.mark.parametrize("user", ["0", "1000"])
@pytest.mark.parametrize("profile", ["default", "strict"])
def test_a22_first_command_and_later_exec_have_the_same_state(driver, probe_mount, profile, user):
    with driver.create(profile=profile, user=user, mounts=[probe_mount]) as sandbox:
        states = [sandbox.exec(PROBE, "state", user=user).json()]
        sandbox.exec("/bin/sh", "-c", "umask 077; ulimit -n 32", user=user).ok()
        sandbox.exec(PROBE, "A01", user="1000" if profile == "default" else user)
        states.append(sandbox.exec(PROBE, "state", user=user).json())
        states.append(sandbox.exec("/bin/sh", "-c", f"exec {PROBE} state", user=user).json())
        states.append(sandbox.start(PROBE, "state", user=user).wait().json())
    for state in states:
        state["fds"] = re.sub(r"\[\d+\]", "", state["fds"])
        assert set(re.findall(r"^\d+", state["fds"], re.M)) <= {"0", "1", "2"}, state["fds"]
        assert state["CapInh"] == state["CapAmb"] == "0" * 16
        assert (state["NoNewPrivs"], state["Seccomp"], state["secure"]) == ("1", "2", "0")
        assert set(line.rsplit(":", 1)[1] for line in state["cgroup"].splitlines()) == {"/"}
        state.pop("fds")
        # Init raises a command's score a moment after it has started; below init's own it never is.
        assert int(state.pop("oom_score_adj")) > 0
        assert state == states[0]


def test_a22_every_namespace_is_the_sandboxs_own(box):
    state = box.exec(PROBE, "state").json()
    shared = [kind for kind in ("mnt", "net", "pid", "ipc", "uts", "user", "cgroup")
              if state[f"ns_{kind}"] == os.readlink(f"/proc/self/ns/{kind}")]
    assert not shared


@pytest.mark.parametrize("profile", ["default", "strict"])
def test_b11_no_host_path_shows_in_the_mount_table(driver, home, profile):
    with driver.create(profile=profile) as sandbox:
        text = sandbox.exec("/bin/cat", "/proc/self/mountinfo", "/proc/self/mounts", "/proc/self/mountstats").stdout
    for path in (str(home), str(paths.ROOT), "/var/lib/caisson", "/run/caisson", "/root", "/home", "/.cache"):
        assert path not in text, text


def tree_digest(top):
    digest = hashlib.sha256()
    for path, directories, files in os.walk(top):
        directories.sort()
        for name in sorted(directories + files):
            full = os.path.join(path, name)
            info = os.lstat(full)
            digest.update(repr((os.path.relpath(full, top), info.st_mode, info.st_uid, info.st_nlink,
                                info.st_mtime_ns)).encode())
            if stat.S_ISREG(info.st_mode):
                with open(full, "rb") as file:
                    digest.update(file.read())
    return digest.hexdigest()


@pytest.fixture
def image(tmp_path, probe_directory):
    """A root of our own: the probe, a passwd, a few files."""
    root = tmp_path / "image"
    for directory in ("bin", "etc", "data/sub", "tmp", "proc", "dev", "workspace", "root"):
        (root / directory).mkdir(parents=True)
    (root / "bin/probe").write_bytes((probe_directory / "probe").read_bytes())
    os.chmod(root / "bin/probe", 0o755)
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/probe\nuser:x:1000:1000::/:/bin/probe\n")
    (root / "etc/group").write_text("root:x:0:\nuser:x:1000:\n")
    (root / "data/file").write_text("original")
    (root / "data/sub/deep").write_text("deep")
    os.chmod(tmp_path, 0o755)
    return root


def test_b16_a_shared_image_is_never_changed_by_a_sandbox(driver, image):
    before = tree_digest(image)
    with driver.create(rootfs=str(image)) as one, driver.create(rootfs=str(image)) as two:
        one.write("/data/file", b"changed")
        try:
            one.move("/data/sub", "/data/moved")
        except Refused:
            pass  # a directory of the lower layer cannot be renamed on every overlay; it must only stay whole
        one.remove("/bin/probe")
        one.write("/etc/passwd", b"root::0:0::/:/x\n")
        assert one.read("/data/file") == b"changed"
        assert two.read("/data/file") == b"original"
        assert two.read("/data/sub/deep") == b"deep"
        two.exec("/bin/probe", "exit", "0").ok()
    assert tree_digest(image) == before


def test_b17_hostile_trees_are_destroyed_completely(box):
    made = box.exec(PROBE, "tree", "/workspace", "4000", user="0", timeout_ms=60_000).json()
    assert made["depth"] > 500
    begin = time.monotonic()
    box.destroy()
    assert time.monotonic() - begin < 20


def test_c01_no_core_pattern_helper_and_no_core_file(box, sentinels, tmp_path):
    outcome = box.exec("/bin/sh", "-c", "echo '|/tmp/x' > /proc/sys/kernel/core_pattern; cd /workspace; "
                       "ulimit -c unlimited; kill -SEGV $$")
    assert outcome.status == "signaled" and outcome.signal in (11, "SIGSEGV"), repr(outcome)
    assert not [e for e in box.list("/workspace")["entries"] if "core" in e["name"]]
    assert sentinels.changes() == []


SAFE_TARGET = re.compile(r"^(pipe:|socket:|anon_inode:|/dev/null$|/dev/pts/|/dev/ptmx|/memfd:caisson)")


def test_d02_no_process_of_a_sandbox_holds_a_host_file_while_creating(driver, probe_mount):
    """Sampled from the host as fast as it goes, in every process that is no longer the launcher."""
    leaks, samples, stop = set(), [0], threading.Event()

    def sample():
        while not stop.is_set():
            for pid, name in descendants(driver.pid).items():
                if name.startswith("caisson-launch") or name == "driver":
                    continue
                try:
                    for fd in os.listdir(f"/proc/{pid}/fd"):
                        target = os.readlink(f"/proc/{pid}/fd/{fd}")
                        samples[0] += 1
                        if not SAFE_TARGET.match(target):
                            leaks.add(f"{name}: {fd} -> {target}")
                except OSError:
                    continue

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        for _ in range(15):
            with driver.create() as sandbox:
                sandbox.exec("/bin/true").ok()
    finally:
        stop.set()
        thread.join()
    assert samples[0] > 20
    # A command may open files of its own image; what is meant is anything outside it.
    assert not {leak for leak in leaks if leak.startswith("caisson-init")}, leaks


def test_d04_stdout_reopened_is_still_the_pipe(box):
    script = "for fd in 0 1 2; do test -f /proc/self/fd/$fd && echo file $fd; done; (: > /proc/self/fd/1) 2>/dev/null; echo end"
    assert box.exec("/bin/sh", "-c", script).ok().stdout == "end\n"


def test_d05_programs_that_enter_a_sandbox_cannot_be_overwritten(box):
    before = {path: hashlib.sha256(path.read_bytes()).hexdigest()
              for path in (paths.DRIVER, paths.CAISSON) if path.exists()}
    attacker = box.start(PROBE, "overwrite-entering", "2", user="0")
    box.write("/workspace/script", b"#!/proc/self/exe\n", mode=0o755)
    box.exec("/bin/chmod", "755", "/workspace/script")
    end = time.monotonic() + 2
    while time.monotonic() < end:
        box.exec("/bin/true").ok()
        try:
            box.exec("/workspace/script", timeout_ms=500)
        except Refused:
            pass
    result = attacker.wait().json()
    assert result["tries"] > 100 and result["opened"] == ""
    for path, digest in before.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == digest


HOSTILE_LINKS = {
    "dev/null": "/proc/sys/kernel/core_pattern",
    "dev": "/etc", "dev/pts": "/etc", "proc": "/etc", "sys": "/etc", "tmp": "/etc", "workspace": "/etc",
    "etc": "/root", "etc/hosts": "/etc/cron.d/x", "etc/resolv.conf": "../../../../../../etc/x",
    "etc/passwd": "/etc/shadow",
    "root": "/proc/1/root",
}


@pytest.mark.parametrize("name", HOSTILE_LINKS)
def test_d07_d08_a_link_in_the_image_never_leads_the_engine_outside(driver, image, sentinels, name):
    """Either the image is refused as invalid, or the name is replaced inside; nothing happens outside."""
    place = image / name
    if place.is_dir() and not place.is_symlink():
        subprocess.run(["rm", "-r", place], check=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    place.symlink_to(HOSTILE_LINKS[name])
    before = {path: sorted(os.listdir(path)) for path in ("/etc", "/etc/cron.d", "/dev") if os.path.isdir(path)}
    try:
        with driver.create(rootfs=str(image)) as sandbox:
            for attempt in ("G06", "G03", "C07", "B13"):
                verdict = sandbox.exec("/bin/probe", attempt).json()
                assert verdict["result"] != "open", verdict
    except Refused as refusal:
        assert refusal.code == "image_invalid", refusal
        assert name.split("/")[0] in refusal.message and refusal.remedy, refusal
    for path, names in before.items():
        assert sorted(os.listdir(path)) == names


@pytest.mark.parametrize("name", ["dev", "proc", "tmp", "workspace", "etc"])
def test_d08_a_file_where_a_directory_belongs_is_refused_or_replaced(driver, image, name):
    subprocess.run(["rm", "-r", image / name], check=True)
    (image / name).write_text("not a directory")
    try:
        with driver.create(rootfs=str(image)) as sandbox:
            assert sandbox.exec("/bin/probe", "G06").json()["result"] == "ok"
    except Refused as refusal:
        assert refusal.code == "image_invalid" and name in refusal.message


@pytest.mark.skipif(not paths.IS_ROOT, reason="device nodes need root")
def test_g02_a_device_node_in_the_image_is_dead(driver, image):
    os.mknod(image / "data/kmsg", 0o666 | stat.S_IFCHR, os.makedev(1, 11))
    os.chmod(image / "data/kmsg", 0o666)
    with driver.create(rootfs=str(image)) as sandbox:
        number = {"x86_64": 2}.get(os.uname().machine)
        if number is None:
            pytest.skip("open(2) has no number here")
        verdict = sandbox.exec("/bin/probe", "sc", number, "/data/kmsg", "2048").json()
        assert verdict["errno"] in ("EACCES", "EPERM", "ENOENT"), verdict


@pytest.mark.parametrize("user", ["0:0", "1000:", ":", ":0", "+0", "00", "4294967295", "4294967296", "-1", "１０００",
                                  " 0", "0 ", "0x0", "1e3", "root\n", "../root", "nobody-here", "a" * 300,
                                  "99999999999999999999", "65536"])
def test_d11_users_outside_the_grammar_are_refused(box, user):
    with pytest.raises(Refused) as caught:
        box.exec("/bin/true", user=user)
    assert caught.value.code in ("invalid_argument", "not_found"), caught.value
    assert caught.value.message and caught.value.remedy


def test_d11_a_user_is_looked_up_in_the_image_not_on_the_host(driver, image):
    (image / "etc/passwd").write_text("root:x:0:0::/:/x\nalice:x:1234:1234::/:/x\nzero:x:0:0::/:/x\n"
                                      "huge:x:4294967296:0::/:/x\nneg:x:-1:0::/:/x\n" + "y" * 100_000)
    with driver.create(rootfs=str(image)) as sandbox:
        assert sandbox.exec("/bin/probe", "state", user="alice").json()["Uid"].split()[0] == "1234"
        for user in ("huge", "neg", "daemon"):
            with pytest.raises(Refused):
                sandbox.exec("/bin/probe", "exit", user=user)


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::ffff:127.0.0.1"])
def test_f02_nothing_that_listens_on_the_host_is_reached(box, sentinels, address):
    verdict = box.exec(PROBE, "connect", address, sentinels.port).json()
    assert verdict["result"] == "refused", verdict
    assert sentinels.changes() == []


def test_f02_no_address_of_the_host_is_reached(box, sentinels):
    listing = subprocess.run(["ip", "-o", "addr"], capture_output=True, text=True)
    for address in re.findall(r"inet6? ([0-9a-f.:]+)/", listing.stdout):
        if address.startswith("fe80"):
            continue
        assert box.exec(PROBE, "connect", address, sentinels.port).json()["result"] == "refused"


def test_f15_abstract_sockets_of_the_host_are_not_reached(box, sentinels):
    assert box.exec(PROBE, "abstract", sentinels.token).json()["result"] == "refused"


def test_d09_the_owners_environment_does_not_enter(home, probe_mount):
    with Driver(require(paths.DRIVER), home=home, env={"CANARY_SECRET": "s3cr3t", "LD_PRELOAD_CANARY": "x"}) as driver:
        with driver.create(mounts=[probe_mount]) as sandbox:
            text = sandbox.exec("/usr/bin/env").ok().stdout
            assert "CANARY" not in text and "s3cr3t" not in text
            assert "CAISSON_HOME" not in text


def test_g11_terminals_come_from_the_sandboxs_own_pool(box):
    before = len(os.listdir("/dev/pts"))
    verdict = box.exec(PROBE, "G11").json()
    assert verdict["errno"] == "ENOSPC" and int(verdict["detail"].split()[0]) <= 64, verdict
    assert len(os.listdir("/dev/pts")) <= before + 1


def test_g16_l01_what_one_sandbox_leaves_no_other_one_and_not_the_host_finds(driver, probe_mount, sentinels):
    name, key = "trace-" + os.urandom(4).hex(), hex(0x53000000 | int.from_bytes(os.urandom(2), "big"))
    with driver.create(mounts=[probe_mount]) as one, driver.create(mounts=[probe_mount]) as two:
        left = one.exec(PROBE, "leave", name, key, user="0").json()["left"]
        for place in ("/tmp/", "/dev/shm/", "shm", "sem", "msg"):
            assert place in left, left
        assert one.exec(PROBE, "find", name, key, user="0").json()["result"] == "open"
        assert two.exec(PROBE, "find", name, key, user="0").json()["result"] == "ok"
        host = subprocess.run([paths.PROBE, "find", name, key], capture_output=True, text=True)
        assert '"ok"' in host.stdout, host.stdout
        # The host's own objects, from inside.
        assert two.exec(PROBE, "find", sentinels.token, hex(sentinels.ipc_key)).json()["result"] == "ok"
    # Slots are reused: the next lives must not see what the first left.
    for _ in range(4):
        with driver.create(mounts=[probe_mount]) as later:
            assert later.exec(PROBE, "find", name, key, user="0").json()["result"] == "ok"


def test_h01_killing_everything_inside_hurts_nothing_outside(box, sentinels):
    box.start("/bin/sleep", "100")
    outcome = box.exec("/bin/sh", "-c", "kill -9 -1", user="0")
    assert outcome.status in ("signaled", "exited"), repr(outcome)
    box.exec("/bin/sh", "-c", "kill -STOP 1; kill -9 1; kill -TERM 1; kill -USR1 1; true", user="0").ok()
    box.exec("/bin/true").ok()
    assert sentinels.changes() == []


def names_below(driver):
    return sorted(descendants(driver.pid).values())


@pytest.mark.parametrize("end", ["exit", "timeout", "destroy"])
def test_h02_daemonised_grandchildren_end_with_their_command(driver, probe_mount, end):
    with driver.create(mounts=[probe_mount]) as sandbox:
        if end == "timeout":
            outcome = sandbox.exec("/bin/sh", "-c", f"{PROBE} daemonise 100; sleep 100", timeout_ms=700)
            assert outcome.status == "timeout", repr(outcome)
            for _ in range(50):
                if "left-behind" not in names_below(driver):
                    break
                time.sleep(0.05)
            assert "left-behind" not in names_below(driver)
        else:
            sandbox.exec(PROBE, "daemonise", "100").ok()
    for _ in range(60):
        if "left-behind" not in names_below(driver):
            break
        time.sleep(0.05)
    assert "left-behind" not in names_below(driver)


def test_h04_a_paused_sandbox_can_be_destroyed(driver, probe_mount):
    with driver.create(mounts=[probe_mount]) as sandbox:
        sandbox.start(PROBE, "burn", "2", "100")
        sandbox.pause()
        begin = time.monotonic()
        sandbox.destroy()
        assert time.monotonic() - begin < 5


def test_h07_a_stopped_command_still_meets_its_timeout(box):
    begin = time.monotonic()
    outcome = box.exec("/bin/sh", "-c", "kill -STOP $$", timeout_ms=800, deadline=20)
    assert outcome.status == "timeout", repr(outcome)
    assert 0.7 < time.monotonic() - begin < 5


def test_h08_a_command_that_ignores_term_still_meets_its_timeout(box):
    outcome = box.exec("/bin/sh", "-c", "trap '' TERM INT HUP; while :; do sleep 1; done", timeout_ms=800, deadline=20)
    assert outcome.status == "timeout", repr(outcome)


def test_h08_a_grandchild_that_keeps_stdout_does_not_keep_the_caller(box):
    begin = time.monotonic()
    outcome = box.exec(PROBE, "daemonise", "60", "keep", deadline=30)
    assert outcome.exit_code == 0 and time.monotonic() - begin < 10, repr(outcome)


def test_h14_a_crash_leaves_no_core_on_the_host(box, sentinels):
    outcome = box.exec("/bin/sh", "-c", "ulimit -c unlimited; kill -SEGV $$", cwd="/tmp")
    assert outcome.status == "signaled", repr(outcome)
    assert box.exec("/bin/sh", "-c", "ls /tmp/core* /core* 2>/dev/null | wc -l").ok().stdout.strip() == "0"


def test_l08_ids_are_not_guessable(driver):
    ids = []
    for _ in range(6):
        with driver.create() as sandbox:
            ids.append(sandbox.id)
    assert len(set(ids)) == len(ids)
    assert all(len(i) >= 8 for i in ids), ids
