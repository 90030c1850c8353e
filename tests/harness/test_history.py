"""The history checker finds each kind of broken promise, and none where there is none."""

import pytest

from harness.history import Call, violations

GOOD = [
    Call("create", "s", 0, 1, "running", note="k"),
    Call("state", "s", 2, 3, "running"),
    Call("list", None, 2, 3, {"s": "box"}),
    Call("exec", "s", 3, 4, "exited 0", note="1"),
    Call("exec", "s", 4, 5, None, note="2"),
    Call("log", "s", 5, 6, ["1"]),
    Call("state", "s", 6, 7, "paused"),
    Call("destroy", "s", 8, 9, "204"),
    Call("state", "s", 8.5, 9.5, "running"),  # it began before the end was acknowledged
    Call("state", "s", 10, 11, "stopping"),
    Call("state", "s", 12, 13, "destroyed"),
    Call("list", None, 14, 15, {}),
]

BAD = {
    "a lost create": [Call("create", "s", 0, 1, "running", note="k"), Call("state", "s", 2, 3, "lost")],
    "a create that is not listed": [Call("create", "s", 0, 1, "running", note="k"), Call("list", None, 2, 3, {})],
    "an end undone": [Call("destroy", "s", 0, 1, "204"), Call("state", "s", 2, 3, "running")],
    "a resurrection": [Call("state", "s", 0, 1, "destroyed"), Call("state", "s", 2, 3, "running")],
    "a step back": [Call("state", "s", 0, 1, "stopping"), Call("state", "s", 2, 3, "paused")],
    "a doubled create": [Call("create", "s", 0, 1, "running", note="k"), Call("create", "t", 2, 3, "running", note="k")],
    "a shared sandbox": [Call("list", None, 0, 1, {"s": "box", "t": "box"})],
    "a command run twice": [Call("exec", "s", 0, 1, None, note="1"), Call("log", "s", 2, 3, ["1", "1"])],
    "a command that did not run": [Call("exec", "s", 0, 1, "exited 0", note="1"), Call("log", "s", 2, 3, [])],
    "a made-up outcome": [Call("exec", "s", 0, 1, "exited 9", note="1"), Call("log", "s", 2, 3, ["1"])],
}


def test_a_history_as_promised_has_no_violation():
    assert violations(GOOD) == []


@pytest.mark.parametrize("what", BAD)
def test_a_broken_promise_is_found(what):
    assert violations(BAD[what]), what
