#!/usr/bin/env python3
"""Names files over 500 lines and functions over 60: a question to ask, never a failure.

    check_size.py [--root DIR]

Functions are found by the shape that clang-format gives them: a line that ends in `{` and the `}`
at the same depth.
"""
import argparse
import pathlib
import re
import sys

FILE_LINES = 500
FUNCTION_LINES = 60
NOT_A_FUNCTION = re.compile(r"^\s*(namespace|class|struct|enum|union|extern|template|constexpr|const|static const)\b")
OPENS = re.compile(r"^( {0,4})(?=\S).*\{$")
CLOSES = re.compile(r"^( {0,4})\}")
SIGNATURE_END = re.compile(r"\)[^=;]*\{$")


def long_functions(lines):
    """Yields (line, length) of each function that is too long."""
    start = {}
    for number, line in enumerate(lines, 1):
        opens = OPENS.match(line)
        if opens and SIGNATURE_END.search(line) and not NOT_A_FUNCTION.match(line):
            start.setdefault(len(opens[1]), number)
        closes = CLOSES.match(line)
        if closes and len(closes[1]) in start and not line.rstrip().endswith("{"):
            first = start.pop(len(closes[1]))
            if number - first + 1 > FUNCTION_LINES:
                yield first, number - first + 1


def main():
    parser = argparse.ArgumentParser(description="Report files and functions that grew long.")
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    for folder in ("src", "bench", "fuzz", "tests"):
        for path in sorted([*(root / folder).rglob("*.h"), *(root / folder).rglob("*.cc")]):
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            name = path.relative_to(root)
            if len(lines) > FILE_LINES:
                print(f"{name}:1: {len(lines)} lines; is it two things?")
            for first, length in long_functions(lines):
                print(f"{name}:{first}: a function of {length} lines; is it two things?")
    return 0


if __name__ == "__main__":
    sys.exit(main())
