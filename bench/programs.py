"""Running the programs that measure, and what their lines amount to."""

import contextlib
import dataclasses
import json
import os
import statistics
import subprocess


class Skip(Exception):
    """A quantity that cannot be measured here; the text says why."""


@dataclasses.dataclass
class Quantity:
    """What was measured under one name. p99 is None where there is only one number."""

    p50: float
    p99: float | None = None
    n: int = 1


def run_program(argv, timeout):
    """subprocess.run with captured text, except that an interrupted child may clean up first."""
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        try:
            output, complaint = process.communicate(timeout=timeout)
        except BaseException:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=30)
            process.kill()
            raise
    return subprocess.CompletedProcess(argv, process.returncode, output, complaint)


def run_json(argv, timeout):
    """Runs a program that prints JSON lines; raises Skip with its complaint if it fails."""
    try:
        done = run_program(argv, timeout)
    except OSError as error:
        raise Skip(f"{argv[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise Skip(f"{argv[0]} took more than {timeout} s") from error
    if done.returncode != 0:
        complaint = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Skip(f"{os.path.basename(argv[0])} exited with {done.returncode}: {complaint[:160]}")
    try:
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    except json.JSONDecodeError as error:
        raise Skip(f"{os.path.basename(argv[0])} printed no valid JSON: {error}") from error
    if not lines:
        raise Skip(f"{os.path.basename(argv[0])} printed no row")
    return lines


def percentile(ordered, share):
    return ordered[round(share * (len(ordered) - 1))]


def pool(turns):
    """One Quantity from the lines of several turns: all samples together where they are given,
    else the median of the turns' own percentiles, or of their rates."""
    if all("samples_us" in turn for turn in turns):
        samples = sorted(sample for turn in turns for sample in turn["samples_us"])
        return Quantity(percentile(samples, 0.5), percentile(samples, 0.99), n=len(samples))
    if all(turn.keys() == {"per_s"} for turn in turns):
        return Quantity(statistics.median(turn["per_s"] for turn in turns), n=len(turns))
    return Quantity(statistics.median(turn["p50_us"] for turn in turns),
                    statistics.median(turn["p99_us"] for turn in turns),
                    n=sum(turn["n"] for turn in turns))
