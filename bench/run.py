#!/usr/bin/env python3
"""The bench: Caisson's engine beside the bare kernel, bwrap and docker, in one run.

Prints a table and writes bench.json into the build directory. Ratios come from measurements taken
in turns (A, B, C, A, B, C, ...), so that a busy moment of the machine hits all of them alike. What
cannot be measured here is a row that says why; no number is ever filled in.

README.md beside this file says what each row means and what engine_bench must print.
"""

import argparse
import contextlib
import dataclasses
import json
import operator
import os
import pathlib
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True

import private_docker  # noqa: E402

MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table: the quantity `of` (its own name if empty), compared or not.

    limit_on says what `op limit` judges: the ratio to the reference, or the p50 (or sole) value.
    """

    name: str
    of: str = ""
    reference: str = ""
    limit_on: str = ""
    op: str = ""
    limit: float = 0
    unit: str = "us"

    @property
    def quantity(self):
        return self.of or self.name


# Every promise about speed and size at engine level, in one place. Rows without `op` only inform.
ROWS = (
    Row("spawn"),
    Row("vfork", reference="spawn"),
    Row("floor"),
    Row("floor_nonet", reference="floor"),
    Row("floor_tmpfs", reference="floor"),
    Row("floor_rate", unit="1/s"),
    Row("floor_nonet_rate", unit="1/s"),
    Row("bwrap", reference="floor"),
    Row("cycle", reference="floor", limit_on="ratio", op="<=", limit=1.0),
    Row("cycle_nonet", reference="floor_nonet"),
    Row("cycle_vs_bwrap", of="cycle", reference="bwrap", limit_on="ratio", op="<", limit=1.0),
    Row("docker_run", reference="cycle", limit_on="ratio", op=">=", limit=70),
    Row("docker_run_nonet", reference="cycle"),
    Row("create", reference="floor"),
    Row("exec", reference="spawn", limit_on="ratio", op="<=", limit=2.0),
    Row("destroy", limit_on="value", op="<=", limit=2000),
    Row("sustained", reference="floor_rate", limit_on="ratio", op=">=", limit=0.98, unit="1/s"),
    Row("sustained_nonet", reference="floor_nonet_rate", unit="1/s"),
    Row("burst100"),
    Row("burst100_failures", limit_on="value", op="<=", limit=0, unit="count"),
    Row("burst100_total", reference="burst100_serial", limit_on="ratio", op="<=", limit=1.3),
    Row("burst100_p99", reference="burst100", limit_on="ratio", op="<=", limit=5),
    Row("idle1000", limit_on="value", op="<=", limit=MIB, unit="bytes"),
    Row("idle1000_alive", limit_on="value", op=">=", limit=1000, unit="count"),
    Row("launcher_rss", limit_on="value", op="<=", limit=4 * MIB, unit="bytes"),
    Row("init_private", limit_on="value", op="<=", limit=400 << 10, unit="bytes"),
    Row("curve_1"),
    Row("curve_10", reference="curve_1"),
    Row("curve_100", reference="curve_1"),
    Row("curve_300", reference="curve_1"),
    Row("curve_1000", reference="curve_1", limit_on="ratio", op="<=", limit=1.3),
    Row("lives10000_memcgs", limit_on="value", op="<=", limit=16, unit="count"),
    Row("lives10000_slab", limit_on="value", op="<=", limit=16 * MIB, unit="bytes"),
)

OPERATORS = {"<=": operator.le, "<": operator.lt, ">=": operator.ge}

# Fields of engine_bench's lines that are quantities of their own: row -> ((field, name), ...).
ENGINE_FIELDS = {
    "sustained": (("per_s", "sustained"),),
    "sustained_nonet": (("per_s", "sustained_nonet"),),
    "burst100": (("failures", "burst100_failures"), ("total_us", "burst100_total"),
                 ("serial_us", "burst100_serial"), ("p99_us", "burst100_p99")),
    "idle1000": (("bytes_per_sandbox", "idle1000"), ("alive", "idle1000_alive"),
                 ("launcher_rss_bytes", "launcher_rss"), ("init_private_bytes", "init_private")),
    "lives10000": (("memcg_growth", "lives10000_memcgs"),
                   ("slab_growth_bytes", "lives10000_slab")),
}
CURVE_POINTS = (1, 10, 100, 300, 1000)

# What is taken in turns, and how many runs one turn has (full, quick).
TURNS = {
    "spawn": (200, 50), "vfork": (200, 50), "floor": (100, 30), "floor_nonet": (100, 30),
    "floor_tmpfs": (100, 30), "bwrap": (50, 20), "docker_run": (5, 2), "docker_run_nonet": (5, 2),
    "cycle": (100, 30), "cycle_nonet": (100, 30), "create": (100, 30), "exec": (200, 50),
    "destroy": (100, 30),
}
ENGINE_TURNS = ("cycle", "cycle_nonet", "create", "exec", "destroy")
ENGINE_ONCE = ("sustained", "sustained_nonet", "burst100", "idle1000", "curve", "lives10000")
LEFT_OUT_WHEN_QUICK = ("curve", "lives10000")
BWRAP = ("bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev",
         "true")


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
    else the median of the turns' own percentiles."""
    if all("samples_us" in turn for turn in turns):
        samples = sorted(sample for turn in turns for sample in turn["samples_us"])
        return Quantity(percentile(samples, 0.5), percentile(samples, 0.99), n=len(samples))
    return Quantity(statistics.median(turn["p50_us"] for turn in turns),
                    statistics.median(turn["p99_us"] for turn in turns),
                    n=sum(turn["n"] for turn in turns))


