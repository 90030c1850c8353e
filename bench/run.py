#!/usr/bin/env python3
"""The bench: Caisson's engine and server beside the bare kernel, bwrap and docker, in one run.

Prints a table and writes bench.json into the build directory. Ratios come from measurements taken
in turns (A, B, C, A, B, C, ...), so that a busy moment of the machine hits all of them alike. What
cannot be measured here is a row that says why; no number is ever filled in.

README.md beside this file says what each row means and what the programs must print. The rows
and their targets are in rows.py, what goes through the API is in http_side.py.
"""

import argparse
import contextlib
import json
import os
import pathlib
import platform
import shutil
import signal
import sys
import time

sys.dont_write_bytecode = True

import http_side  # noqa: E402
import private_docker  # noqa: E402
import programs  # noqa: E402
import rows  # noqa: E402
from programs import Quantity, Skip  # noqa: E402

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


class Bench:
    """Takes the measurements; afterwards `quantities` and `skips` together name every row's needs.

    `http` measures through the API; see http_side.HttpSide."""

    def __init__(self, build, quick, docker, http, selected=rows.ROWS):
        self.quantities = {}
        self.skips = {}
        self._http = http
        self._needed = {row.quantity for row in selected} | {row.reference for row in selected}
        self._floor = str(build / "floor_bench")
        self._engine = str(build / "engine_bench")
        self._quick = quick
        self._docker = docker

    def measure(self):
        self._take_turns(2 if self._quick else 6)
        self._http.close()  # the servers of the turns; a row taken once has its own
        for workers_row, mode in (("floor_rate", "full"), ("floor_nonet_rate", "nonet")):
            self._once(workers_row, lambda row=workers_row, mode=mode: self._rate(row, mode))
        for row in ENGINE_ONCE:
            self._once(row, lambda row=row: self._engine_once(row))
        for row in http_side.ONCE:
            self._once(row, lambda row=row: self._http_once(row))

    def _take_turns(self, rounds):
        lines = {name: [] for name in (*TURNS, *http_side.TURNS) if name in self._needed}
        for turn in range(rounds):
            for name in lines:
                if name in self.skips:
                    continue
                progress(f"round {turn + 1}/{rounds}: {name}")
                try:
                    lines[name].append(self._one_turn(name))
                except Skip as skip:
                    self.skips[name] = str(skip)
        for name, turns in lines.items():
            if name not in self.skips:
                self.quantities[name] = programs.pool(turns)

    def _one_turn(self, name):
        if name in http_side.TURNS:
            return self._http.one_turn(name)
        runs = TURNS[name][1 if self._quick else 0]
        if name in ENGINE_TURNS:
            return self._engine_line(name, runs)
        warmup = 1 if name.startswith("docker") else 5
        argv = [self._floor, "--samples", "--runs", str(runs), "--warmup", str(warmup),
                *self._floor_mode(name)]
        return programs.run_json(argv, timeout=300)[0]

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
        lines = programs.run_json([self._engine, "--json", "--only", row, *options], timeout=900)
        for line in lines:
            if "skipped" in line:
                raise Skip(line["skipped"])
        return lines

    def _rate(self, row, mode):
        argv = [self._floor, "--workers", str(os.cpu_count()), "--runs",
                "50" if self._quick else "300", mode]
        line = programs.run_json(argv, timeout=300)[0]
        self.quantities[row] = Quantity(line["per_s"], n=line["n"])

    def _once(self, row, action):
        if not self._needed & set(self._names_of(row)):
            return
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
        if row in http_side.ONCE:
            return http_side.names_of(row)
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
        self._check_given("engine_bench", row)

    def _http_once(self, row):
        self.quantities.update(self._http.once(row))
        self._check_given("http_bench", row)

    def _check_given(self, program, row):
        missing = [name for name in self._names_of(row) if name not in self.quantities]
        if self._needed & set(missing):
            raise Skip(f"{program}'s row {row} does not give it")


def verdict(row):
    if row["met"] is not None:
        return "met" if row["met"] else "MISSED"
    return f"skipped: {row['skipped']}" if row["skipped"] else ""


def print_table(judged, colour):
    header = ("row", "p50", "p99", "reference", "ratio", "target", "verdict")
    table = [header]
    for row in judged:
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}x"
        table.append((row["name"], rows.amount(row["p50"], row["unit"]),
                      rows.amount(row["p99"], row["unit"]),
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


def start_docker(stack, selected):
    """The private daemon, or the reason why there is none."""
    if not any(row.quantity.startswith("docker") for row in selected):
        return "no row needs docker"
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
    parser.add_argument("--only", metavar="ROW,ROW", default="",
                        help="these rows and what they stand beside, instead of all")
    parser.add_argument("--storm", type=int, metavar="SECONDS",
                        help="how long the row http_storm_rss makes sessions (default: 20)")
    parser.add_argument("--build-dir", type=pathlib.Path, default=here.parent / "build",
                        help="where the programs are (default: build)")
    parser.add_argument("--output", type=pathlib.Path,
                        help="the JSON file (default: bench.json in the build directory)")
    options = parser.parse_args(argv)
    try:
        options.selected = rows.chosen(options.only.split(",") if options.only else [])
    except ValueError as error:
        parser.error(str(error))
    options.storm = options.storm or (5 if options.quick else 20)
    return options


def main(argv):
    options = parse(argv)
    floor = options.build_dir / "floor_bench"
    if not os.access(floor, os.X_OK):
        print(f"bench: {floor} is not built; run `make build` first", file=sys.stderr)
        return 2
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # so that the daemon is stopped
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    with contextlib.ExitStack() as stack:
        docker = start_docker(stack, options.selected)
        machine = describe_machine(docker)
        build = options.build_dir.resolve()
        http = stack.enter_context(contextlib.closing(
            http_side.HttpSide(build, options.quick, options.storm)))
        bench = Bench(build, options.quick, docker, http, options.selected)
        bench.measure()
    progress("")
    judged = rows.judge(bench, options.selected)
    print_table(judged, colour=sys.stdout.isatty() and not os.environ.get("NO_COLOR"))
    if machine["idle_before"] < 0.85:
        print(f"note: only {machine['idle_before']:.0%} of the CPU was idle before the run; "
              "read the ratios, not the times")
    output = options.output or options.build_dir / "bench.json"
    machine.update(quick=options.quick, storm_seconds=options.storm)
    partial = output.with_name(output.name + ".tmp")
    partial.write_text(json.dumps({"machine": machine, "rows": judged}, indent=1) + "\n")
    partial.replace(output)
    failures = rows.failed_check(judged)
    if options.check and failures:
        print("check failed: " + ", ".join(failures), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
