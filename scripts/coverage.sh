#!/usr/bin/env bash
# Line coverage of the unit tests: a table on the terminal, HTML in build/coverage/html.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/build.sh coverage unit_tests
out=build/coverage
rm -f "$out"/unit-*.profraw
LLVM_PROFILE_FILE="$out/unit-%p.profraw" "$out/unit_tests" --gtest_brief=1
llvm-profdata-19 merge -sparse "$out"/unit-*.profraw -o "$out/unit.profdata"
rm -f "$out"/unit-*.profraw
options=(-instr-profile="$out/unit.profdata" -ignore-filename-regex='(_test\.cc$|^/usr/)')
llvm-cov-19 show -format=html -output-dir="$out/html" "${options[@]}" "$out/unit_tests" >/dev/null
llvm-cov-19 report -use-color=false -show-region-summary=false -show-branch-summary=false \
  "${options[@]}" "$out/unit_tests"
