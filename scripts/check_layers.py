#!/usr/bin/env python3
"""Holds the includes of src/ to the layer order of ARCHITECTURE.md.

    check_layers.py [--root DIR]

Prints FILE:LINE: what is wrong, and exits 1 if anything is. Three rules:
  * a folder includes only itself and the folders that its row in LAYERS names;
  * project headers are named by their path from src/, and exist;
  * a folder includes third-party headers only if its row in THIRD_PARTY names them. Folders in
    STATIC are linked into the static helpers: the C++ standard library, libc and kernel headers
    only, and of the standard library nothing that drags in locales or streams.
A test (x_test.cc, test_x.h, fake_x.h) is held to the first rule with the leaves added, and to the
second. Nothing but a test includes what tests are made of.
"""
import argparse
import pathlib
import re
import sys

GROUND = ["base", "async", "json", "yaml", "log", "telemetry"]
BELOW = GROUND + ["wire", "sys", "net", "store", "auth", "sandbox"]
MIDDLE = ["registry", "tools", "data", "llm"]
PROVIDERS = ["providers/native", "providers/docker", "providers/e2b", "providers/kubernetes"]
LEAVES = ["init", "launcher"]  # programs of their own: nobody includes them

# folder -> folders it may include besides itself
LAYERS = {
    "base": [],
    "async": ["base"],
    "wire": ["base"],
    "sys": ["base", "wire"],
    "json": ["base"],
    "yaml": ["base"],
    "log": ["base", "async", "json"],
    "telemetry": ["base", "async", "json", "yaml", "log"],
    "net": GROUND,
    "store": GROUND + ["sys"],
    "auth": GROUND + ["sys", "store"],
    "init": ["base", "wire", "sys"],
    "launcher": ["base", "wire", "sys"],
    "sandbox": GROUND + ["store"],
    **{provider: BELOW for provider in PROVIDERS},
    **{folder: BELOW for folder in MIDDLE},
    "agent": BELOW + MIDDLE,
    "api": BELOW + MIDDLE + ["agent"],
    "cli": BELOW + MIDDLE + PROVIDERS + ["agent", "api"],
}
# What a test may include on top of its folder's row.
TEST_EXTRA = ["base", "wire", "sys"] + LEAVES

STATIC = {"base", "wire", "sys", "init", "launcher"}
STATIC_UNWANTED = set(
    "iostream ostream istream sstream fstream iomanip ios filesystem regex locale codecvt format "
    "print syncstream strstream spanstream".split())

FMT = ["fmt/"]
JSON = ["boost/json", "fmt/"]
# folder -> prefixes of third-party headers it may include
THIRD_PARTY = {
    "async": ["boost/asio", "boost/system"],
    "json": JSON,
    "yaml": ["yaml-cpp/"],
    "log": FMT,
    "telemetry": JSON,
    "net": JSON + ["boost/beast", "boost/asio/buffer.hpp", "openssl/", "nghttp2/", "curl/", "zlib.h"],
    "store": JSON + ["sqlite3.h", "libpq-fe.h"],
    "auth": JSON + ["openssl/"],
    "sandbox": JSON,
    "providers/native": JSON + ["archive.h", "archive_entry.h"],
    "providers/docker": JSON,
    "providers/e2b": JSON,
    "providers/kubernetes": JSON,
    "registry": JSON + ["archive.h", "archive_entry.h"],
    "tools": JSON,
    "data": JSON + ["sqlite3.h", "libpq-fe.h", "hnswlib/"],
    "llm": JSON,
    "agent": JSON,
    "api": JSON,
    "cli": JSON + ["archive.h", "archive_entry.h"],
}

# Headers of the C++ standard library that have no file extension are known by having none. These
# are libc's and the kernel's.
SYSTEM_FOLDERS = ("sys/", "linux/", "asm/", "net/", "netinet/", "arpa/", "asm-generic/")
SYSTEM_HEADERS = set(
    "aio alloca assert byteswap ctype dirent dlfcn elf endian errno execinfo fcntl fnmatch fts ftw "
    "getopt glob grp ifaddrs inttypes langinfo libgen limits link locale malloc math mntent mqueue "
    "netdb poll pthread pty pwd resolv sched semaphore setjmp shadow signal spawn stdarg stdatomic "
    "stdbool stddef stdint stdio stdlib string strings sysexits syslog termios time ucontext unistd "
    "utime utmp wait wchar "
    "cpuid immintrin".split())  # the compiler's own

INCLUDE = re.compile(r'^\s*#\s*(?:include|import)\s*([<"])([^>"]+)[>"]')
TEST_NAME = re.compile(r"_test\.(cc|h)$|(^|/)(test|fake)_[^/]*$")


def folder_of(path):
    """The layer of a path below src/, or None when it stands in no folder."""
    parts = path.split("/")
    if len(parts) < 2:
        return None
    return "/".join(parts[:2]) if parts[0] == "providers" and len(parts) > 2 else parts[0]


def is_system(header):
    if header.startswith(SYSTEM_FOLDERS):
        return True
    if header.endswith(".h"):
        return header[:-2] in SYSTEM_HEADERS
    return "/" not in header and "." not in header  # <vector>


def check_project_include(src, folder, header, is_test):
    target = folder_of(header)
    if target is None:
        return f'"{header}" is not named by its path from src/'
    if not (src / header).is_file():
        return f'"{header}" does not exist below src/'
    if TEST_NAME.search(header) and not is_test:
        return f'"{header}" is part of the tests'
    allowed = [folder] + LAYERS[folder] + (TEST_EXTRA if is_test else [])
    if target in allowed:
        return None
    if target in LEAVES:
        return f"{target} is a program of its own; nobody includes it"
    return f"{folder} may not include {target} (it may include: {', '.join(LAYERS[folder]) or 'nothing'})"


def check_outside_include(folder, header):
    if folder in STATIC and header in STATIC_UNWANTED:
        return f"<{header}> bloats the static helpers, which {folder} is part of"
    if is_system(header):
        return None
    if any(header.startswith(prefix) for prefix in THIRD_PARTY.get(folder, [])):
        return None
    if folder in STATIC:
        return f"<{header}> is third-party; {folder} is linked into the static helpers"
    return f"<{header}> is not in {folder}'s row of THIRD_PARTY"


def check_file(src, path):
    """Yields (line, message) for each include that breaks a rule."""
    relative = path.relative_to(src).as_posix()
    folder = folder_of(relative)
    if folder not in LAYERS:
        yield 1, f"unknown folder {folder or 'src'}: give it a row in LAYERS (scripts/check_layers.py)"
        return
    is_test = TEST_NAME.search(relative) is not None
    text = path.read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        if match[1] == '"':
            problem = check_project_include(src, folder, match[2], is_test)
        else:
            problem = None if is_test else check_outside_include(folder, match[2])
        if problem:
            yield number, problem


def main():
    parser = argparse.ArgumentParser(description="Check that includes point down the layer order.")
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    src = parser.parse_args().root / "src"
    problems = 0
    for path in sorted([*src.rglob("*.h"), *src.rglob("*.cc")]):
        for number, message in check_file(src, path):
            print(f"src/{path.relative_to(src)}:{number}: {message}")
            problems += 1
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
