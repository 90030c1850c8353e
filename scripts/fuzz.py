#!/usr/bin/env python3
"""Builds and runs the fuzz targets.

    fuzz.py [--seconds N] [--junit FILE] [TARGET...]

A target is fuzz/NAME_fuzz.cc, built as build/fuzz/NAME_fuzz; its seeds are in fuzz/corpus/NAME/.
What a run learns goes to build/fuzz/corpus/NAME, a crashing input to build/fuzz/crashes/NAME-*.
Exits 1 if a target crashed, leaked or hung.
"""
import argparse
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "fuzz"


def targets():
    return sorted(path.stem for path in (ROOT / "fuzz").glob("*_fuzz.cc"))


def fuzz(target, seconds):
    """Runs one target; gives (ok, output)."""
    name = target.removesuffix("_fuzz")
    learned = BUILD / "corpus" / name
    crashes = BUILD / "crashes"
    seeds = ROOT / "fuzz" / "corpus" / name
    for folder in (learned, crashes):
        folder.mkdir(parents=True, exist_ok=True)
    command = [BUILD / target, learned, *([seeds] if seeds.is_dir() else []),
               f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048", "-print_final_stats=1",
               f"-artifact_prefix={crashes}/{name}-"]
    try:
        run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, errors="replace", timeout=seconds + 60)
    except subprocess.TimeoutExpired:
        return False, f"did not end within {seconds + 60} s"
    return run.returncode == 0, run.stdout


def main():
    parser = argparse.ArgumentParser(description="Build and run the fuzz targets.")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--junit", type=pathlib.Path, help="write the results as JUnit XML")
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    args = parser.parse_args()
    known = targets()
    unknown = set(args.targets) - set(known)
    if unknown:
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    chosen = args.targets or known
    if chosen:
        subprocess.run(["scripts/build.sh", "fuzz", *chosen], cwd=ROOT, check=True)
    suite = ElementTree.Element("testsuite", name="fuzz")
    failed = False
    for target in chosen:
        started = time.monotonic()
        ok, output = fuzz(target, args.seconds)
        seconds = time.monotonic() - started
        executed = [line for line in output.splitlines() if "number_of_executed_units" in line]
        runs = executed[0].split()[-1] if executed else "?"
        print(f"{target}: {'ok' if ok else 'FAILED'}, {runs} runs in {seconds:.0f} s", flush=True)
        case = ElementTree.SubElement(suite, "testcase", classname="fuzz", name=target,
                                      time=f"{seconds:.3f}")
        if not ok:
            failed = True
            tail = "\n".join(output.splitlines()[-60:])
            print(tail)
            ElementTree.SubElement(case, "failure", message="crashed").text = xml_text(tail)
    if args.junit:
        args.junit.parent.mkdir(parents=True, exist_ok=True)
        ElementTree.ElementTree(suite).write(args.junit)
    return 1 if failed else 0


def xml_text(text):
    """`text` without the characters that XML cannot hold."""
    return "".join(c if c in "\n\t" or c.isprintable() else "?" for c in text)


if __name__ == "__main__":
    sys.exit(main())
