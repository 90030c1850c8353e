#!/usr/bin/env bash
# Configures (when needed) and builds one preset of CMakePresets.json.
#
#   build.sh PRESET [TARGET...]
#
# CAISSON_JOBS limits the parallel compilations. Output is quiet unless something fails or the build
# takes place on a terminal.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=${1:?usage: build.sh PRESET [TARGET...]}
shift
case $preset in
  release) dir=build ;;
  dev | asan | tsan | fuzz | coverage) dir=build/$preset ;;
  *)
    echo "build.sh: unknown preset '$preset' (dev, release, asan, tsan, fuzz, coverage)" >&2
    exit 2
    ;;
esac

# One cache serves every checkout: paths below this one count as relative.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
if [[ ! -f $dir/build.ninja || CMakePresets.json -nt $dir/build.ninja ]]; then
  mkdir -p "$dir"
  cmake --preset "$preset" >"$dir/configure.log" 2>&1 || {
    cat "$dir/configure.log" >&2
    exit 1
  }
  touch "$dir/build.ninja"
fi
arguments=()
(($# == 0)) || arguments+=(--target "$@")
[[ -z ${CAISSON_JOBS:-} ]] || arguments+=(--parallel "$CAISSON_JOBS")
cmake --build "$dir" "${arguments[@]}"
