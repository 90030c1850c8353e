#!/usr/bin/env python3
"""Runs clang-tidy (.clang-tidy, all errors) over the sources, remembering what was clean.

    check_tidy.py [FILE...]        (default: every source of src/, bench/ and fuzz/ but the tests)

A source is looked at again only when it, a project header it reaches, its compile command or
.clang-tidy changed: the digest of all these is kept in build/tidy. Needs build/compile_commands.json
(scripts/build.sh release). Prints FILE:LINE: findings, and exits 1 if there is one.
"""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "tidy"
TIDY = "clang-tidy-19"
FOLDERS = ("src", "bench", "fuzz")
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def reached_headers(source, seen):
    """The project headers that `source` includes, directly or not."""
    for name in INCLUDE.findall(source.read_text(encoding="utf-8", errors="replace")):
        for base in (ROOT / "src", source.parent):
            header = base / name
            if header.is_file() and header not in seen:
                seen.add(header)
                reached_headers(header, seen)
    return seen


def digest(source, command, config):
    state = hashlib.sha256(config)
    state.update(command.encode())
    for path in [source, *sorted(reached_headers(source, set()))]:
        state.update(path.as_posix().encode())
        state.update(path.read_bytes())
    return state.hexdigest()


def look_at(source):
    """Runs clang-tidy; gives the findings' text, empty when clean."""
    run = subprocess.run([TIDY, "--quiet", "-p", str(ROOT / "build"), str(source)], cwd=ROOT,
                         capture_output=True, text=True, preexec_fn=lambda: os.nice(5))
    if run.returncode == 0:
        return ""
    text = run.stdout.strip() or run.stderr.strip() or f"clang-tidy ended with {run.returncode}"
    return text.replace(f"{ROOT}/", "")


def main():
    commands_file = ROOT / "build" / "compile_commands.json"
    if not commands_file.is_file():
        print("build/compile_commands.json is missing; run: make build")
        return 1
    commands = {pathlib.Path(entry["file"]): entry["command"]
                for entry in json.loads(commands_file.read_text())}
    config = (ROOT / ".clang-tidy").read_bytes()
    wanted = [pathlib.Path(name).resolve() for name in sys.argv[1:]]
    if not wanted:
        wanted = [path for path in commands if path.is_file() and path.suffix == ".cc"
                  and path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in FOLDERS
                  and not path.name.endswith("_test.cc")]
    CACHE.mkdir(parents=True, exist_ok=True)
    stale = {}
    for source in sorted(set(wanted)):
        if source not in commands:
            print(f"{source.relative_to(ROOT)}:1: not part of the build")
            return 1
        mark = CACHE / digest(source, commands[source], config)
        if mark.exists():
            mark.touch()
        else:
            stale[source] = mark
    failed = False
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for source, findings in zip(stale, pool.map(look_at, stale)):
            if findings:
                failed = True
                print(findings, flush=True)
            else:
                stale[source].touch()
    forget_old_marks()
    return 1 if failed else 0


def forget_old_marks(keep=4096):
    marks = sorted(CACHE.iterdir(), key=lambda mark: mark.stat().st_mtime)
    for mark in marks[:-keep]:
        mark.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
