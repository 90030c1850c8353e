"""Group J: file operations through the engine meet what a hostile sandbox put there."""

import base64
import json

import pytest

from harness import covers
from harness.driver import Refused

PROBE = "/mnt/probe/probe"


@pytest.fixture
def box(driver, probe_mount):
    with driver.create(mounts=[probe_mount]) as sandbox:
        yield sandbox


def shell(box, script):
    return box.exec("/bin/sh", "-c", script, user="0").ok()


@pytest.mark.parametrize("path", ["../../etc/shadow", "/../../../etc/hostname", "/tmp/../../../etc/hostname",
                                  "//etc//hostname", "/tmp/./x/../../etc/hostname"])
def test_j01_dots_never_lead_outside(box, path, sentinels):
    """Inside the root, or an error; never the host's file."""
    try:
        data = box.read(path)
    except Refused as refusal:
        assert refusal.code in ("invalid_argument", "not_found", "io", "permission_denied"), refusal
    else:
        assert data == shell(box, "cat /etc/hostname").stdout.encode()


@pytest.mark.parametrize("path", ["relative", "", "/tmp/a\x00b", "/" + "x" * 5000, "/tmp/" + "y" * 300])
def test_j01_impossible_paths_are_refused(box, path):
    with pytest.raises(Refused) as caught:
        box.write(path, b"x")
    assert caught.value.message


def test_j02_links_resolve_in_the_sandboxs_root(box, sentinels):
    shell(box, f"ln -s {sentinels.path} /tmp/canary; ln -s ../../../../../etc/hostname /tmp/up; "
               "ln -s /tmp/loop /tmp/loop; ln -s /proc/1/root /tmp/init; ln -s /proc/self/root /tmp/self")
    with pytest.raises(Refused):
        box.read("/tmp/canary")
    assert box.read("/tmp/up") == shell(box, "cat /etc/hostname").stdout.encode()
    with pytest.raises(Refused):
        box.read("/tmp/loop")
    with pytest.raises(Refused):
        box.read("/tmp/init" + sentinels.path)
    with pytest.raises(Refused):
        box.read("/tmp/self" + sentinels.path)


def test_j02_a_long_chain_of_links_ends(box):
    shell(box, "cd /tmp; echo x > l0; for i in $(seq 1 60); do ln -s l$((i-1)) l$i; done")
    assert box.read("/tmp/l3") == b"x\n"
    with pytest.raises(Refused):
        box.read("/tmp/l60")


def test_j04_writing_through_a_link_stays_inside(box, sentinels):
    shell(box, f"ln -s {sentinels.path} /tmp/log; ln -s /etc/written-inside /tmp/inside")
    try:
        box.write("/tmp/log", b"overwritten")
    except Refused:
        pass
    try:
        box.write("/tmp/inside", b"inside")
    except Refused:
        pass
    assert sentinels.changes() == []


@pytest.mark.parametrize("make, path", [
    ("mkfifo /tmp/x", "/tmp/x"), ("mkdir /tmp/x", "/tmp/x"), ("true", "/dev/null"), ("true", "/dev/zero"),
    ("true", "/dev/tty"), ("true", "/proc/1/mem"), ("true", "/dev"),
])
def test_j05_only_regular_files_are_read_and_nothing_blocks(box, make, path):
    shell(box, make)
    with pytest.raises(Refused) as caught:
        box.driver.call("file.read", 5, id=box.id, path=path, user="root")
    assert caught.value.message
    with pytest.raises(Refused):
        box.driver.call("file.write", 5, id=box.id, path=path, user="root", data_b64="eA==")
    box.exec("/bin/true").ok()


def test_j05_a_masked_file_is_refused_or_empty(box):
    try:
        assert box.driver.call("file.read", 5, id=box.id, path="/proc/kmsg", user="root")["data_b64"] == ""
    except Refused as refusal:
        assert refusal.message


NAMES = [b"new\nline", b"carriage\rreturn", b"\x1b[31mred", b"\xff\xfe invalid", b"\xc0\xaf", b"quote\"back\\slash",
         b"-rf", b"n" * 255, b" ", b"...", "snow☃".encode()]


def test_j08_names_come_back_exactly(box):
    """The probe has no way to name bytes, so a here-script makes them; the listing gives them back."""
    octal = ["".join(f"\\{byte:03o}" for byte in name) for name in NAMES]
    shell(box, "mkdir /tmp/names && cd /tmp/names && " +
          " && ".join(f"f=$(printf '{o}_'); : > \"./${{f%_}}\"" for o in octal))
    entries = box.list("/tmp/names")["entries"]
    seen = {base64.b64decode(e["name_b64"]) if "name_b64" in e else e["name"].encode("utf-8", "surrogateescape")
            for e in entries}
    assert seen == set(NAMES)


def test_j08_a_big_directory_is_listed_in_pages(box):
    shell(box, "mkdir /tmp/many && cd /tmp/many && seq 3000 | xargs touch")
    names = {e["name"] for e in box.list("/tmp/many")["entries"]}
    assert len(names) == 3000


def test_j08_a_deep_path_is_removed(box):
    box.exec(PROBE, "tree", "/tmp", "1500", user="0")
    box.remove("/tmp/d", recursive=True)
    assert "d" not in {e["name"] for e in box.list("/tmp")["entries"]}


def test_j07_recursive_removal_does_not_follow_a_swapped_link(box):
    shell(box, "mkdir -p /workspace/keep/sub /tmp/victim/a/b; touch /workspace/keep/sub/precious; "
               "for i in $(seq 200); do mkdir -p /tmp/victim/a/$i/x; touch /tmp/victim/a/$i/x/f; done; "
               "ln -s /workspace/keep /tmp/victim/link; ln -s /workspace/keep /tmp/swap")
    racer = box.start(PROBE, "exchange", "/tmp/victim/a", "/tmp/swap", "2", user="0")
    for _ in range(20):
        try:
            box.remove("/tmp/victim", recursive=True)
        except Refused:
            pass
        shell(box, "mkdir -p /tmp/victim/a/b; test -e /tmp/swap || ln -s /workspace/keep /tmp/swap")
    racer.wait()
    shell(box, "test -e /workspace/keep/sub/precious")


def test_j26_set_user_bits_of_an_upload_stay_harmless(box):
    box.write("/tmp/setuid", b"#!/bin/sh\nid -u\n", mode=0o4755)
    box.exec("/bin/chmod", "4755", "/tmp/setuid", user="0")
    assert box.exec("/tmp/setuid", user="1000").stdout.strip() in ("1000", "")


def test_files_belong_to_the_user_who_wrote_them(box):
    box.write("/tmp/mine", b"x", user="1000")
    assert box.exec("/usr/bin/stat", "-c", "%u:%g", "/tmp/mine").ok().stdout.strip() == "1000:1000"
    with pytest.raises(Refused):
        box.write("/etc/passwd", b"root::0:0::/:/bin/sh\n", user="1000")


def test_any_bytes_survive_the_round_trip(box):
    data = bytes(range(256)) * 4096
    box.write("/tmp/bytes", data)
    assert box.read("/tmp/bytes") == data
    assert json.loads(json.dumps(box.stat("/tmp/bytes")))["ok"]


def test_the_covers_of_proc_cannot_be_written(driver):
    """What hides a file of /proc is no place to leave something in."""
    with driver.create() as box:
        found = covers.tried(box)
    assert len(found["cover"]) > 5 and found["writable"] == []
