#!/usr/bin/env bash
# Builds a root filesystem with nothing but a shell and two tools, and runs it as a directory and as
# a tar file.
#
#   examples/custom-rootfs.sh
#
# CAISSON names the binary.
set -euo pipefail
caisson=${CAISSON:-$(dirname "${BASH_SOURCE[0]}")/../build/caisson}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root/bin" "$root/etc"
chmod 755 "$work" "$root"

# Copies a program of the host to /bin of the new root, and the libraries it needs to their places.
add_program() {
  local path library
  path=$(command -v "$1")
  cp -L "$path" "$root/bin/$1"
  { ldd "$path" 2>/dev/null || true; } | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
  done
}

for program in bash ls cat; do add_program "$program"; done
echo 'root:x:0:0::/:/bin/bash' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
echo 'a root of our own' >"$root/etc/motd"

echo '-- as a directory'
"$caisson" exec --rootfs "$root" -- /bin/bash -c 'cat /etc/motd; ls /; ls /bin; echo > /etc/new' </dev/null
if [[ -e $root/etc/new ]]; then
  echo 'the sandbox wrote into the directory' >&2
  exit 1
fi

echo '-- as a tar file'
tar -C "$root" -czf "$work/root.tar.gz" .
"$caisson" exec --rootfs "$work/root.tar.gz" -- /bin/bash -c 'cat /etc/motd' </dev/null