class Bench:
    """Takes the measurements; afterwards `quantities` and `skips` together name every row."""

    def __init__(self, build, quick, docker):
        self.quantities = {}
        self.skips = {}
        self._floor = str(build / "floor_bench")
        self._engine = str(build / "engine_bench")
        self._quick = quick
        self._docker = docker

    def measure(self):
        self._take_turns(2 if self._quick else 6)
        for workers_row, mode in (("floor_rate", "full"), ("floor_nonet_rate", "nonet")):
            self._once(workers_row, lambda row=workers_row, mode=mode: self._rate(row, mode))
        for row in ENGINE_ONCE:
            self._once(row, lambda row=row: self._engine_once(row))

    def _take_turns(self, rounds):
        lines = {name: [] for name in TURNS}
        for turn in range(rounds):
            for name in TURNS:
                if name in self.skips:
                    continue
                progress(f"round {turn + 1}/{rounds}: {name}")
                try:
                    lines[name].append(self._one_turn(name))
                except Skip as skip:
                    self.skips[name] = str(skip)
        for name, turns in lines.items():
            if name not in self.skips:
                self.quantities[name] = pool(turns)

    def _one_turn(self, name):
        runs = TURNS[name][1 if self._quick else 0]
        if name in ENGINE_TURNS:
            return self._engine_line(name, runs)
        warmup = 1 if name.startswith("docker") else 5
        argv = [self._floor, "--samples", "--runs", str(runs), "--warmup", str(warmup),
                *self._floor_mode(name)]
        return run_json(argv, timeout=300)[0]

    def _floor_mode(self, name):
        if name == "bwrap":
            if not shutil.which("bwrap"):
                raise Skip("bubblewrap is not installed")
            return ["run", "--", *BWRAP]
        if name.startswith("docker"):
            if isinstance(self._docker, str):
                raise Skip(self._docker)
            options = ["--network", "none"] if name == "docker_run_nonet" else []
            return ["run", "--", *self._docker.command(*options)]
        return {"spawn": ["spawn"], "vfork": ["vfork"], "floor": ["full"],
                "floor_nonet": ["nonet"], "floor_tmpfs": ["full", "--tmpfs"]}[name]

    def _engine_line(self, name, runs):
        lines = self._run_engine(name, ["--runs", str(runs)])
        line = next((line for line in lines if line.get("name") == name), None)
        if line is None or not all(key in line for key in ("p50_us", "p99_us", "n")):
            raise Skip(f"engine_bench printed no complete row {name}")
        return line

    def _run_engine(self, row, options=()):
        if not os.access(self._engine, os.X_OK):
            raise Skip("engine_bench is not built")
        lines = run_json([self._engine, "--json", "--only", row, *options], timeout=900)
        for line in lines:
            if "skipped" in line:
                raise Skip(line["skipped"])
        return lines

    def _rate(self, row, mode):
        argv = [self._floor, "--workers", str(os.cpu_count()), "--runs",
                "50" if self._quick else "300", mode]
        line = run_json(argv, timeout=300)[0]
        self.quantities[row] = Quantity(line["per_s"], n=line["n"])

    def _once(self, row, action):
        progress(row)
        try:
            action()
        except Skip as skip:
            for name in self._names_of(row):
                if name not in self.quantities:
                    self.skips[name] = str(skip)

    @staticmethod
    def _names_of(row):
        if row == "curve":
            return [f"curve_{point}" for point in CURVE_POINTS]
        return [row, *(name for _, name in ENGINE_FIELDS.get(row, ()))]

    def _engine_once(self, row):
        if self._quick and row in LEFT_OUT_WHEN_QUICK:
            raise Skip("left out by --quick")
        options = ["--quick"] if self._quick else []
        lines = [line for line in self._run_engine(row, options) if line.get("name") == row]
        for line in lines:
            count = int(line.get("n", 1))
            if row == "curve" and {"live", "p50_us", "p99_us"} <= line.keys():
                self.quantities[f"curve_{line['live']}"] = Quantity(line["p50_us"], line["p99_us"],
                                                                    n=count)
                continue
            if row == "burst100" and {"p50_us", "p99_us"} <= line.keys():
                self.quantities[row] = Quantity(line["p50_us"], line["p99_us"], n=count)
            for field, name in ENGINE_FIELDS.get(row, ()):
                if field in line:
                    self.quantities[name] = Quantity(line[field], n=count)
        missing = [name for name in self._names_of(row) if name not in self.quantities]
        known = {judged.quantity for judged in ROWS} | {judged.reference for judged in ROWS}
        if any(name in known for name in missing):
            raise Skip(f"engine_bench's row {row} does not give it")


