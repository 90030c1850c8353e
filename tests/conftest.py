"""Fixtures of all suites. Every test that makes sandboxes ends with a residue check by itself."""

import os
import pathlib
import shutil
import subprocess

import pytest

from harness import paths, residue
from harness.cli import Cli
from harness.driver import Driver
from harness.paths import require
from harness.sentinels import Sentinels
from harness.server import Server


def pytest_configure():
    residue.adopt_orphans()


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """One CAISSON_HOME for the whole run: prepared roots are cached there, nothing else may stay."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def probe_directory(tmp_path_factory):
    """A directory that holds only the probe, to be mounted into sandboxes."""
    directory = tmp_path_factory.mktemp("probe")
    shutil.copy(require(paths.PROBE), directory / "probe")
    subprocess.run(["strip", directory / "probe"], check=False, stderr=subprocess.DEVNULL)
    os.chmod(directory, 0o755)
    os.chmod(directory / "probe", 0o755)
    return directory


@pytest.fixture(scope="session")
def probe_mount(probe_directory):
    return {"source": str(probe_directory), "target": "/mnt/probe", "mode": "ro"}


@pytest.fixture(autouse=True)
def nothing_left_behind(request, home):
    """Processes, mounts, namespaces, cgroups, loop devices, terminals, links, files: none may stay."""
    if request.node.get_closest_marker("judges_only"):
        yield
        return
    before = residue.snapshot(home=home)
    yield
    residue.assert_clean(before, home=home)


@pytest.fixture
def driver(nothing_left_behind, home):
    with Driver(require(paths.DRIVER), home=home) as running:
        yield running


@pytest.fixture
def cli(nothing_left_behind, home):
    return Cli(home, require(paths.CAISSON))


@pytest.fixture
def sentinels(tmp_path):
    """Host sentinels that are looked at when the test ends."""
    with Sentinels(tmp_path) as standing:
        yield standing
        standing.check()


@pytest.fixture
def make_server(nothing_left_behind, home):
    """Servers of the test's own, each with a data directory that goes with it."""
    made = []

    def make(*arguments, **options):
        running = Server(home / f"server-{len(made)}", arguments=arguments, **options)
        made.append(running)
        return running.start()

    require(paths.CAISSON)
    yield make
    for running in reversed(made):
        running.close()
        shutil.rmtree(running.data_dir, ignore_errors=True)
        pathlib.Path(f"{running.data_dir}.log").unlink(missing_ok=True)


@pytest.fixture
def server(make_server):
    return make_server()


@pytest.fixture
def api(server):
    return server.api()
