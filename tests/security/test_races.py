"""B20, D10: mount targets that move while sandboxes are being made.

A hostile sandbox owns a directory that other sandboxes have as a root or as a volume, and exchanges, as fast as
it can, a directory with a link that leads to the host. Whoever follows the link once has lost."""

import os
import shutil
import time

import pytest

from harness import paths
from harness.driver import Refused

PROBE = "/mnt/probe/probe"
SECONDS = float(os.environ.get("CAISSON_RACE_SECONDS", "4"))

pytestmark = pytest.mark.skipif(not paths.IS_ROOT, reason="the volume belongs to another user")


@pytest.fixture
def volume(tmp_path):
    """A directory of user 12345's, with a directory and a link that change places, and what the link leads to."""
    outside = tmp_path / "outside"
    outside.mkdir()
    os.chmod(tmp_path, 0o755)
    place = tmp_path / "volume"
    (place / "x/inner").mkdir(parents=True)
    (place / "y").symlink_to(outside)
    for path in (place, place / "x", place / "x/inner"):
        os.chown(path, 12345, 12345)
        os.chmod(path, 0o777)
    os.chown(place / "y", 12345, 12345, follow_symlinks=False)
    return place, outside


def racing(box, seconds=SECONDS):
    return box.start(PROBE, "exchange", "/mnt/v/x", "/mnt/v/y", str(int(seconds)), user="0")


def host_view():
    return {path: sorted(os.listdir(path)) for path in ("/", "/etc", "/mnt", "/dev") if os.path.isdir(path)}


def test_b20_d10_a_mount_inside_a_moving_volume_never_lands_outside(driver, probe_mount, volume, sentinels, tmp_path):
    place, outside = volume
    payload = tmp_path / "payload"
    payload.mkdir()
    (payload / "mark").write_text("mounted here")
    before, created, refused = host_view(), 0, set()
    shared = {"source": str(place), "target": "/mnt/v", "mode": "rw"}
    with driver.create(mounts=[probe_mount, shared], cpus=1.0) as hostile:
        for _ in range(8):  # a busy host makes few sandboxes in one
            racer = racing(hostile)
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                inner = {"source": str(payload), "target": "/mnt/v/x/inner", "mode": "ro"}
                try:
                    with driver.create(mounts=[shared, inner]) as box:
                        created += 1
                        assert box.read("/mnt/v/x/inner/mark") == b"mounted here"
                except Refused as refusal:  # the target was a link, or has become one since
                    refused.add(refusal.code)
                assert os.listdir(outside) == [], "a mount target was made outside"
            assert int(racer.wait().ok().stdout) > 1000, "nothing was exchanged"
            if created and refused:
                break
    assert created and refused, f"no race was run: {created} made, refused {refused}"
    assert os.listdir(outside) == [] and host_view() == before
    assert sentinels.changes() == []


def test_b20_a_root_whose_directories_move_is_never_left(driver, probe_mount, probe_directory, volume, sentinels):
    """The rootfs itself is a writable volume of a running sandbox: /x, on the way to a mount, is exchanged with a link."""
    place, outside = volume
    (place / "bin").mkdir()
    shutil.copy(probe_directory / "probe", place / "bin/probe")
    os.chmod(place / "bin/probe", 0o755)
    before = host_view()
    shared = {"source": str(place), "target": "/mnt/v", "mode": "rw"}
    codes, created = set(), 0
    with driver.create(mounts=[probe_mount, shared], cpus=1.0) as hostile:
        racer = racing(hostile)
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            try:
                with driver.create(rootfs=str(place), mounts=[{**probe_mount, "target": "/x/probe"}]) as box:
                    verdict = box.exec("/bin/probe", "B13").json()
                    assert verdict["result"] != "open", verdict
                    created += 1
            except Refused as refusal:
                codes.add(refusal.code)
            assert os.listdir(outside) == []
        assert int(racer.wait().ok().stdout) > 1000, "nothing was exchanged"
    assert created or codes
    assert host_view() == before and sentinels.changes() == []