def judge(bench):
    """The rows of bench.json, in the order of ROWS."""
    rows = []
    for row in ROWS:
        quantity = bench.quantities.get(row.quantity)
        reference = bench.quantities.get(row.reference)
        result = {"name": row.name, "p50": None, "p99": None, "unit": row.unit, "n": 0,
                  "reference": row.reference or None, "reference_p50": None, "ratio": None,
                  "target": target_text(row), "met": None, "skipped": None}
        rows.append(result)
        if quantity is None:
            result["skipped"] = bench.skips.get(row.quantity, "not measured")
            continue
        result.update(p50=quantity.p50, p99=quantity.p99, n=quantity.n)
        if reference is not None:
            result["reference_p50"] = reference.p50
            result["ratio"] = quantity.p50 / reference.p50 if reference.p50 else None
        judged = result["ratio"] if row.limit_on == "ratio" else quantity.p50
        if row.op and judged is None:
            result["skipped"] = f"no {row.reference}: " + bench.skips.get(row.reference, "it is 0")
        elif row.op:
            result["met"] = OPERATORS[row.op](judged, row.limit)
    return rows


def target_text(row):
    if not row.op:
        return None
    if row.limit_on == "ratio":
        return f"{row.op} {row.limit:g}x"
    return f"{row.op} {amount(row.limit, row.unit)}"


def amount(value, unit):
    """A number with its unit, for people."""
    if value is None:
        return ""
    if unit == "us":
        return f"{value / 1000:.2f} ms" if value >= 1000 else f"{value:.0f} us"
    if unit == "bytes":
        return f"{value / MIB:.2f} MiB" if abs(value) >= MIB else f"{value / 1024:.0f} KiB"
    if unit == "1/s":
        return f"{value:.0f}/s"
    return f"{value:g}"


def verdict(row):
    if row["met"] is not None:
        return "met" if row["met"] else "MISSED"
    return f"skipped: {row['skipped']}" if row["skipped"] else ""


