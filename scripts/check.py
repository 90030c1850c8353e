#!/usr/bin/env python3
"""Runs the style checks.

    check.py [--junit FILE] [NAME...]     (names: layers, docs, format, tidy, reference)

Prints what each finds, and exits 1 if one failed. Long files and functions are reported, and fail
nothing.
"""
import argparse
import pathlib
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
PYTHON = sys.executable
CHECKS = {
    "layers": [PYTHON, "scripts/check_layers.py"],
    "docs": [PYTHON, "scripts/check_docs.py"],
    "format": ["scripts/check_format.sh"],
    "reference": [PYTHON, "scripts/doc.py", "--check"],
    "tidy": [PYTHON, "scripts/check_tidy.py"],
}


def main():
    parser = argparse.ArgumentParser(description="Run the style checks.")
    parser.add_argument("--junit", type=pathlib.Path, help="write the results as JUnit XML")
    parser.add_argument("names", nargs="*", metavar="NAME", help=" ".join(CHECKS))
    args = parser.parse_args()
    unknown = set(args.names) - set(CHECKS)
    if unknown:
        parser.error(f"unknown check {', '.join(sorted(unknown))}; there are {', '.join(CHECKS)}")
    suite = ElementTree.Element("testsuite", name="check")
    failures = 0
    for name in args.names or CHECKS:
        if name == "tidy" and not (ROOT / "build/compile_commands.json").exists():
            subprocess.run(["scripts/build.sh", "release"], cwd=ROOT, check=False)
        started = time.monotonic()
        run = subprocess.run(CHECKS[name], cwd=ROOT, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
        seconds = time.monotonic() - started
        case = ElementTree.SubElement(suite, "testcase", classname="check", name=name,
                                      time=f"{seconds:.3f}")
        if run.returncode != 0:
            failures += 1
            ElementTree.SubElement(case, "failure", message="failed").text = xml_text(run.stdout)
        print(f"check {name}: {'failed' if run.returncode else 'ok'} ({seconds:.1f} s)")
        if run.stdout.strip():
            print(run.stdout.rstrip())
    report = subprocess.run([PYTHON, "scripts/check_size.py"], cwd=ROOT, capture_output=True, text=True)
    if report.stdout.strip():
        print("for your information:\n" + report.stdout.rstrip())
    if args.junit:
        args.junit.parent.mkdir(parents=True, exist_ok=True)
        ElementTree.ElementTree(suite).write(args.junit)
    return 1 if failures else 0


def xml_text(text):
    """`text` without the characters that XML cannot hold."""
    return "".join(c if c in "\n\t" or c.isprintable() else "?" for c in text)


if __name__ == "__main__":
    sys.exit(main())
