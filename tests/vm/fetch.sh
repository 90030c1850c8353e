#!/usr/bin/env bash
# Brings what the virtual machine needs into a folder, without installing anything.
#
#   fetch.sh WORK_DIR
#
# Leaves in WORK_DIR/tree the unpacked Debian packages (cloud kernel with its modules, busybox, jq,
# and, where the host has none of its own, qemu, cpio and kmod with the libraries they lack), and in
# WORK_DIR/kernel-release the kernel's release string. Packages come from the apt sources the host
# already trusts; apt checks their signatures. What was fetched serves for a week, then newer package
# versions replace it.
set -euo pipefail

work=${1:?usage: fetch.sh WORK_DIR}
tree=$work/tree
debs=$work/debs
mkdir -p "$work"

fail() {
  echo "vm: $*" >&2
  exit 1
}

have() { command -v "$1" >/dev/null || [[ -x $tree/usr/bin/$1 || -x $tree/bin/$1 ]]; }
if [[ -n $(find "$work/fetched" -mtime -7 2>/dev/null) ]] && have qemu-system-x86_64 && have cpio; then
  exit 0
fi

command -v apt-get >/dev/null || fail "apt-get is missing; the VM is built from Debian packages"

kernel_package() {
  apt-cache depends --important linux-image-cloud-amd64 2>/dev/null |
    awk '/Depends: linux-image-[0-9]/ {print $2; exit}'
}

kernel=$(kernel_package)
[[ -n $kernel ]] || fail "apt does not know linux-image-cloud-amd64; run: apt-get update"

# Names of the packages apt would add to make TOOL's package usable, TOOL's own included.
missing_packages() {
  apt-get -s install --no-install-recommends "$@" 2>/dev/null | awk '/^Inst / {print $2}'
}

tools=()
command -v qemu-system-x86_64 >/dev/null || tools+=(qemu-system-x86)
command -v cpio >/dev/null || tools+=(cpio)
[[ -x /sbin/depmod || -x /usr/sbin/depmod ]] || tools+=(kmod)

packages=("$kernel" busybox-static jq libjq1 libonig5)
if ((${#tools[@]})); then
  extra=$(missing_packages "${tools[@]}")
  [[ -n $extra ]] || fail "apt cannot resolve ${tools[*]}; run: apt-get update"
  mapfile -t -O ${#packages[@]} packages <<<"$extra"
fi

wanted=$(apt-cache policy "${packages[@]}" | awk '/^[^ ]/ {name=$1} /Candidate:/ {print name $2}' | sort -u)
if [[ -f $work/fetched && $(<"$work/fetched") == "$wanted" ]]; then
  touch "$work/fetched"
  exit 0
fi

echo "vm: fetching ${#packages[@]} packages (kernel $kernel)" >&2
rm -rf "$tree" "$debs" "$work/fetched"
mkdir -p "$tree" "$debs"
(cd "$debs" && apt-get -o APT::Sandbox::User=root -qq download "${packages[@]}") ||
  fail "download failed; run: apt-get update, and see that the Debian mirror answers"
for deb in "$debs"/*.deb; do
  dpkg-deb -x "$deb" "$tree"
done
rm -rf "$debs"

release=$(basename "$tree"/lib/modules/*)
[[ -f $tree/boot/vmlinuz-$release ]] || fail "$kernel holds no kernel image for $release"
echo "$release" >"$work/kernel-release"

depmod=$(command -v depmod || true)
[[ -n $depmod ]] || depmod=$(PATH=/sbin:/usr/sbin command -v depmod || true)
if [[ -n $depmod ]]; then
  "$depmod" -b "$tree" "$release"
else
  (
    export LD_LIBRARY_PATH=$tree/usr/lib/x86_64-linux-gnu:$tree/lib/x86_64-linux-gnu
    exec -a depmod "$tree/bin/kmod" -b "$tree" "$release"
  )
fi
echo "$wanted" >"$work/fetched"
