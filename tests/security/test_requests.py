"""K22, D14 from the owner's side: a value that the protocol has no room for is an error of that one request. It
must cost neither the sandbox it was meant for nor the others of the same owner."""

import pytest

from harness.driver import Refused


@pytest.fixture
def box(driver):
    with driver.create() as sandbox:
        yield sandbox


TOO_MUCH = {
    "user": {"user": "u" * 300},
    "cwd": {"cwd": "/" + "c" * 5000},
    "argument": {"argv": ["/bin/echo", "a" * 120_000]},
    "arguments": {"argv": ["/bin/echo"] + ["a"] * 5000},
    "variables": {"env": {f"V{n}": "x" for n in range(5000)}},
    "variable": {"env": {"V": "x" * 120_000}},
    "all": {"argv": ["/bin/echo"] + ["a" * 50_000] * 4},
    "name": {"argv": ["n" * 5000]},
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_too_much_in_a_command_is_refused_and_the_sandbox_lives(box, what):
    with pytest.raises(Refused) as caught:
        box.call("exec", **{"argv": ["/bin/true"], **TOO_MUCH[what]})
    assert caught.value.code in ("invalid_argument", "not_found", "permission_denied"), caught.value
    assert caught.value.message
    box.exec("/bin/true").ok()


@pytest.mark.parametrize("operation, fields", [
    ("file.stat", {"path": "/" + "p" * 5000}), ("file.list", {"path": "/" + "p/" * 5000}),
    ("file.read", {"path": "/tmp", "user": "u" * 300}), ("file.mkdir", {"path": "/" + "p" * 5000}),
    ("file.move", {"from": "/tmp/" + "f" * 5000, "to": "/tmp/t"}), ("file.remove", {"path": "/" + "p" * 70_000}),
    ("file.symlink", {"path": "/tmp/l", "target": "t" * 5000}),
])
def test_too_long_a_path_is_refused_and_the_sandbox_lives(box, operation, fields):
    with pytest.raises(Refused) as caught:
        box.call(operation, **{"user": "root", **fields})
    assert caught.value.code in ("invalid_argument", "not_found"), caught.value
    box.exec("/bin/true").ok()


@pytest.mark.parametrize("spec", [
    {"hostname": "h" * 64}, {"hostname": "h" * 5000}, {"user": "u" * 300}, {"user": "u" * 70_000},
    {"mounts": [{"source": "/usr", "target": "/mnt/" + "m" * 5000, "mode": "ro"}]},
    {"mounts": [{"source": "/usr", "target": f"/mnt/{n}", "mode": "ro"} for n in range(300)]},
    {"rootfs": "/" + "r" * 5000},
], ids=lambda spec: "-".join(spec) + str(len(str(spec))))
def test_too_much_in_a_new_sandbox_is_refused_and_the_others_live(driver, box, spec):
    with pytest.raises(Refused) as caught:
        driver.create(**spec)
    assert caught.value.code in ("invalid_argument", "not_found"), caught.value
    assert caught.value.message
    box.exec("/bin/true").ok()
    driver.create().destroy()
