"""Where the programs under test are, and what this host can do."""

import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("CAISSON_BUILD", ROOT / "build"))

CAISSON = BUILD / "caisson"
CAISSON_HOOKS = BUILD / "caisson-hooks"
DRIVER = BUILD / "driver"
DRIVER_HOOKS = BUILD / "driver-hooks"
PROBE = BUILD / "probe"
FAULTS = BUILD / "faults.so"

IS_ROOT = os.geteuid() == 0


def require(program):
    """The program, or a failure that says how to get it: a missing build is never a skip."""
    if not program.exists():
        pytest.fail(f"{program} is missing: build it first (make build)", pytrace=False)
    return program
