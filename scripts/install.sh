#!/usr/bin/env bash
# Installs the Debian packages that building, testing or measuring Caisson needs. Names carry the
# versions of Debian 12 where versions matter (clang-19, boost 1.81).
#
#   install.sh [build|test|bench|vm]      (default: build)
#
# Does nothing when all is there. Otherwise needs root: uses sudo when there is one. Only missing
# packages are installed; nothing is removed, and no service is started. When the package lists are
# too old to serve, they are refreshed and the installation is tried once more.
set -euo pipefail

build_packages=(
  clang-19 lld-19 llvm-19 cmake ninja-build ccache pkg-config make git
  libboost1.81-dev libboost-json1.81-dev libfmt-dev libarchive-dev libyaml-cpp-dev libsqlite3-dev libssl-dev libcurl4-openssl-dev zlib1g-dev libgtest-dev libgmock-dev
  python3 e2fsprogs curl
)
test_packages=(
  clang-tidy-19 clang-format-19 libclang-rt-19-dev python3-pytest python3-jsonschema python3-websocket
  procps util-linux
)
bench_packages=(bubblewrap docker.io wrk)
# The virtual machine's kernel, and qemu where the host has none, are fetched by tests/vm/run.sh
# without being installed.
vm_packages=(zstd)

goal=${1:-build}
case $goal in
  build) packages=("${build_packages[@]}") ;;
  test) packages=("${build_packages[@]}" "${test_packages[@]}") ;;
  bench) packages=("${build_packages[@]}" "${bench_packages[@]}") ;;
  vm) packages=("${build_packages[@]}" "${vm_packages[@]}") ;;
  *)
    echo "install.sh: unknown goal '$goal' (build, test, bench, vm)" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "install.sh: this is not a Debian system. Install the equivalents of these packages, then" >&2
  echo "run scripts/build.sh release: ${packages[*]}" >&2
  exit 1
fi

# Prints the packages that are not installed, one per line.
missing_packages() {
  dpkg-query -W -f '${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null |
    awk -v wanted="${packages[*]}" '
      $2 == "installed" { have[$1] = 1 }
      END { n = split(wanted, names, " "); for (i = 1; i <= n; i++) if (!(names[i] in have)) print names[i] }'
}
mapfile -t missing < <(missing_packages || true)
((${#missing[@]} > 0)) || exit 0

if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    echo "install.sh: ${#missing[@]} packages are missing and installing them needs root. As root, run:" >&2
    echo "  apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  echo "install.sh: ${#missing[@]} packages are missing (${missing[*]}); asking sudo to install them" >&2
  exec sudo -- "$(readlink -f "${BASH_SOURCE[0]}")" "$goal"
fi

export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
policy=
cleanup() {
  rm -f "$log"
  [[ -z $policy ]] || rm -f "$policy"
}
trap cleanup EXIT

# Keeps packages such as docker.io from starting their services (see invoke-rc.d(8)).
if [[ ! -e /usr/sbin/policy-rc.d ]]; then
  policy=/usr/sbin/policy-rc.d
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi

# Shows which package is being set up, in one line that moves on a terminal.
progress() {
  local count=0 line
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$log"
    [[ $line == "Setting up "* && -t 2 ]] || continue
    count=$((count + 1))
    line=${line#Setting up }
    printf '\r\033[K  %d %s' "$count" "${line%% *}" >&2
  done
  [[ ! -t 2 ]] || printf '\r\033[K' >&2
}

install_missing() {
  apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 \
    install --no-install-recommends --no-upgrade --no-remove "${missing[@]}" </dev/null 2>&1 | progress
}

echo "install.sh: installing ${#missing[@]} packages: ${missing[*]}" >&2
started=$SECONDS
if ! install_missing; then
  echo "install.sh: refreshing the package lists and trying once more" >&2
  apt-get -q -o DPkg::Lock::Timeout=300 update 2>&1 </dev/null | progress || true
  if ! install_missing; then
    tail -n 20 "$log" >&2
    echo "install.sh: apt-get could not install: ${missing[*]}" >&2
    echo "  Caisson builds on Debian 12 with its main and security archives; see /etc/apt/sources.list*" >&2
    exit 1
  fi
fi
echo "install.sh: done in $((SECONDS - started)) s" >&2
