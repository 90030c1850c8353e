#!/usr/bin/env bash
# Builds the initramfs and the disks of the virtual machine; needs no privilege.
#
#   image.sh WORK_DIR BUILD_DIR SUITE [FILTER [CASE_SECONDS]]
#
# WORK_DIR holds what fetch.sh left. BUILD_DIR is where Caisson's binaries are; those that exist go
# into the root image. SUITE is the script of guest/ that the machine runs, on the
# cases whose names match FILTER, each for at most CASE_SECONDS. Leaves in WORK_DIR:
#
#   initramfs.cpio.gz  busybox, kernel modules, and guest/init, which mounts the root disk
#   root.img           ext4: a small Debian-shaped root (the `host` environment of the machine)
#   data.img           ext4 with project quota, for sandboxes' writable layers
#   swap.img           empty; the machine makes swap of it, so that the swap limit has something to stop
#
# The root is a disk and not the initramfs, because an initramfs can neither be left by pivot_root nor
# be id-mapped, and so resembles no host that Caisson runs on.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(cd "$1" && pwd)
build=$2
suite=$3
filter=${4:-}
case_seconds=${5:-100}
tree=$work/tree
release=$(<"$work/kernel-release")
modules_dir=lib/modules/$release
modules=(virtio_pci virtio_blk overlay loop quota_v2 veth)
binaries=(caisson caisson-hooks driver driver-hooks probe unit_tests)
programs=(bash sh cat chmod chown cp cut dd df echo env false head id kill ln ls mkdir mktemp mv nproc
  ps readlink rm rmdir sed seq setpriv date mount umount sleep sort stat stty sync tail tee test timeout touch tr true
  truncate uname unshare wc yes grep awk find mkfs.ext4 newuidmap newgidmap tar strace python3 nsenter)

fail() {
  echo "vm: $*" >&2
  exit 1
}

# The file of a program, never a builtin of this shell.
lookup() { PATH=/usr/bin:/usr/sbin:/bin:/sbin type -P "$1"; }

# Copies FILE to TARGET below ROOT, following links, and the shared libraries it loads.
add_program() {
  local root=$1 file=$2 target=$3
  mkdir -p "$root$(dirname "$target")"
  cp -L --preserve=mode "$file" "$root$target"
  add_libraries "$root" "$file"
}

add_libraries() {
  local root=$1 library
  shift
  while read -r library; do
    [[ -e $root$library ]] && continue
    mkdir -p "$root$(dirname "$library")"
    cp -L --preserve=mode "$library" "$root$library"
  done < <(ldd "$@" 2>/dev/null |
    awk '$3 ~ /^\// {print $3} $1 ~ /^\/.*[^:]$/ {print $1}' | sort -u)
}

# Prints the modules (paths below modules_dir) that NAME... need, dependencies first.
module_closure() {
  local name line
  for name in "$@"; do
    line=$(grep -E "/$name\.ko:" "$tree/$modules_dir/modules.dep") ||
      fail "the cloud kernel $release has no module $name"
    tr -d ':' <<<"$line" | tr ' ' '\n' | tac
  done | awk 'NF && !seen[$0]++'
}

add_modules() {
  local root=$1 module
  mkdir -p "$root/$modules_dir"
  while read -r module; do
    mkdir -p "$root/$modules_dir/$(dirname "$module")"
    cp "$tree/$modules_dir/$module" "$root/$modules_dir/$module"
  done < <(module_closure "${modules[@]}")
  cp "$tree/$modules_dir"/modules.{dep,alias,builtin,builtin.modinfo,order} "$root/$modules_dir/"
}

cpio_tool() {
  if command -v cpio >/dev/null; then cpio "$@"; else "$tree/bin/cpio" "$@"; fi
}

build_initramfs() {
  local root=$work/initramfs
  rm -rf "$root"
  mkdir -p "$root"/{bin,dev,proc,sys,newroot}
  cp "$tree/bin/busybox" "$root/bin/busybox"
  ln -s busybox "$root/bin/sh"
  cp "$here/guest/init" "$root/init"
  chmod 0755 "$root/init"
  add_modules "$root"
  module_closure "${modules[@]}" >"$root/modules.list"
  (cd "$root" && find . -print0 | LC_ALL=C sort -z | cpio_tool -0 -o -H newc -R 0:0 --quiet) |
    gzip -1 >"$work/initramfs.cpio.gz"
  rm -rf "$root"
}

