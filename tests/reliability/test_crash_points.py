"""The n-th crash loop: the launcher, or its owner, dies at every point it passes; a sweep removes what is left.

The hooks build counts crash points. n goes up until a run comes through without reaching its crash point, so new
points are covered by themselves."""

import json
import subprocess
import time

import pytest

from harness import paths, residue
from harness.cli import Cli
from harness.driver import Driver
from harness.paths import require

MOST_POINTS = 200

pytestmark = pytest.mark.judges_only  # each round looks for residue itself


@pytest.fixture
def hooks(home):
    return Cli(home, require(paths.CAISSON_HOOKS))


@pytest.fixture
def cli(home):
    return Cli(home, require(paths.CAISSON))


def sweep(cli):
    result = cli.run("sweep", "--json")
    assert result.returncode == 0, result
    return json.loads(result.stdout)


def rounds(run, cli, home, fewest):
    """Runs `run(n)`, which says whether a crash point fired, for n = 1, 2, … until none does."""
    before = residue.snapshot(home=home)
    for n in range(1, MOST_POINTS):
        fired = run(n)
        sweep(cli)
        residue.assert_clean(before, home=home)
        if not fired:
            assert n > fewest, f"only {n - 1} crash points were passed"
            return
    pytest.fail(f"more than {MOST_POINTS} crash points: raise the bound")


def test_the_launcher_may_die_at_any_point(hooks, cli, home):
    def run(n):
        try:
            result = hooks.exec("--timeout", "20s", "--disk", "32M", "--", "/bin/sh", "-c", "sleep 0.01; echo done",
                                env={"CAISSON_CRASH_AT": str(n)}, timeout=40)
        except subprocess.TimeoutExpired as hang:
            pytest.fail(f"the owner hangs when the launcher dies at point {n}: {hang.stderr}")
        if "crash point" not in result.stderr:
            assert (result.returncode, result.stdout) == (0, "done\n"), result
            return False
        # A crash after the command's end may let its result through; never a made-up success.
        assert result.returncode == 125 or (result.returncode == 0 and result.stdout == "done\n"), result
        return True

    rounds(run, cli, home, fewest=5)


def test_the_owner_may_die_at_any_point(hooks, cli, home):
    def run(n):
        result = hooks.exec("--timeout", "20s", "--disk", "32M", "--", "/bin/sh", "-c", "sleep 0.01; echo done",
                            env={"CAISSON_KILL_CLIENT_AT": str(n)})
        return result.returncode in (-9, 137)

    rounds(run, cli, home, fewest=3)


@pytest.mark.parametrize("moment", [0, 0.002, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3])
def test_the_owner_may_be_killed_at_any_moment(cli, home, moment):
    before = residue.snapshot(home=home)
    process = cli.popen("exec", "--", "/bin/sleep", "20", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL)
    time.sleep(moment)
    process.kill()
    process.wait()
    time.sleep(0.2)
    sweep(cli)
    residue.assert_clean(before, home=home)


def test_a_dead_owner_of_many_sandboxes_leaves_nothing_after_a_sweep(cli, home):
    before = residue.snapshot(home=home)
    driver = Driver(require(paths.DRIVER), home=home)
    for number in range(5):
        sandbox = driver.create(disk=16 << 20)
        sandbox.start("/bin/sleep", "1000")
        if number == 2:
            sandbox.pause()
    driver.kill()
    time.sleep(0.3)
    sweep(cli)
    residue.assert_clean(before, home=home)


def test_a_sweep_leaves_the_living_alone(cli, home):
    before = residue.snapshot(home=home)
    with Driver(require(paths.DRIVER), home=home) as driver:
        with driver.create() as sandbox:
            sleeper = sandbox.start("/bin/sleep", "3")
            sweep(cli)
            sandbox.exec("/bin/true").ok()
            assert sleeper.wait().status == "exited"
    residue.assert_clean(before, home=home)


def test_a_sweep_may_itself_be_killed(cli, home):
    """Recovery is idempotent: the second sweep finishes what the first began."""
    before = residue.snapshot(home=home)
    driver = Driver(require(paths.DRIVER), home=home)
    for _ in range(3):
        driver.create().start("/bin/sleep", "1000")
    driver.kill()
    for moment in (0.001, 0.005, 0.02):
        process = cli.popen("sweep", "--json", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(moment)
        process.kill()
        process.wait()
    sweep(cli)
    residue.assert_clean(before, home=home)
