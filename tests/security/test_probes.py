"""Every attempt of the catalogue, in both profiles, as uid 0 and 1000, through the first command of a
sandbox and through a later exec, against the expectation in the probe's table."""

import itertools

import pytest

from harness import catalogue, paths, residue
from harness.driver import Driver
from harness.paths import require
from harness.sentinels import Sentinels

PROFILES = ("default", "strict")
USERS = ("0", "1000")
ENTRIES = ("first", "later")
ATTEMPTS = catalogue.attempts()

pytestmark = pytest.mark.judges_only


@pytest.fixture(scope="module")
def matrix(home, probe_mount, tmp_path_factory):
    """All runs of the matrix, made once: {(profile, user, entry): {name: verdict}}, and what was seen outside.

    Sentinels stand during all of them, and residue is looked for after each."""
    found, outside = {}, []
    program = probe_mount["target"] + "/probe"
    with Sentinels(tmp_path_factory.mktemp("sentinels")) as sentinels:
        for profile, user, entry in itertools.product(PROFILES, USERS, ENTRIES):
            before = residue.snapshot(home=home)
            with Driver(require(paths.DRIVER), home=home) as driver:
                with driver.create(profile=profile, mounts=[probe_mount]) as sandbox:
                    if entry == "later":
                        _live_a_little(sandbox)
                    found[profile, user, entry] = catalogue.run_all(sandbox, program, user)
                    sandbox.exec(program, "exit", "0").ok()
            left = residue.wait_until_clean(before, home=home)
            outside += [f"{profile}, {user}, {entry}: {residue.describe(left)}"] if left else []
        outside += sentinels.changes()
    return found, outside


@pytest.fixture
def verdicts(matrix):
    return matrix[0]


def _live_a_little(sandbox):
    """Other users, a failure, a background process: what could change the state a later exec inherits."""
    sandbox.exec("/bin/sh", "-c", "umask 0; cd /tmp; ulimit -n 64; true", user="0").ok()
    sandbox.exec("/bin/false", user="1000")
    sandbox.start("/bin/sleep", "30", user="1000")
    sandbox.write("/tmp/seen", b"x")


@pytest.mark.parametrize("name", ATTEMPTS)
def test_attempt_meets_its_wall(name, verdicts):
    complaints = []
    for (profile, user, entry), run in verdicts.items():
        complaint = catalogue.complaint(ATTEMPTS[name], run.get(name), profile, user)
        if complaint:
            complaints.append(f"{entry} command: {complaint}")
    assert not complaints, "\n".join(complaints)


def test_no_attempt_touched_a_sentinel_or_left_anything(matrix):
    assert not matrix[1], "\n".join(matrix[1])


def test_first_command_and_later_exec_meet_the_same_walls(verdicts):
    different = []
    for profile, user in itertools.product(PROFILES, USERS):
        first, later = verdicts[profile, user, "first"], verdicts[profile, user, "later"]
        different += [f"{name} as {user} in {profile}: {catalogue.answer(first[name])} then "
                      f"{catalogue.answer(later[name])}" for name in first
                      if catalogue.answer(first[name]) != catalogue.answer(later[name])]
    assert not different, "\n".join(different)


def test_no_attempt_failed_to_be_made(verdicts):
    errors = [f"{key}: {verdict}" for key, run in verdicts.items() for verdict in run.values()
              if verdict["result"] in ("error", "skipped")]
    assert not errors, "\n".join(errors)
