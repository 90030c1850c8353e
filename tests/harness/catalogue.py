"""The probe's table, and how a verdict is judged against it."""

import json
import subprocess

from harness import paths


def attempts():
    if not paths.PROBE.exists():
        raise RuntimeError(f"{paths.PROBE} is missing: build it first (make build)")
    listing = subprocess.run([paths.PROBE, "--list"], check=True, capture_output=True, text=True)
    return {row["name"]: row for row in map(json.loads, listing.stdout.splitlines())}


def expected(row, profile, user):
    """The set of answers that contain this attempt; {'any'} when it is only recorded."""
    parts = row[profile].split(";")
    answers = parts[0]
    for part in parts[1:]:
        who, value = part.split("=", 1)
        if (who == "root") == (user in ("0", "root")):
            answers = value
    return set(answers.split("|"))


def answer(verdict):
    """`refused` is told by its errno, signal or EMPTY; everything else by its own name."""
    if verdict["result"] == "refused":
        return verdict["errno"]
    return verdict["result"]


def complaint(row, verdict, profile, user):
    """Why the verdict is not the expected one, or None."""
    wanted = expected(row, profile, user)
    if verdict is None:
        return f"{row['name']}: no verdict"
    if "any" in wanted or answer(verdict) in wanted:
        return None
    return (f"{row['name']} ({row['class']}: {row['what']}) as {user} in {profile}: got "
            f"{answer(verdict)} {verdict['detail']!r}, expected {'|'.join(sorted(wanted))}")


def run_all(sandbox, program, user):
    """Every attempt inside, as one command; verdicts by name."""
    outcome = sandbox.exec(program, "--all", "--inside", user=user, timeout_ms=120_000, deadline=150)
    return {verdict["name"]: verdict for verdict in outcome.json_lines()}
