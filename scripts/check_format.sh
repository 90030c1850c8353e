#!/usr/bin/env bash
# Holds the C++ sources to .clang-format.
#
#   check_format.sh          names each file that is not formatted; exits 1 if there is one
#   check_format.sh --fix    formats them in place
#   check_format.sh FILE...  looks at these files only
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fix=
if [[ ${1:-} == --fix ]]; then fix=1 && shift; fi
if (($# > 0)); then
  files=("$@")
else
  mapfile -t files < <(find src bench fuzz tests -name '*.h' -o -name '*.cc' | sort)
  ((${#files[@]} > 0)) || { echo "check_format.sh: no sources found" >&2 && exit 1; }
fi

if [[ -n $fix ]]; then
  printf '%s\0' "${files[@]}" | xargs -0 -n 16 -P "$(nproc)" clang-format-19 -i
  exit 0
fi
bad=$(printf '%s\0' "${files[@]}" | xargs -0 -n 16 -P "$(nproc)" clang-format-19 --dry-run 2>&1 |
  sed -n 's/^\([^:]*:[0-9]*\):[0-9]*: .*\[-Wclang-format-violations\]$/\1/p' |
  sort -t: -k1,1 -k2,2n | awk -F: '!seen[$1]++' || true)
[[ -n $bad ]] || exit 0
sed 's/$/: not formatted (run: make format)/' <<<"$bad"
exit 1