def print_table(rows, colour):
    header = ("row", "p50", "p99", "reference", "ratio", "target", "verdict")
    table = [header]
    for row in rows:
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}x"
        table.append((row["name"], amount(row["p50"], row["unit"]), amount(row["p99"], row["unit"]),
                      row["reference"] or "", ratio, row["target"] or "", verdict(row)))
    widths = [max(len(line[i]) for line in table) for i in range(len(header) - 1)]
    paint = {"met": "\033[32m", "MISSED": "\033[1;31m"}
    for index, line in enumerate(table):
        left = (0, 3)  # the columns of words; numbers stand to the right
        cells = [cell.ljust(width) if i in left else cell.rjust(width)
                 for i, (cell, width) in enumerate(zip(line, widths))]
        last = line[-1]
        if colour and index == 0:
            cells[0], last = "\033[1m" + cells[0], last + "\033[0m"
        elif colour and last:
            last = f"{paint.get(last, chr(27) + '[2m')}{last}\033[0m"
        print("  ".join([*cells, last]).rstrip())


def progress(text):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="" if text else "\r", file=sys.stderr, flush=True)


def idle_share(seconds=0.5):
    """The share of all CPU time that was idle just now."""
    def read():
        fields = pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
        ticks = [int(field) for field in fields]
        return ticks[3] + ticks[4], sum(ticks)
    before = read()
    time.sleep(seconds)
    after = read()
    return (after[0] - before[0]) / max(1, after[1] - before[1])


def describe_machine(docker):
    cpu = next((line.split(":")[1].strip() for line in
                pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), platform.machine())
    version = docker.version() if not isinstance(docker, str) else None
    return {"kernel": platform.release(), "cpus": os.cpu_count(), "cpu": cpu,
            "idle_before": round(idle_share(), 3), "load_before": os.getloadavg()[0],
            "docker": version}


def start_docker(stack):
    """The private daemon, or the reason why there is none."""
    progress("starting a private dockerd")
    try:
        return stack.enter_context(private_docker.PrivateDocker())
    except private_docker.Unavailable as reason:
        return str(reason)


def parse(argv):
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(
        description="Measure Caisson beside the kernel, bwrap and docker.")
    parser.add_argument("--quick", action="store_true", help="fewer runs; leave out the long rows")
    parser.add_argument("--check", action="store_true",
                        help="exit 1 if a target is missed or the engine could not be measured")
    parser.add_argument("--build-dir", type=pathlib.Path, default=here.parent / "build",
                        help="where floor_bench and engine_bench are (default: build)")
    parser.add_argument("--output", type=pathlib.Path,
                        help="the JSON file (default: bench.json in the build directory)")
    return parser.parse_args(argv)


def failed_check(rows):
    """Missed targets, and targets that were not judged although nothing but our own build lacked.

    A missing bwrap or docker is a stated skip and no failure; so is what --quick leaves out."""
    foreign = ("bubblewrap is not installed", "docker.io is not installed")
    excused = ("left out by --quick", *foreign)
    return [row["name"] for row in rows if row["target"] and row["met"] is not True
            and not (row["met"] is None and row["skipped"].endswith(excused))]


def main(argv):
    options = parse(argv)
    floor = options.build_dir / "floor_bench"
    if not os.access(floor, os.X_OK):
        print(f"bench: {floor} is not built; run `make build` first", file=sys.stderr)
        return 2
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # so that the daemon is stopped
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    with contextlib.ExitStack() as stack:
        docker = start_docker(stack)
        machine = describe_machine(docker)
        bench = Bench(options.build_dir.resolve(), options.quick, docker)
        bench.measure()
    progress("")
    rows = judge(bench)
    print_table(rows, colour=sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
    if machine["idle_before"] < 0.85:
        print(f"note: only {machine['idle_before']:.0%} of the CPU was idle before the run; "
              "read the ratios, not the times")
    output = options.output or options.build_dir / "bench.json"
    machine["quick"] = options.quick
    partial = output.with_name(output.name + ".tmp")
    partial.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")
    partial.replace(output)
    failures = failed_check(rows)
    if options.check and failures:
        print("check failed: " + ", ".join(failures), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