add_accounts() {
  local root=$1
  printf '%s\n' 'root:x:0:0::/root:/bin/bash' 'nobody:x:65534:65534::/nonexistent:/bin/false' \
    'user:x:1000:1000::/home/user:/bin/bash' >"$root/etc/passwd"
  printf '%s\n' 'root:x:0:' 'tty:x:5:' 'nogroup:x:65534:' 'user:x:1000:' >"$root/etc/group"
  printf '%s\n' 'root:*:19000::::::' 'CANARY-SHADOW:*:19000::::::' >"$root/etc/shadow"
  chmod 0640 "$root/etc/shadow"
  echo 'user:100000:65536' | tee "$root/etc/subuid" >"$root/etc/subgid"
  cp /etc/os-release "$root/etc/os-release"
  echo vm >"$root/etc/hostname"
}

# A root in Debian's merged-usr shape, so that /bin, /lib and /sbin are links into /usr.
build_root() {
  local root=$work/root name file
  rm -rf "$root"
  mkdir -p "$root"/{dev,proc,sys,run,tmp,etc,root,home/user,mnt,data,var/lib,var/tmp,opt/caisson} \
    "$root"/usr/{bin,sbin,lib,lib64}
  for name in bin sbin lib lib64; do ln -s "usr/$name" "$root/$name"; done
  chmod 1777 "$root/tmp" "$root/var/tmp"
  chmod 0700 "$root/root"
  for name in "${programs[@]}"; do
    file=$(lookup "$name") || continue
    add_program "$root" "$file" "/usr/${file##*/usr/}"
  done
  add_jq "$root"
  cp "$tree/bin/busybox" "$root/usr/bin/busybox"
  for name in modprobe mkswap swapon losetup poweroff mountpoint; do
    [[ -e $root/usr/sbin/$name ]] || ln -s ../bin/busybox "$root/usr/sbin/$name"
  done
  add_python "$root"
  add_accounts "$root"
  add_modules "$root"
  add_caisson "$root"
  cp -r "$here/guest" "$root/tests"
  echo "$suite" >"$root/tests/suite"
  printf 'export CASE_FILTER=%q CASE_SECONDS=%q\n' "$filter" "$case_seconds" >"$root/tests/settings"
}

add_jq() {
  local root=$1 library
  for library in libjq.so.1 libonig.so.5; do
    cp -L "$tree/usr/lib/x86_64-linux-gnu/$library" "$root/usr/lib/x86_64-linux-gnu/$library"
  done
  add_libraries "$root" "$root"/usr/lib/x86_64-linux-gnu/lib{jq.so.1,onig.so.5}
  cp "$tree/usr/bin/jq" "$root/usr/bin/jq"
}

# The part of Python's library that starts the interpreter and runs small scripts.
add_python() {
  local root=$1 library
  [[ -x $root/usr/bin/python3 ]] || fail "/usr/bin/python3 is missing; install python3"
  library=$(/usr/bin/python3 -c 'import os; print(os.path.dirname(os.__file__))')
  mkdir -p "$root$library"
  (cd "$library" && find . \( -name test -o -name tests -o -name idlelib -o -name ensurepip \
    -o -name lib2to3 -o -name 'config-*' -o -name tkinter \) -prune \
    -o -name '*.py' -print0 -o -name '*.pyc' -print0 | tar -c --null -T -) | tar -x -C "$root$library"
  cp -rL "$library/lib-dynload" "$root$library/"
  add_libraries "$root" "$library"/lib-dynload/*.so
}

add_caisson() {
  local root=$1 name
  for name in "${binaries[@]}"; do
    [[ -x $build/$name ]] || continue
    add_program "$root" "$build/$name" "/opt/caisson/$name"
    strip --strip-debug "$root/opt/caisson/$name" 2>/dev/null || true
  done
}

# disk NAME SIZE ARGS...: a sparse ext4 image with the folder given by -d, owned by root.
build_disk() {
  local image=$work/$1 size=$2
  shift 2
  rm -f "$image"
  truncate -s "$size" "$image"
  "$(lookup mkfs.ext4)" -q -F -m 0 -E lazy_itable_init=1,lazy_journal_init=1,root_owner=0:0 "$@" "$image"
}

build_initramfs
build_root
build_disk root.img 2G -L root -d "$work/root"
build_disk data.img 1G -L data -O quota,project -E quotatype=prjquota
rm -f "$work/swap.img"
truncate -s 256M "$work/swap.img"
du -sh --apparent-size "$work/root" | awk '{print "vm: root tree " $1}' >&2
rm -rf "$work/root"
